"""Put the right memories into a prompt: the long-term memory, and what fits the prompt.

All of it is data from files and conversations that anybody may have written, so it is
put under headings of ours, on lines that cannot pass for headings. It never exceeds its
token budget; if nothing fits the prompt, nothing is added.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from itertools import islice
from pathlib import Path

from backstory.errors import BackstoryError
from backstory.notes.daily_logs import split_blocks
from backstory.notes.notebook import Notebook
from backstory.search.by_words import (
    is_worth_searching,
    leave_out_known,
    memory_key,
    show_replies_once,
)
from backstory.search.memory_lines import (
    LONG_TERM,
    name_conversation,
    name_log,
    write_memory,
    write_session,
)
from backstory.search.newer import add_newer
from backstory.search.outcomes import add_outcomes
from backstory.search.projects import is_same_project
from backstory.search.search import Search
from backstory.search.sections import (
    LineCost,
    fit_section,
    iter_memory_pieces,
    join_section,
    make_section,
    write_frame,
)
from backstory.search.warm_ups import without_warm_ups
from backstory.search.worth import choose_worthy, is_of_project
from backstory.store.base.history import HistoryStore, find_exactly_named
from backstory.text.arguments import (
    check_keys,
    check_text,
    to_max_tokens,
    to_path,
    to_text,
)
from backstory.text.memories_frame import (
    MEMORIES_END,
    MEMORY_HEADING,
    RELEVANT_HEADING,
    MemoriesFrame,
    keep_all,
)
from backstory.text.private import drop_private
from backstory.text.query import asks_what_was_done
from backstory.text.redaction import mask_secrets
from backstory.text.tokens import CountTokens, most_tokens
from backstory.values.history import Role, Session
from backstory.values.hits import Hit, HitSource
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct, replace
from backstory.values.units import SessionRef

logger = logging.getLogger(__name__)

# The kinds of hits that may become memories: not titles, and not guidance files.
REMEMBERED = frozenset({HitSource.MEMORY, HitSource.DAILY_LOG, HitSource.MESSAGE})
# How many of the best hits are considered.
_CONSIDERED = 15
# How many sessions of the days that a prompt asks for are listed.
_MAX_SESSIONS = 20
# How many of a session's last messages are compared with its memories.
_RECENT_MESSAGES = 100
# The share kept for relevant memories if the long-term memory would fill everything.
_RELEVANT_SHARE = 0.4


class Context(FrozenStruct):
    """What to put below the system prompt, and what it was made from.

    ``text`` is empty if there is nothing to add; ``tokens`` is its cost as the caller
    counts, or else its maximum cost; ``memories`` are the hits in it, found for the
    query ``parsed``.
    """

    text: str = ""
    tokens: int = 0
    memories: tuple[Hit, ...] = ()
    parsed: Query | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """What identifies the memories, to pass as ``given`` with the next prompt."""
        return tuple(memory_key(hit.text) for hit in self.memories)

    def __str__(self) -> str:
        return self.text


class ContextOptions(FrozenStruct):
    """What the settings say about prompts."""

    max_tokens: int
    max_memories: int
    timeout_s: float


class PromptContext:
    """Finds and formats the memories that a prompt is given.

    ``is_log_of`` says whether the block of a daily log with a certain marker is about a
    session; ``folder`` is the current one.
    """

    def __init__(
        self,
        search: Search,
        history: HistoryStore,
        notebook: Notebook,
        options: ContextOptions,
        *,
        is_log_of: Callable[[str, Session], bool],
        get_frame: Callable[[], MemoriesFrame],
        folder: Path | None,
        count_tokens: CountTokens,
    ) -> None:
        self._search = search
        self._history = history
        self._notebook = notebook
        self._options = options
        self._is_log_of = is_log_of
        self._get_frame = get_frame
        self._folder = folder
        self._count_tokens = count_tokens

    def build(
        self,
        prompt: str,
        *,
        session: str | None,
        max_tokens: int | None,
        project: str | Path | None,
        given: Collection[str] | None = None,
    ) -> Context:
        """Build what to put below the system prompt. Never raises.

        ``session`` is the prompt's own; what was said in it is left out. ``project`` is
        the folder that the prompt is about; None for the current one. ``given`` are the
        keys of the memories that the session already has; if passed, it also has the
        long-term memory.
        """
        try:
            return self._build(prompt, session, max_tokens, project, given)
        except BackstoryError as exc:
            # The message says what is wrong; a traceback would not help anybody.
            logger.warning("no memories for this prompt: %s", exc)
        except Exception:
            # A prompt must not fail because its memories fail, for whatever reason.
            logger.exception("no memories for this prompt")
        return Context()

    def _build(
        self,
        prompt: str,
        session: str | None,
        max_tokens: int | None,
        project: str | Path | None,
        given: Collection[str] | None,
    ) -> Context:
        budget = self._options.max_tokens
        if max_tokens is not None:
            budget = to_max_tokens(max_tokens)
        check_keys(given, "given")
        notes = ""
        try:
            notes = self._notebook.read_beginning()
        except BackstoryError as exc:
            logger.warning("no long-term memory for this prompt: %s", exc)
        asking: Sequence[Session] = ()
        hits: tuple[Hit, ...] = ()
        overview: list[str] = []
        query: Query | None = None
        try:
            if session is not None:
                name = to_text(session, "session")
                asking = find_exactly_named(self._history, name)
            query = self._search.parse(check_text(prompt, "prompt"))
            folder = self._find_folder(project)
            hits = self._find_memories(query, asking, folder)
            hits = tuple(
                hit for hit in hits if memory_key(hit.text) not in (given or ())
            )
            overview = self._list_sessions(query, asking, folder)
            if overview:
                hits = tuple(hit for hit in hits if hit.session is None)
        except BackstoryError as exc:
            logger.warning("no relevant memories for this prompt: %s", exc)
        context = build_context(
            notes,
            hits,
            max_tokens=budget,
            count_tokens=self._count_tokens,
            max_memories=self._options.max_memories,
            said=list(self._iter_said(asking)) if hits else (),
            seal=self._get_frame().seal,
            query=query,
            overview=overview,
            is_memory_given=given is not None,
        )
        return replace(context, parsed=query) if context.memories else context

    def _find_folder(self, project: str | Path | None) -> Path | None:
        if project is None:
            return self._folder
        return Path(self._folder or "/", to_path(project, "project"))

    def _find_memories(
        self, query: Query, asking: Sequence[Session], folder: Path | None
    ) -> tuple[Hit, ...]:
        """Hits worth adding to a prompt, not of its own session or its subagents."""
        if not self._options.max_memories or not is_worth_searching(query):
            return ()
        request = replace(
            self._search.make_plain_request(
                query, REMEMBERED, folder=folder, is_for_agent=True
            ),
            limit=_CONSIDERED,
            without_containers=frozenset(
                SessionRef(each.session_id) for each in asking
            ),
            timeout_s=self._options.timeout_s,
            # An error message quoted in the prompt is in many tool results.
            is_spoken=True,
        )
        own = {(each.host, each.native_id) for each in asking}
        is_in_own_log = self._own_log_check(asking)

        def is_of_others(hit: Hit) -> bool:
            parent = hit.session and (hit.session.host, hit.session.parent_id)
            is_own = parent in own or is_in_own_log(hit)
            return not is_own and request.own.shows_hit(hit)

        worthy: Sequence[Hit] | None = None
        if not query.days:
            worthy = self._search.find_by_words(
                request, lambda hit: is_of_project(hit, folder) and is_of_others(hit)
            )
        if worthy is None:
            found = filter(is_of_others, self._search.find_hits(request).hits)
            asked = without_warm_ups(found, self._history)
            hits = list(add_outcomes(asked, self._history))
            worthy = choose_worthy(
                hits, folder, asks_for_days=asks_what_was_done(query)
            )
            worthy = add_newer(query, worthy, hits)
        else:
            worthy = list(add_outcomes(worthy, self._history))
        return tuple(_show_replies_once(worthy))

    def _list_sessions(
        self, query: Query, asking: Sequence[Session], folder: Path | None
    ) -> list[str]:
        """The sessions of the project if a prompt asks what was done on some days.

        If it names another project, those of that one. Empty if there are so few that
        their messages say it better.
        """
        if not query.days or not self._options.max_memories:
            return []
        request = self._search.make_plain_request(
            query, REMEMBERED, folder=folder, is_for_agent=True
        )
        activity = self._search.find_activity(request)
        names_project = not asks_what_was_done(query)
        own = {each.session_id for each in asking}
        lines = (
            write_session(
                day.day.isoformat(), each.session.title, each.messages, each.name
            )
            for day in (activity.days if activity else ())
            for project in day.projects
            if names_project
            or folder is None
            or project.project is None
            or is_same_project(project.project, folder)
            for each in project.sessions
            if each.session.session_id not in own
        )
        listed = list(islice(lines, _MAX_SESSIONS))
        is_enough = names_project or len(listed) > self._options.max_memories
        return listed if is_enough else []

    def _own_log_check(self, asking: Sequence[Session]) -> Callable[[Hit], bool]:
        """A check whether a hit is what a daily log says about the asking session.

        Its blocks are recognized by their markers: titles change, and need not be
        unique.
        """

        @cache
        def read_own_blocks(day: date) -> list[str]:
            return [
                " ".join(block.text.split())
                for block in split_blocks(
                    drop_private(self._notebook.read_log(day) or "")
                )
                if block.marker
                and any(self._is_log_of(block.marker, session) for session in asking)
            ]

        def is_in_own_log(hit: Hit) -> bool:
            if hit.source is not HitSource.DAILY_LOG or hit.path is None or not asking:
                return False
            with suppress(ValueError):
                text = " ".join(hit.text.split())
                day = date.fromisoformat(Path(hit.path).stem)
                return any(text in block for block in read_own_blocks(day))
            return False

        return is_in_own_log

    def _iter_said(self, asking: Iterable[Session]) -> Iterator[str]:
        for session in asking:
            first = max(0, session.message_count - _RECENT_MESSAGES)
            for message in self._history.iter_messages(session.session_id, first=first):
                if message.role in (Role.USER, Role.ASSISTANT):
                    yield message.text


def build_context(
    memory: str,
    hits: Sequence[Hit],
    *,
    max_tokens: int,
    count_tokens: CountTokens = most_tokens,
    max_memories: int = 3,
    said: Sequence[str] = (),
    seal: Callable[[str], str] = keep_all,
    query: Query | None = None,
    overview: Sequence[str] = (),
    is_memory_given: bool = False,
) -> Context:
    """Format the long-term memory and the hits that add to it within ``max_tokens``.

    ``said`` is what was said in the prompt's own session, which is not repeated.
    ``seal`` marks the text as ours. Of a long text, only the part that fits the
    ``query`` is shown. ``overview`` are lines that follow the hits.
    ``is_memory_given``: the session already has the long-term memory, so it is not
    repeated.
    """
    pieces = list(iter_memory_pieces(memory))
    if is_memory_given:
        pieces, said = [], [*pieces, *said]
    sections = _Sections(pieces, hits, said, max_memories, query, overview)
    shown: tuple[Hit, ...] = ()

    def write(room: int, cost: LineCost) -> str:
        nonlocal shown
        text, shown = sections.write(room, cost)
        return text

    text, tokens = write_frame(
        write, max_tokens=max_tokens, count_tokens=count_tokens, seal=seal
    )
    return Context(text, tokens, shown if text else ())


class _Sections(FrozenStruct):
    """What may be put into a prompt: pieces of the long-term memory, and hits."""

    pieces: Sequence[str]
    hits: Sequence[Hit]
    said: Sequence[str]
    max_memories: int
    query: Query | None
    overview: Sequence[str]

    def write(self, room: int, cost: LineCost) -> tuple[str, tuple[Hit, ...]]:
        """As much as fits into ``room`` tokens, and the hits that are in it."""
        room -= cost([MEMORIES_END])
        whole = fit_section(MEMORY_HEADING, self.pieces, room, cost)
        given = [*whole, *self.said]
        new = list(islice(_new_hits(self.hits, given), self.max_memories))
        memories = [_to_line(hit, self.query) for hit in new]
        lines = [*memories, *self.overview]
        reserved = min(
            round(_RELEVANT_SHARE * room), cost(make_section(RELEVANT_HEADING, lines))
        )
        if lines and room - cost(whole) < reserved:
            whole = fit_section(MEMORY_HEADING, self.pieces, room - reserved, cost)
        relevant = fit_section(RELEVANT_HEADING, lines, room - cost(whole), cost)
        parts = [join_section(part) for part in (whole, relevant) if part]
        text = "\n\n".join(parts) + f"\n{MEMORIES_END}" if parts else ""
        shown = zip(new, memories, strict=True)
        return text, tuple(hit for hit, line in shown if line in relevant)


# -- what fits the prompt -------------------------------------------------------------


def _show_replies_once(hits: Sequence[Hit]) -> Iterator[Hit]:
    """The hits to show, none twice, and none with a reply that is shown elsewhere."""
    # Messages by their ids, which are positive, and all other hits by negative numbers.
    numbered = {hit.message_id or -place: hit for place, hit in enumerate(hits, 1)}
    kept = show_replies_once(
        list(numbered),
        {
            number: hit.reply.message_id
            for number, hit in numbered.items()
            if hit.reply is not None
        },
        {number for number, hit in numbered.items() if hit.role is Role.USER},
    )
    for number, reply in kept.items():
        hit = numbered[number]
        yield hit if reply is not None else replace(hit, reply=None)


def _new_hits(hits: Sequence[Hit], given: Sequence[str]) -> Iterator[Hit]:
    """The hits that say something the prompt does not have already."""
    # Compared in the form in which the agent sees them.
    texts = (mask_secrets(hit.text).strip() for hit in hits)
    return (hits[place] for place in leave_out_known(texts, given))


def _to_line(hit: Hit, query: Query | None) -> str:
    reply = None
    if hit.reply is not None:
        reply = hit.reply.role.speaker, hit.reply.text
    return write_memory(
        _origin(hit), hit.speaker, hit.text, query, reply=reply, passage=hit.passage
    )


def _origin(hit: Hit) -> str:
    origin = _name_place(hit)
    if hit.newer is None:
        return origin
    return f"{origin}, newer: {_day(hit.newer)}"


def _name_place(hit: Hit) -> str:
    day = _day(hit)
    if hit.source is HitSource.MEMORY:
        return LONG_TERM
    if hit.source is HitSource.DAILY_LOG:
        return name_log(day)
    return name_conversation(day, hit.session.title if hit.session else "")


def _day(hit: Hit) -> str:
    return hit.said.in_local_zone().date().isoformat() if hit.said else ""
