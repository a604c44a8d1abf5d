"""Memory: the one object users hold. It builds everything else and closes it again."""

import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from backstory.errors import BackstoryError, ConfigError, StoreProblem, UnknownName
from backstory.index.files import IndexFiles
from backstory.index.maintain import Maintainer
from backstory.ingest.hosts import get_host
from backstory.ingest.intake import Rules
from backstory.notes.find import FoundNote, find_guidance
from backstory.notes.notebook import Notebook
from backstory.providers.embedders import load_embedder
from backstory.providers.embedders.base import Embedder
from backstory.search.projects import in_project
from backstory.search.prompt_context import (
    REMEMBERED,
    Context,
    build_context,
    is_worth_searching,
)
from backstory.search.rank import Weights
from backstory.search.scopes import to_source_type, to_sources
from backstory.search.search import Search
from backstory.search.searcher import Request
from backstory.settings import Settings, load_settings
from backstory.store.base.history import Batch, SessionFilter
from backstory.store.base.index import UnitFilter
from backstory.store.sqlite.history import HISTORY_NAME, SqliteHistory
from backstory.summaries.answer import heading_start
from backstory.system.files import make_private_folder
from backstory.system.machine import (
    Machine,
    absolute,
    both_names,
    find_home,
    this_machine,
)
from backstory.system.worker import start_worker
from backstory.text.arguments import (
    EVER,
    Period,
    to_day,
    to_instant,
    to_limit,
    to_number,
    to_period,
    to_query,
    to_role,
    to_said,
)
from backstory.text.query import near_spellings, parse_query
from backstory.text.redaction import is_recall
from backstory.text.shell import show_command
from backstory.text.words import word_set
from backstory.values.history import (
    Message,
    NewMessage,
    Problem,
    Role,
    Session,
    SessionFacts,
)
from backstory.values.hits import (
    EpisodeResult,
    Hit,
    HitSource,
    RecallResult,
    SearchResult,
)
from backstory.values.moments import Moment, from_microseconds, start_of_day, to_moment
from backstory.values.query import Term
from backstory.values.reports import (
    Curation,
    IndexReport,
    LogReport,
    OnProgress,
    SourceSummary,
    Status,
)
from backstory.values.runs import RunLimits
from backstory.values.units import MESSAGES, session_unit_id

if TYPE_CHECKING:
    from backstory.ingest.sources import Reader
    from backstory.providers.llms.base import Llm
    from backstory.runs.history import RunHistory
    from backstory.runs.live import LiveRun
    from backstory.summaries.schedule import Summaries
    from backstory.tools.base import Tool

logger = logging.getLogger(__name__)

RECORDED_HOST = "python"
# The most that an agent says to one message, as far as its reply is looked for.
_REPLY_STEPS = 20
# So many messages of a session are compared with what it would be reminded of.
_SAID_LAST = 100
# So many messages are looked at for a word that may have been meant.
_LOOKED_AT = 20
_NEVER = datetime.min.replace(tzinfo=UTC)


def _now() -> datetime:
    return datetime.now(UTC)


class Memory:
    """Every past conversation of the agents on this machine, and a place for new ones.

    Safe to use from several threads; several processes may each open their own.
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        machine: Machine,
        *,
        clock: Callable[[], datetime] = _now,
        start_worker: Callable[[], None] | None = None,
    ) -> None:
        make_private_folder(home)
        self.home = home
        self.settings = settings
        self._machine = machine
        self._clock = clock
        # Here, because a typo must not be found out only when something is read.
        self._excluded_hosts = _read_hosts(settings, "exclude.hosts")
        self._excluded_sessions: set[tuple[str, str]] = set()
        self._store = SqliteHistory(home / HISTORY_NAME)
        self._rules = Rules(
            excluded_folders=tuple(
                path
                for folder in settings.texts("exclude.folders")
                for path in both_names(absolute(folder, machine))
            ),
            max_tool_output_bytes=settings.whole("index.max_tool_output_bytes"),
        )
        self._index_files = IndexFiles(home, self._load_embedder)
        in_background = settings.flag("embedder.in_background")
        self._maintainer = Maintainer(
            self._index_files,
            self._store,
            self._find_guidance,
            clock=clock,
            start_worker=start_worker if in_background else None,
            embedder_name=settings.text("embedder.name"),
            has_lasting_embedder=not any(
                chosen.setting.name.startswith("embedder.") and chosen.is_for_this_run
                for chosen in settings
            ),
        )
        self._search = Search(
            self._store,
            self._index_files,
            self._maintainer,
            self._find_guidance,
            clock=clock,
            timeout_s=settings.number("search.timeout_seconds"),
        )
        self._start_worker = start_worker
        # The sessions that were recorded here, the latest last, and their latest day.
        self._recorded: dict[tuple[str, str], date] = {}

    # What only some uses need is loaded when it is: to load takes longer than to work.

    def _load_embedder(self) -> Embedder | None:
        text = self.settings.text
        return load_embedder(
            text("embedder.name"),
            model=text("embedder.model"),
            url=text("embedder.url"),
            key=text("embedder.key"),
            environ=self._machine.environ,
            timeout_s=self.settings.number("embedder.timeout_seconds"),
        )

    def _load_llm(self) -> "Llm | None":
        # Only the daily logs need it.
        from backstory.providers.llms import load_llm

        text = self.settings.text
        return load_llm(
            text("llm.name"),
            model=text("llm.model"),
            url=text("llm.url"),
            key=text("llm.key"),
            environ=self._machine.environ,
            timeout_s=self.settings.number("llm.timeout_seconds"),
            context_tokens=self.settings.whole("llm.context_tokens"),
        )

    @cached_property
    def _reader(self) -> "Reader":
        # Loading takes longer than most uses do.
        from backstory.ingest.sources import Reader

        return Reader(
            self.home,
            self._machine,
            self._store,
            self._rules,
            self._excluded_hosts,
            self._projects,
            more_folders=self.settings.texts("index.folders"),
            clock=self._clock,
        )

    @cached_property
    def _summaries(self) -> "Summaries":
        # The same.
        from backstory.summaries.schedule import LogOptions, Summaries

        flag = self.settings.flag
        return Summaries(
            self.home,
            LogOptions(
                is_enabled=flag("logs.enabled"),
                in_background=flag("logs.in_background"),
                curate_daily=flag("logs.curate_daily"),
                daily_tokens=self.settings.whole("llm.daily_tokens"),
            ),
            load_llm=self._load_llm,
            history=self._store,
            notebook=self.notebook,
            clock=self._clock,
            start_worker=self._start_worker,
            exclude=self._rules.exclude,
        )

    @cached_property
    def notebook(self) -> Notebook:
        """The long-term memory and the daily logs, to read and to change."""
        return Notebook(self.home)

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        settings: str | Sequence[str] = (),
    ) -> Self:
        """Open the memory of this machine, making it if there is none yet.

        ``home`` is where it is kept: by default ``$BACKSTORY_HOME``, or the user's data
        folder. ``settings`` are ``"name=value"`` texts that override all others.
        """
        machine = this_machine()
        settings = (settings,) if isinstance(settings, str) else settings
        found = find_home(machine, home)
        return cls(
            found,
            load_settings(machine, settings),
            machine,
            start_worker=partial(start_worker, found, settings),
        )

    def close(self) -> None:
        """Close it; a closed memory cannot be used again."""
        self._search.close()
        self._index_files.close()
        if "_summaries" in self.__dict__:
            self._summaries.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- recording ---

    def record(
        self,
        session: str,
        role: Role | str,
        text: object,
        *,
        tool_name: str | None = None,
        call_id: str | None = None,
        sent_at: datetime | None = None,
        message: str | None = None,
        host: str = RECORDED_HOST,
        title: str | None = None,
        project: str | Path | None = None,
        parent: str | None = None,
    ) -> int | None:
        """Keep one message of a session of your own; durable when this returns.

        ``session`` is any name you choose; the session begins with its first message.
        ``text`` that is not a text (a tool's arguments or result) is kept as JSON; None
        is only what a tool may have been given or have answered.
        ``message`` is your id of the message: recording it again replaces it.
        Returns the number of the message, or None when it is left out: the session
        ran in an excluded folder, or the text is the result of a recall tool.
        """
        known_role = to_role(role)
        said = to_said(known_role, text)
        if not session:
            raise UnknownName(
                "a session needs a name", hint="any text that is not empty"
            )
        if known_role is Role.TOOL_RESULT and self._answers_recall(
            host, session, tool_name, call_id
        ):
            return None
        if self._is_excluded(host, session, project):
            return None
        sent = to_moment(sent_at) if sent_at else Moment(self._clock())
        self._note_day(host, session, sent.at.astimezone().date())
        native_id = message or str(uuid.uuid4())
        new = NewMessage(
            session,
            native_id,
            known_role,
            said,
            tool_name,
            call_id,
            sent,
        )
        facts = SessionFacts(
            session,
            title=title,
            project=str(project) if project is not None else None,
            parent_id=parent,
        )
        batch = Batch(
            host,
            facts=[self._rules.keep_facts(facts)],
            messages=[self._rules.keep(new)],
            replaces=True,
        )
        return self._store.write(batch, now=self._clock()).last_message_id

    def _answers_recall(
        self, host: str, session: str, tool_name: str | None, call_id: str | None
    ) -> bool:
        """Whether a result is that of a recall tool; often only the call names it."""
        if tool_name is None and call_id is not None:
            known = self._find_session(host, session)
            if known is not None:
                tool_name = self._store.find_tool_name(known.session_id, call_id)
        return is_recall(tool_name)

    def _is_excluded(self, host: str, session: str, project: str | Path | None) -> bool:
        """Whether a session is in an excluded folder, by this call or an earlier."""
        folder = project or self._store.find_project(host, session)
        if folder is not None and self._rules.exclude(folder):
            self._excluded_sessions.add((host, session))
        return (host, session) in self._excluded_sessions

    def _note_day(self, host: str, session: str, day: date) -> None:
        """When a session goes on another day, what was said before is to be logged."""
        before = self._recorded.pop((host, session), None)
        self._recorded[(host, session)] = day
        known = None if before == day else self._find_session(host, session)
        if known is not None and known.last_active is not None:
            before = known.last_active.at.astimezone().date()
            if before < day:
                self._mark_due([known], "day change")

    def _find_session(self, host: str, native_id: str) -> Session | None:
        for known in self._store.find_sessions(f"{host}/{native_id}"):
            if (known.host, known.native_id) == (host, native_id):
                return known
        return None

    # -- the daily logs ---

    def end_session(self, session: str | None = None) -> bool:
        """Have what was said in a session summed up in the daily log.

        Without a name it is the one that was recorded last. This takes no time: the log
        is written in the background, when a language model is configured. Returns
        whether there is anything to log.
        """
        return self._trigger("session end", session)

    def before_compaction(self, session: str | None = None) -> bool:
        """The same, when messages are about to be left out of a session's prompt."""
        return self._trigger("compaction", session)

    def switch_session(self, session: str) -> bool:
        """The same for all sessions recorded here but the one that now goes on."""
        return self._trigger_all("session switch", but=session)

    def background(self) -> bool:
        """The same for all sessions recorded here, when the program is put away."""
        return self._trigger_all("background")

    def _trigger(self, cause: str, session: str | None) -> bool:
        if session is not None:
            return self._mark_due(self._named(session), cause)
        return self._mark_due(self._recorded_here(list(self._recorded)[-1:]), cause)

    def _trigger_all(self, cause: str, but: str | None = None) -> bool:
        others = [key for key in list(self._recorded) if key[1] != but]
        return self._mark_due(self._recorded_here(others), cause)

    def _recorded_here(self, keys: Iterable[tuple[str, str]]) -> Iterator[Session]:
        for host, native_id in keys:
            if (known := self._find_session(host, native_id)) is not None:
                yield known

    def _mark_due(self, sessions: Iterable[Session], cause: str) -> bool:
        """Have sessions logged. A program must not fail for want of a log."""
        try:
            marked = [self._summaries.mark_due(each, cause) for each in sessions]
            return any(marked)
        except BackstoryError as exc:
            logger.warning("a session is not marked to be logged: %s", exc)
            return False

    def _named(self, session: str) -> list[Session]:
        """The sessions of exactly that name, of every program; often there is one."""
        try:
            return [
                each
                for each in self._store.find_sessions(session)
                if session in (each.native_id, f"{each.host}/{each.native_id}")
            ]
        except BackstoryError as exc:
            logger.warning("no session is known: %s", exc)
            return []

    def write_logs(
        self,
        *,
        since: date | str | None = None,
        on_session: Callable[[str, int], None] | None = None,
    ) -> LogReport:
        """Write the daily logs that are due, now.

        ``since`` is a day: every session that was active from then on is due. Raises
        ``NoModel`` when no language model is configured.
        """
        if since is not None:
            day = to_day(since, "since") or date.min
            active_since = from_microseconds(start_of_day(day)).at
            where = SessionFilter(active_since=active_since)
            for session in self._store.list_sessions(where):
                self._summaries.mark_due(session, "asked for", wake=False)
        return self._summaries.write(on_session)

    def curate(self) -> Curation:
        """Tidy the long-term memory with the language model; keeps a backup.

        Raises ``NoModel`` where there is none, ``ProviderError`` when it fails, and
        ``NotesConflict`` when MEMORY.md was changed meanwhile.
        """
        return self._summaries.curate()

    # -- the prompt ---

    def context(
        self, prompt: str, *, session: str | None = None, max_tokens: int | None = None
    ) -> Context:
        """What to put below the system prompt of an agent that is asked ``prompt``.

        The long-term memory, and what was said or noted that fits the prompt, but for
        what ``session`` itself has said. Never raises: whatever goes wrong, the prompt
        goes without memories.
        """
        try:
            return self._context(prompt, session, max_tokens)
        except Exception:
            # A prompt must not fail for want of memories, whatever the cause.
            logger.exception("no memories for this prompt")
            return Context()

    def _context(
        self, prompt: str, session: str | None, max_tokens: int | None
    ) -> Context:
        budget = self.settings.whole("context.max_tokens")
        if max_tokens is not None:
            budget = to_number(max_tokens, "max_tokens")
        notes = ""
        try:
            notes = self.notebook.read_memory()
        except BackstoryError as exc:
            logger.warning("no long-term memory for this prompt: %s", exc)
        asking = [] if session is None else self._named(session)
        hits: tuple[Hit, ...] = ()
        most = self.settings.whole("context.max_memories")
        try:
            hits = self._find_memories(prompt, asking, 3 * most)
        except BackstoryError as exc:
            logger.warning("no relevant memories for this prompt: %s", exc)
        return build_context(
            notes,
            hits,
            max_tokens=budget,
            max_memories=most,
            said=list(self._said_last(asking)) if hits else (),
        )

    def _find_memories(
        self, prompt: str, asking: Sequence[Session], limit: int
    ) -> tuple[Hit, ...]:
        """What fits a prompt, but for what its own session and its subagents said."""
        query = parse_query(prompt, today=self._clock().astimezone().date())
        if not limit or not is_worth_searching(query):
            return ()
        own = {(each.host, each.native_id) for each in asking}
        request = Request(
            prompt,
            REMEMBERED,
            # Some of them are in the long-term memory already.
            limit=limit,
            without_sessions=frozenset(each.session_id for each in asking),
            timeout_s=self.settings.number("context.timeout_seconds"),
            weights=self._weights(),
        )
        hits = self._search.search(request).hits
        headings = tuple(heading_start(each) for each in asking)
        kept = tuple(
            hit
            for hit in hits
            if not (hit.session and (hit.session.host, hit.session.parent_id) in own)
            and not any(heading in hit.heading for heading in headings)
        )
        on_days = tuple(hit for hit in kept if hit.is_on_named_day)
        return on_days or kept

    def _said_last(self, asking: Iterable[Session]) -> Iterator[str]:
        for session in asking:
            first = max(0, session.message_count - _SAID_LAST)
            for message in self._store.iter_messages(session.session_id, first=first):
                if message.role in (Role.USER, Role.ASSISTANT):
                    yield message.text

    # -- reading the sources ---

    def index(
        self,
        *,
        host: str | None = None,
        path: str | Path | None = None,
        on_progress: OnProgress | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> IndexReport:
        """Read what the agents on this machine have written since the last time.

        ``host`` reads one program only; ``path`` one file or folder, wherever it lies.
        One reading runs at a time; ``on_wait`` is called when another has to end first.
        """
        return self._reader.index(
            host,
            path,
            update=self._update_index,
            on_progress=on_progress,
            on_wait=on_wait,
        )

    def _update_index(self) -> IndexReport:
        """Make what was read findable; returns what could not be read of the notes."""
        problems = self._maintainer.update()
        return IndexReport(problems=tuple(problems))

    def watch(
        self,
        *,
        host: str | None = None,
        path: str | Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[IndexReport]:
        """Index again and again; yields the report of each reading."""
        while True:
            started = time.monotonic()
            report = self.index(host=host, path=path)
            yield report
            took = time.monotonic() - started
            # On a machine with very many files, looking must not become all it does.
            sleep(max(self.settings.number("index.watch_seconds"), took * 10))

    def _projects(self) -> list[str]:
        """The folders that sessions were seen in, and the one the person stands in."""
        here = [str(self._machine.folder)] if self._machine.folder else []
        return list(dict.fromkeys([*here, *self._store.list_projects()]))

    def _find_guidance(self) -> Iterator[FoundNote | Problem]:
        """The files in which projects tell agents how to work."""
        return find_guidance(
            self._projects(), user_home=self._machine.home, exclude=self._rules.exclude
        )

    # -- searching ---

    def search(
        self,
        query: str,
        *,
        scope: str = "all",
        sources: Collection[HitSource | str] | str | None = None,
        host: str | None = None,
        project: str | Path | None = None,
        date_from: date | str | None = None,
        date_to: date | str | None = None,
        days: int = 0,
        limit: int = 10,
        session: str | None = None,
    ) -> SearchResult:
        """Find what was said or noted, best first.

        ``scope`` is all, memory, daily_log or sessions; ``sources`` narrows it to some
        kinds of hits, or widens it to ``guidance``. Days are local and both ends count;
        ``days`` takes only the last so many. ``session`` is the one that asks: what it
        is just saying is not found.
        """
        period = to_period(date_from, date_to, days, now=self._clock())
        request = self._request(
            query,
            to_sources(scope, sources),
            limit=limit,
            period=period,
            host=host,
            project=project,
            session=session,
        )
        if period.why_empty:
            return SearchResult(request.text, notices=(period.why_empty,))
        result = self._search.search(request)
        notices = result.notices
        if result.is_weak:
            notices += tuple(self._suggest(request.text))
        hits = tuple(map(self._with_reply, result.hits))
        return replace(result, hits=hits, notices=notices)

    def recall(
        self,
        query: str,
        *,
        source_type: str = "all",
        limit: int = 10,
        session: str | None = None,
    ) -> RecallResult:
        """Find stretches of conversations and files, best first.

        ``source_type`` is conversation, file or all.
        """
        request = self._request(
            query, to_source_type(source_type), limit=limit, session=session
        )
        weights = replace(
            request.weights,
            words=request.weights.message_words,
            sources=dict.fromkeys(HitSource, 1.0),
            decay_per_day=0.0,
        )
        return self._search.recall(replace(request, weights=weights))

    def episodes(
        self,
        query: str,
        *,
        host: str | None = None,
        project: str | Path | None = None,
        date_from: date | str | None = None,
        date_to: date | str | None = None,
        days: int = 0,
        limit: int = 10,
        session: str | None = None,
    ) -> EpisodeResult:
        """Find messages with the query in them, the newest first, each with what was
        said before and after it."""
        period = to_period(date_from, date_to, days, now=self._clock())
        request = self._request(
            query,
            frozenset({HitSource.MESSAGE}),
            limit=limit,
            period=period,
            host=host,
            project=project,
            session=session,
        )
        if period.why_empty:
            return EpisodeResult(request.text, notices=(period.why_empty,))
        result = self._search.episodes(request)
        if result.episodes:
            return result
        meant = tuple(self._suggest(request.text))
        return replace(result, notices=result.notices + meant)

    def _request(
        self,
        query: str,
        sources: frozenset[HitSource],
        *,
        limit: int,
        session: str | None,
        period: Period = EVER,
        host: str | None = None,
        project: str | Path | None = None,
    ) -> Request:
        return Request(
            to_query(query),
            sources,
            limit=to_limit(limit),
            said_from=period.first,
            said_before=period.end,
            origins=self._origins(host, project),
            without=self._being_said(session),
            weights=self._weights(),
        )

    def _weights(self) -> Weights:
        """The settings as the ranking takes them."""
        number = self.settings.number
        return Weights(
            words=number("ranking.memory_words"),
            message_words=number("ranking.message_words"),
            sources={
                HitSource.MEMORY: number("ranking.memory_weight"),
                HitSource.DAILY_LOG: number("ranking.memory_weight"),
                HitSource.GUIDANCE: number("ranking.memory_weight"),
                HitSource.MESSAGE: number("ranking.message_weight"),
                HitSource.SESSION: number("ranking.session_weight"),
            },
            decay_per_day=number("ranking.decay_per_day"),
            decay_floor=number("ranking.decay_floor"),
            profile=self.settings.text("ranking.profile"),
        )

    def _origins(
        self, host: str | None, project: str | Path | None
    ) -> frozenset[int] | None:
        """The sessions of a program or a project, and the guidance files of that."""
        if host is None and project is None:
            return None
        found = self.sessions(host=host, project=project)
        origins = {each.session_id for each in found}
        if host is None:
            origins |= self._search.find_files({each.project for each in found})
        return frozenset(origins)

    def _being_said(self, session: str | None) -> frozenset[int]:
        """The messages of a session from the last word of its user on."""
        if session is None:
            return frozenset()
        try:
            asking = self.session(session)
        except UnknownName:
            return frozenset()
        # Its preview is the last thing said, too.
        session_unit = session_unit_id(asking.session_id)
        return frozenset(
            {session_unit, *self._store.list_latest_turn(asking.session_id)}
        )

    def _suggest(self, query: str) -> Iterator[str]:
        """The query with words put right that nobody ever said, if that is easy."""
        meant, today = query, self._clock().astimezone().date()
        with suppress(StoreProblem):
            for term in parse_query(query, today=today).subject:
                for word in self._near_words(term):
                    meant = meant.replace(term.text, word)
        if meant != query:
            yield f"did you mean '{meant}'?"

    def _near_words(self, term: Term) -> Iterator[str]:
        """The word said most often of those one letter away; none if it was said."""
        index, near = self._index_files.index, near_spellings(term.text)
        if not near or any(index.count_documents([term.spellings])):
            return
        counts = dict(
            zip(near, index.count_documents([(n,) for n in near]), strict=True)
        )
        for word in sorted(filter(counts.get, near), key=counts.__getitem__)[::-1]:
            # The index counts all that has the same stem, such as "bothing" for "both",
            # and finds parts of words.
            ids = index.find_text(word, UnitFilter(MESSAGES), _LOOKED_AT)
            said = self._store.get_messages(ids).values()
            if any(word in word_set(message.text) for message in said):
                yield word
                return

    def _with_reply(self, hit: Hit) -> Hit:
        if hit.role is not Role.USER or hit.session is None or hit.position is None:
            return hit
        reply, position = None, hit.position
        for _ in range(_REPLY_STEPS):
            _, after = self._store.find_beside(hit.session.session_id, position)
            if after is None or after.role is not Role.ASSISTANT:
                break
            # An agent says first what it will do, and last what came of it.
            reply, position = after, after.position
        return replace(hit, reply=reply)

    # -- the run in progress ---

    def new_run(self) -> "RunHistory":
        """A history for one run of a loop of your own, with the limits of settings."""
        # Only loops of one's own need it.
        from backstory.runs.history import RunHistory

        return RunHistory(self._run_limits)

    def live_run(
        self,
        session: str | None = None,
        *,
        transcript: str | Path | None = None,
        host: str | None = None,
    ) -> "LiveRun":
        """The run that an agent program has under way, read from its transcript.

        ``session`` is the id that the program gives to its hooks, ``transcript`` the
        path; one of them is enough. Only that session is read. Raises ``UnknownName``
        if no program has it, ``SourceUnreadable`` if it may not or cannot be followed.
        """
        # Only agents that are running need it.
        from backstory.runs.live import LiveSessions

        live = LiveSessions(self._machine, self._rules.exclude, self._excluded_hosts)
        return live.open(
            session, transcript=transcript, host=host, limits=self._run_limits
        )

    @property
    def _run_limits(self) -> RunLimits:
        return RunLimits(
            ttl_s=self.settings.number("run.ttl_minutes") * 60,
            max_bytes=self.settings.whole("run.max_bytes"),
            snippet_chars=self.settings.whole("run.snippet_chars"),
            answer_tokens=self.settings.whole("run.answer_tokens"),
        )

    def tools(
        self, *, session: str | None = None, run: "RunHistory | None" = None
    ) -> tuple["Tool", ...]:
        """The tools that an agent may be given; ``session`` is the one it runs in.

        With a ``run``, those that search the run are among them.
        """
        # Only agents need them.
        from backstory.tools import bind_tools

        return bind_tools(self, session=session, run=run)

    def embed(self, *, on_embedded: Callable[[int, int], None] | None = None) -> bool:
        """Make the vectors that are missing now; returns whether all are there.

        Raises ``ProviderError`` when the embedder fails; what it made before stays.
        """
        return self._maintainer.embed(on_embedded=on_embedded)

    def rebuild(
        self, *, on_taken: Callable[[int, int], None] | None = None
    ) -> IndexReport:
        """Make the index again from the history and the notes.

        The old one serves until the new one is whole. Vectors are kept.
        """
        problems = self._maintainer.rebuild(on_taken=on_taken)
        return IndexReport(problems=tuple(problems))

    def work(self) -> None:
        """Do what is left to do in the background, unless another process does."""
        self._maintainer.work()
        self._summaries.work()

    # -- looking ---

    def sessions(
        self,
        *,
        host: str | None = None,
        project: str | Path | None = None,
        since: date | str | None = None,
        limit: int | None = None,
    ) -> list[Session]:
        """The sessions there are, the most recently active first.

        ``project`` is a folder: as a path, sessions that ran in it or below it; as a
        name, sessions that ran in any folder called so, or whose path ends so. Raises
        ``UnknownName`` when no session ran there. ``since`` is a day or a time.
        """
        if host is not None:
            self._check_host(host)
        where = SessionFilter(
            host,
            active_since=to_instant(since, "since"),
            limit=None if limit is None else to_limit(limit),
        )
        if project is None:
            return self._store.list_sessions(where)
        found = [
            session
            for each in in_project(where, project, self._store.list_projects())
            for session in self._store.list_sessions(each)
        ]
        # Several folders of that name come one after the other.
        distinct = {session.session_id: session for session in found}
        return sorted(distinct.values(), key=_recency, reverse=True)[: where.limit]

    def _check_host(self, host: str) -> None:
        """Raise ``UnknownName`` for a host that neither we nor the store know."""
        stored = {count.host for count in self._store.count_by_host()}
        if host not in stored:
            get_host(host, also=stored)

    def session(self, name: str) -> Session:
        """The session of that id, of ``host/id``, or whose id begins so.

        Raises ``UnknownName`` when there is none, or more than one.
        """
        found = self._store.find_sessions(name) if name else []
        # A subagent's id may begin with its parent's, which is then the one meant.
        ids = {each.native_id for each in found}
        found = [each for each in found if not _is_below(each.native_id, ids)]
        if not found:
            raise UnknownName(
                f"no session is called '{name}'",
                hint="run 'backstory sessions' to see them all",
            )
        if len(found) > 1:
            names = ", ".join(f"{each.host}/{each.native_id}" for each in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            raise UnknownName(
                f"'{name}' fits {len(found)} sessions", hint=f"say which: {names}{more}"
            )
        return found[0]

    def messages(
        self,
        session: Session | str,
        *,
        around: str | int | None = None,
        context: int = 5,
    ) -> Iterator[Message]:
        """The messages of a session in order; or ``context`` each side of one.

        ``around`` is a message's number or its own id.
        """
        if isinstance(session, str):
            session = self.session(session)
        if around is None:
            return self._store.iter_messages(session.session_id)
        middle = self._store.find_message(session.session_id, str(around))
        if middle is None:
            raise UnknownName(
                f"no message of session {session.native_id} is called '{around}'",
                hint=f"run '{show_command(session.native_id)}' to see their numbers",
            )
        context = max(0, to_number(context, "context"))
        return self._store.iter_messages(
            session.session_id,
            first=max(0, middle.position - context),
            last=middle.position + context,
        )

    def sources(self) -> list[SourceSummary]:
        """What each agent program has on this machine, and how much was read."""
        return self._reader.sources()

    def status(self) -> Status:
        """How much is kept, when it was last read, and what went wrong."""
        counts = self._store.count_by_host()
        return Status(
            home=str(self.home),
            sessions=sum(count.sessions for count in counts),
            messages=sum(count.messages for count in counts),
            size_bytes=self._store.size_bytes(),
            sessions_by_host={c.host: c.sessions for c in counts if c.sessions},
            last_read_at=self._reader.last_read_at(),
            problems=tuple(self._store.list_problems()),
            index=self._maintainer.status(),
            logs=self._summaries.status(),
        )


def _recency(session: Session) -> tuple[datetime, int]:
    active = session.last_active
    return (active.at if active else _NEVER, session.session_id)


def _is_below(native_id: str, others: Collection[str]) -> bool:
    return any(native_id.startswith(f"{other}/") for other in others)


def _read_hosts(settings: Settings, name: str) -> frozenset[str]:
    """The agent programs that a setting names: a typo must not go unnoticed."""
    try:
        return frozenset(get_host(host).name for host in settings.texts(name))
    except UnknownName as exc:
        raise ConfigError(f"{name}: {exc}", hint=exc.hint) from exc
