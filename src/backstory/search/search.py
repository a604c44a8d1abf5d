"""Search: find things in one home, with its index or without.

The index is derived: if it is missing, it is built; if it is behind, it catches up
before the search; if it is damaged or cannot be opened, the history and the notes are
searched without it.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import StoreDamaged, StoreProblem, UnknownName
from backstory.index.files import IndexFiles
from backstory.index.maintain import FindGuidance, FindNotes, Maintainer
from backstory.search.activity import find_activity
from backstory.search.hits import HitSearch
from backstory.search.hydrate import add_replies
from backstory.search.newer import put_newer_first
from backstory.search.notices import NOTHING_SAID, ONLY_NEAREST
from backstory.search.own_project import (
    KEPT_APART,
    OwnProject,
    absolute_folder,
)
from backstory.search.request import Filters, Request
from backstory.search.retrieve import Retriever
from backstory.search.sessions import get_session, list_sessions
from backstory.search.tuned_profile import choose_profile
from backstory.search.weights import Weights
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.store.base.index import SearchIndex
from backstory.system.fork_safety import reset_in_child
from backstory.system.loggers import lazy_logger
from backstory.system.stages import enter_stage
from backstory.text.arguments import (
    to_limit,
    to_period,
    to_query,
    to_text,
)
from backstory.text.query import parse_query
from backstory.values.activity import Activity
from backstory.values.hits import (
    EpisodeResult,
    Hit,
    HitSource,
    RecallResult,
    SearchResult,
)
from backstory.values.lazy import lazy_property
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct, replace
from backstory.values.units import (
    OF_A_DAY,
    Container,
    FileRef,
    SessionRef,
    UnitKind,
    session_unit_id,
)

if TYPE_CHECKING:
    from backstory.search.fallback import FallbackSearch

logger = lazy_logger(__name__)


class SearchOptions(FrozenStruct):
    """What the settings say about searches.

    ``query_timeout_s`` limits the time for the query's vector, if a server makes it.
    """

    weights: Weights
    profile: str
    timeout_s: float
    query_timeout_s: float | None = None
    isolates_projects: bool = False


class Search:
    """Finds things in one home."""

    def __init__(
        self,
        history: HistoryStore,
        files: IndexFiles,
        maintainer: Maintainer,
        find_guidance: FindGuidance,
        options: SearchOptions,
        *,
        find_notes: FindNotes,
        clock: Callable[[], datetime],
        check_host: Callable[[str | None], str | None],
        read_changed: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._history = history
        self._files = files
        self._maintainer = maintainer
        self._options = options
        self._clock = clock
        self._check_host = check_host
        self._read_changed = read_changed
        self._find_guidance = find_guidance
        self._find_notes = find_notes
        self._retriever: Retriever | None = None
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()

    @lazy_property
    def _fallback(self) -> "FallbackSearch":
        # Only needed if there is no index.
        from backstory.index.note_days import NoteDays
        from backstory.search.fallback import FallbackSearch

        return FallbackSearch(
            self._history,
            self._find_notes,
            self._find_guidance,
            NoteDays(self._history, self._clock, is_read_only=True),
        )

    def close(self) -> None:
        if self._retriever is not None:
            self._retriever.close()

    # -- what is asked for ---

    def parse(self, text: str) -> Query:
        """Parse a query; "yesterday" is relative to today."""
        return parse_query(text, today=self._clock().astimezone().date())

    def _make_request(
        self,
        query: str,
        sources: frozenset[HitSource],
        filters: Filters,
        *,
        limit: int,
    ) -> Request:
        """Check and resolve a caller's arguments.

        Raises ``BadQuery`` or ``UnknownName``.
        """
        folder = filters.folder
        request = self.make_plain_request(
            self.parse(to_query(query)),
            sources,
            folder=None if folder is None else absolute_folder(folder),
            is_for_agent=folder is not None,
        )
        return replace(
            request,
            limit=to_limit(limit),
            period=to_period(
                filters.date_from, filters.date_to, filters.days, now=self._clock()
            ),
            containers=_intersect(request.containers, self._find_containers(filters)),
            without=self._find_latest_turn(filters.session),
        )

    def make_plain_request(
        self,
        query: Query,
        sources: frozenset[HitSource],
        *,
        folder: Path | None = None,
        is_for_agent: bool = False,
    ) -> Request:
        """A request without any filters, except for what an agent may not see."""
        # An index in files cannot know that it covers only part of a memory.
        self._history.check_complete()
        is_isolated = is_for_agent and self._options.isolates_projects
        own = OwnProject(folder, is_isolated)
        return Request(
            query,
            sources,
            self._options.weights,
            self._options.profile,
            containers=self._find_own(own) if is_isolated else None,
            own=own,
        )

    def _find_own(self, own: OwnProject) -> frozenset[Container]:
        """What an agent may see: its project, and the person's long-term memory."""
        # A note that is not in the index yet has no number that could be allowed.
        with suppress(StoreProblem):
            self._maintainer.catch_up(OF_A_DAY, timeout_s=self._options.timeout_s)
        projects = {each for each in self._history.list_projects() if own.shows(each)}
        found: set[Container] = {
            SessionRef(session.session_id)
            for project in projects
            for session in self._history.list_sessions(SessionFilter(folder=project))
        }
        return frozenset(found | self._find_files(projects, with_memory=True))

    def _find_containers(self, filters: Filters) -> frozenset[Container] | None:
        """The sessions of a host or a project, and the guidance files of a project."""
        host = self._check_host(filters.host)
        if host is None and filters.project is None:
            return None
        where = SessionFilter(host)
        sessions = list_sessions(self._history, where, project=filters.project)
        found: set[Container] = {SessionRef(each.session_id) for each in sessions}
        if host is None:
            found |= self._find_files({each.project for each in sessions} - {None})
        return frozenset(found)

    def _find_files(
        self, projects: Collection[str | None], *, with_memory: bool = False
    ) -> set[FileRef]:
        """The guidance files of projects, and the long-term memory if wanted."""
        try:
            files = self._files.index.list_files()
        except StoreProblem:
            return set()  # the search itself reports it
        return {
            FileRef(file.file_id)
            for file in files
            if file.project in projects
            or (with_memory and file.kind is UnitKind.MEMORY)
        }

    def _find_latest_turn(self, session: str | None) -> frozenset[int]:
        """The units of a session from its user's last message on."""
        if session is None:
            return frozenset()
        try:
            asking = get_session(self._history, to_text(session, "session"))
        except UnknownName:
            return frozenset()
        # Its preview is the last thing that was said, so it is left out as well.
        session_unit = session_unit_id(asking.session_id)
        return frozenset(
            {session_unit, *self._history.list_latest_turn(asking.session_id)}
        )

    # -- answering ---

    def search(
        self,
        query: str,
        sources: frozenset[HitSource],
        filters: Filters,
        *,
        limit: int,
    ) -> SearchResult:
        """Hits with replies, best first, and a suggestion if none answers well."""
        self._get_ready(query)
        stale = self._read_what_changed()
        request = self._make_request(query, sources, filters, limit=limit)
        result = self.find_hits(request)
        result = replace(result, notices=(*stale, *result.notices))
        with self._one_view():
            return self._complete(request, result)

    def _complete(self, request: Request, result: SearchResult) -> SearchResult:
        """Add replies, and whatever else tells a person about the hits."""
        activity = self.find_activity(request)
        if activity is not None and activity.days:
            # It is about the hits, and the days answer better.
            notices = filter(ONLY_NEAREST.__ne__, result.notices)
            result = replace(result, notices=tuple(notices), activity=activity)
        elif activity is not None:
            said = dict.fromkeys((*result.notices, NOTHING_SAID))
            result = replace(result, notices=tuple(said))
        elif result.is_weak and not request.period.why_empty:
            meant = self._suggest(request)
            result = replace(result, notices=(*result.notices, *meant))
        return replace(result, hits=add_replies(result.hits, self._history))

    @contextmanager
    def _one_view(self) -> Iterator[None]:
        try:
            view = self._files.index.one_view()
        except StoreProblem:
            view = nullcontext()  # there is no index
        with view:
            yield

    def find_activity(self, request: Request) -> Activity | None:
        """What was done on the days that a request asks for, if it asks for that."""
        try:
            index = self._files.index
            return find_activity(request, self._history, index, now=self._clock())
        except StoreProblem:
            return None  # hits can be found without an index

    def find_hits(self, request: Request) -> SearchResult:
        """Hits, best first, without replies or suggestions."""
        result = self._find_hits(request)
        hits = request.own.sort(filter(request.own.shows_hit, result.hits))
        hits = tuple(put_newer_first(request.query, hits))
        notices = (*result.notices, *_explain_isolation(request))
        return replace(result, hits=hits, notices=notices)

    def _find_hits(self, request: Request) -> SearchResult:
        if request.period.why_empty:
            return SearchResult(request.query, notices=(request.period.why_empty,))
        until = self._deadline(request)
        try:
            behind = self._catch_up(request, until)
            retriever = self._get_retriever()
            with retriever.index.one_view():
                result = HitSearch(self._history, retriever.index).search(
                    request,
                    choose_profile(request.profile, retriever, self._history),
                    now=self._clock(),
                    until=until,
                )
                missing = retriever.explain_missing(request.to_filter())
        except StoreProblem as exc:
            return self._fallback.search(request, self._explain(exc), until=until)
        damage = self._maintainer.tell_of_damage()
        return replace(result, notices=(*behind, *damage, *missing, *result.notices))

    def find_by_words(
        self, request: Request, is_wanted: Callable[[Hit], bool]
    ) -> list[Hit] | None:
        """What is worth putting into a prompt by its words alone, best first.

        None if there are vectors to search, or no index.
        """
        # Only prompts need these.
        from backstory.search.by_words import choose_by_words
        from backstory.search.words_reader import StoreReader

        until = self._deadline(request)
        try:
            retriever = self._get_retriever()
            if retriever.can_search_by_meaning(request.query.text):
                return None
            self._catch_up(request, until)
            where = request.to_filter()
            reader = StoreReader(retriever.index, self._history, where, is_wanted)
            chosen = choose_by_words(request.query, reader)
            return reader.to_hits(chosen, request.query)
        except StoreProblem as exc:
            self._explain(exc)
            return None

    def recall(
        self,
        query: str,
        sources: frozenset[HitSource],
        filters: Filters,
        *,
        limit: int,
    ) -> RecallResult:
        """Chunks of conversations and files, best first."""
        # Slow to import, and most searches are for hits.
        from backstory.search.recall import weigh_for_chunks

        self._get_ready(query)
        stale = self._read_what_changed()
        request = self._make_request(query, sources, filters, limit=limit)
        request = replace(request, weights=weigh_for_chunks(request.weights))
        result = self._recall(request)
        chunks = {id(each.hit): each for each in result.found}
        hits = filter(request.own.shows_hit, (each.hit for each in result.found))
        ordered = put_newer_first(request.query, request.own.sort(hits))
        return replace(
            result,
            found=tuple(chunks[id(hit)] for hit in ordered),
            notices=(*stale, *result.notices, *_explain_isolation(request)),
        )

    def _recall(self, request: Request) -> RecallResult:
        # Slow to import, and most searches are for hits.
        from backstory.search.recall import ChunkSearch

        until = self._deadline(request)
        try:
            behind = self._catch_up(request, until)
            retriever = self._get_retriever()
            with retriever.index.one_view():
                found, notices = ChunkSearch(self._history, retriever.index).recall(
                    request,
                    choose_profile(request.profile, retriever, self._history),
                    now=self._clock(),
                    until=until,
                )
                units = retriever.index.count_units()
                missing = retriever.explain_missing(request.to_filter())
        except StoreProblem as exc:
            return self._fallback.recall(request, self._explain(exc), until=until)
        damage = self._maintainer.tell_of_damage()
        return RecallResult(
            request.query,
            tuple(found),
            (*behind, *damage, *missing, *notices),
            is_empty_index=not found and not units,
        )

    def episodes(self, query: str, filters: Filters, *, limit: int) -> EpisodeResult:
        """Messages and their neighbours, newest first."""
        # Most searches are for hits.
        from backstory.search.episodes import find_episodes

        stale = self._read_what_changed()
        messages = frozenset({HitSource.MESSAGE})
        request = self._make_request(query, messages, filters, limit=limit)
        if request.period.why_empty:
            return EpisodeResult(request.query, notices=(request.period.why_empty,))
        until = self._deadline(request)
        try:
            behind = self._catch_up(request, until)
            episodes, notices = find_episodes(
                request, self._history, self._get_retriever(), until=until
            )
            damage = self._maintainer.tell_of_damage()
            result = EpisodeResult(
                request.query, tuple(episodes), (*behind, *damage, *notices)
            )
        except StoreProblem as exc:
            result = self._fallback.episodes(request, self._explain(exc), until=until)
        shown = tuple(
            each for each in result.episodes if request.own.shows(each.session.project)
        )
        meant = () if shown else self._suggest(request)
        apart = _explain_isolation(request)
        return replace(
            result,
            episodes=shown,
            notices=(*stale, *result.notices, *apart, *meant),
        )

    def _deadline(self, request: Request) -> float:
        """When the search has to end, on the monotonic clock."""
        return time.monotonic() + min(self._options.timeout_s, request.timeout_s)

    def _get_ready(self, query: str) -> None:
        """Begin to load what the first search needs. Raises ``BadQuery``."""
        text = to_query(query)
        with suppress(StoreProblem):  # the search itself reports it
            if self._retriever is not None or self._files.place.has_index():
                self._get_retriever().get_ready(text)

    def _read_what_changed(self) -> tuple[str, ...]:
        enter_stage("Reading what agents have written")
        return self._read_changed()

    def _catch_up(self, request: Request, until: float) -> list[str]:
        enter_stage("Bringing the index up to date")
        notices = self._maintainer.catch_up(
            request.to_filter().kinds, timeout_s=until - time.monotonic()
        )
        enter_stage("Searching")
        return notices

    def _suggest(self, request: Request) -> tuple[str, ...]:
        if request.own.is_isolated:
            return ()  # it may be a word of another project
        # Most searches find something.
        from backstory.search.suggest import suggest, tell_of_session

        try:
            meant = suggest(request.query, self._history, self._files.index)
            return (*meant, *tell_of_session(request.query, self._history))
        except StoreProblem:
            return ()  # suggestions need an index

    def _get_retriever(self) -> Retriever:
        index: SearchIndex = self._files.index
        with self._lock:
            if self._retriever is None or self._retriever.index is not index:
                self._retriever = Retriever(
                    index,
                    lambda: self._files.embedder,
                    on_damage=self._maintainer.mark_damage,
                    query_timeout_s=self._options.query_timeout_s,
                )
            return self._retriever

    def _explain(self, problem: StoreProblem) -> tuple[str, str]:
        """Why there is no index to search, and what to do about it.

        Raises the problem itself if it does not concern the index.
        """
        if not self._files.place.owns(problem):
            raise problem
        logger.info("%s", problem)
        if isinstance(problem, StoreDamaged):
            self._maintainer.mark_damage()
            return "the index is damaged", "run 'backstory rebuild'"
        return f"the index cannot be used ({problem})", problem.hint


# -- pieces ---------------------------------------------------------------------------


def _intersect(
    one: frozenset[Container] | None, other: frozenset[Container] | None
) -> frozenset[Container] | None:
    """What is in both sets, where None stands for everything."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _explain_isolation(request: Request) -> tuple[str, ...]:
    return (KEPT_APART,) if request.own.is_isolated else ()
