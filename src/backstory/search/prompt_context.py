"""Put the right memories into a prompt: the long-term memory, and what fits the prompt.

All of it is data from files and conversations that anybody may have written, so it is
put under headings of ours, on lines that cannot pass for headings. It never exceeds its
token budget; if nothing fits the prompt, nothing is added.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import islice, pairwise
from pathlib import Path

from backstory.errors import BackstoryError
from backstory.notes.daily_logs import split_blocks
from backstory.notes.facts import MAX_GIVEN_LINES
from backstory.notes.notebook import Notebook
from backstory.search.hydrate import add_replies
from backstory.search.search import Search
from backstory.search.worth import choose_worthy
from backstory.store.base.history import HistoryStore, find_exactly_named
from backstory.text.arguments import to_number, to_path, to_text
from backstory.text.cut import one_line
from backstory.text.envelope import QUOTED, label, quote_content
from backstory.text.excerpts import excerpt
from backstory.text.memories_frame import (
    MEMORIES_END,
    MEMORY_HEADING,
    MEMORY_NOTE,
    RELEVANT_HEADING,
    RELEVANT_NOTE,
    MemoriesFrame,
    keep_all,
)
from backstory.text.redaction import mask_secrets
from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.tokens import CountTokens, most_tokens
from backstory.text.words import fold, word_set
from backstory.values.history import Role, Session
from backstory.values.hits import Hit, HitSource
from backstory.values.query import Query
from backstory.values.units import SessionRef

logger = logging.getLogger(__name__)

# The kinds of hits that may become memories: not titles, and not guidance files.
REMEMBERED = frozenset({HitSource.MEMORY, HitSource.DAILY_LOG, HitSource.MESSAGE})
_MAX_MEMORY_CHARS = 800
_MAX_REPLY_CHARS = 400
# How many of the best hits are considered.
_CONSIDERED = 15
# How many of a session's last messages are compared with its memories.
_RECENT_MESSAGES = 100
_MAX_TITLE_CHARS = 60
# The share kept for relevant memories if the long-term memory would fill everything.
_RELEVANT_SHARE = 0.4

_NOTES = {MEMORY_HEADING: MEMORY_NOTE, RELEVANT_HEADING: RELEVANT_NOTE}
_TITLE = re.compile(r"#\s*long-term memory\s*", re.IGNORECASE)
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_HEADING_MARKS = re.compile(r"^\s{0,3}#{1,2}(?=\s|$)")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])\s")
_FENCE = re.compile(r"\s*(```|~~~)")
# A prompt of nothing but these words needs no memories.
_SMALL_TALK = """
    ok okay yes yep no nope thanks thank continue go going next done great good fine
    please proceed sure right nice cool hi hello hey perfect again retry resume start
    weiter danke ja nein gut genau bitte hallo merci oui non bonjour gracias vale hola
"""


@dataclass(frozen=True, slots=True)
class Context:
    """What to put below the system prompt, and what it was made from.

    ``text`` is empty if there is nothing to add; ``tokens`` is what it costs as the
    caller counts, or else the most it can cost; ``memories`` are the hits in it, found
    for the query ``parsed``.
    """

    text: str = ""
    tokens: int = 0
    memories: tuple[Hit, ...] = ()
    parsed: Query | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """What the settings say about prompts."""

    max_tokens: int
    max_memories: int
    timeout_s: float


class PromptContext:
    """Finds and formats the memories that a prompt is given.

    ``is_log_of`` says whether the block of a daily log with that marker is about a
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
        frame: MemoriesFrame,
        folder: Path | None,
        count_tokens: CountTokens,
    ) -> None:
        self._search = search
        self._history = history
        self._notebook = notebook
        self._options = options
        self._is_log_of = is_log_of
        self._frame = frame
        self._folder = folder
        self._count_tokens = count_tokens

    def build(
        self,
        prompt: str,
        *,
        session: str | None,
        max_tokens: int | None,
        project: str | Path | None,
    ) -> Context:
        """Build what to put below the system prompt. Never raises.

        ``session`` is the prompt's own; what was said in it is left out. ``project`` is
        the folder that it is about; None for the current one.
        """
        try:
            return self._build(prompt, session, max_tokens, project)
        except Exception:
            # A prompt must not fail because its memories do, whatever the cause.
            logger.exception("no memories for this prompt")
            return Context()

    def _build(
        self,
        prompt: str,
        session: str | None,
        max_tokens: int | None,
        project: str | Path | None,
    ) -> Context:
        budget = self._options.max_tokens
        if max_tokens is not None:
            budget = to_number(max_tokens, "max_tokens")
        notes = ""
        try:
            notes = self._notebook.read_beginning()
        except BackstoryError as exc:
            logger.warning("no long-term memory for this prompt: %s", exc)
        asking: Sequence[Session] = ()
        hits: tuple[Hit, ...] = ()
        query: Query | None = None
        try:
            if session is not None:
                name = to_text(session, "session")
                asking = find_exactly_named(self._history, name)
            query = self._search.parse(prompt)
            folder = self._find_folder(project)
            hits = self._find_memories(query, asking, folder)
        except BackstoryError as exc:
            logger.warning("no relevant memories for this prompt: %s", exc)
        context = build_context(
            notes,
            hits,
            max_tokens=budget,
            count_tokens=self._count_tokens,
            max_memories=self._options.max_memories,
            said=list(self._iter_said(asking)) if hits else (),
            seal=self._frame.seal,
            query=query,
        )
        return replace(context, parsed=query) if context.memories else context

    def _find_folder(self, project: str | Path | None) -> Path | None:
        if project is None:
            return self._folder
        return Path(self._folder or "/", to_path(project, "project"))

    def _find_memories(
        self, query: Query, asking: Sequence[Session], folder: Path | None
    ) -> tuple[Hit, ...]:
        """Hits worth adding to a prompt, not of its own session and subagents."""
        if not self._options.max_memories or not is_worth_searching(query):
            return ()
        request = replace(
            self._search.make_plain_request(query, REMEMBERED),
            limit=_CONSIDERED,
            without_containers=frozenset(
                SessionRef(each.session_id) for each in asking
            ),
            timeout_s=self._options.timeout_s,
        )
        own = {(each.host, each.native_id) for each in asking}
        is_in_own_log = self._own_log_check(asking)
        hits = [
            hit
            for hit in self._search.find_hits(request).hits
            if not (hit.session and (hit.session.host, hit.session.parent_id) in own)
            and not is_in_own_log(hit)
        ]
        return add_replies(choose_worthy(hits, folder), self._history)

    def _own_log_check(self, asking: Sequence[Session]) -> Callable[[Hit], bool]:
        """A check whether a hit is what a daily log says about the session that asks.

        Its blocks are known by their markers: a title may change, or be another's too.
        """

        @cache
        def read_own_blocks(day: date) -> list[str]:
            return [
                " ".join(block.text.split())
                for block in split_blocks(self._notebook.read_log(day) or "")
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


def is_worth_searching(query: Query) -> bool:
    """Whether a prompt says enough to search for memories."""
    if query.days:
        return True
    words = {fold(term.text) for term in query.subject}
    return not words <= frozenset(_SMALL_TALK.split())


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
) -> Context:
    """Format the long-term memory and the hits that add to it within ``max_tokens``.

    ``said`` is what was said in the prompt's own session, which is not repeated.
    ``seal`` marks the text as ours. Of long texts, what fits the ``query`` is shown.
    """
    sections = _Sections(list(_iter_pieces(memory)), hits, said, max_memories, query)
    cost = _LineCost(count_tokens)
    room = max_tokens
    while True:
        text, shown = sections.write(room, cost)
        text = seal(text)
        tokens = count_tokens(text) if text else 0
        if tokens <= max_tokens or not text:
            return Context(text, tokens, shown)
        # The whole may cost a little more than its lines.
        room -= tokens - max_tokens


class _LineCost:
    """What lines cost: what they add to a text, counted once for each."""

    def __init__(self, count_tokens: CountTokens) -> None:
        self._count = count_tokens
        self._before = count_tokens(RELEVANT_NOTE)
        self._known: dict[str, int] = {}

    def __call__(self, pieces: Iterable[str]) -> int:
        return sum(map(self._cost, pieces))

    def _cost(self, piece: str) -> int:
        if piece not in self._known:
            after = self._count(f"{RELEVANT_NOTE}\n{piece}")
            self._known[piece] = max(0, after - self._before)
        return self._known[piece]


@dataclass(frozen=True, slots=True)
class _Sections:
    """What may be put into a prompt: pieces of the long-term memory, and hits."""

    pieces: Sequence[str]
    hits: Sequence[Hit]
    said: Sequence[str]
    max_memories: int
    query: Query | None

    def write(self, room: int, cost: _LineCost) -> tuple[str, tuple[Hit, ...]]:
        """As much as fits into some tokens, and the hits that are in it."""
        room -= cost([MEMORIES_END])
        whole = _fit(MEMORY_HEADING, self.pieces, room, cost)
        given = [*whole, *self.said]
        new = list(islice(_new_hits(self.hits, given), self.max_memories))
        lines = [_to_line(hit, self.query) for hit in new]
        reserved = min(
            round(_RELEVANT_SHARE * room), cost(_section(RELEVANT_HEADING, lines))
        )
        if lines and room - cost(whole) < reserved:
            whole = _fit(MEMORY_HEADING, self.pieces, room - reserved, cost)
        relevant = _fit(RELEVANT_HEADING, lines, room - cost(whole), cost)
        parts = [_joined(part) for part in (whole, relevant) if part]
        text = "\n\n".join(parts) + f"\n{MEMORIES_END}" if parts else ""
        shown = zip(new, lines, strict=True)
        return text, tuple(hit for hit, line in shown if line in relevant)


def _section(heading: str, pieces: Sequence[str]) -> list[str]:
    return [heading, f"{_NOTES[heading]}\n", *pieces]


def _fit(
    heading: str, pieces: Sequence[str], max_tokens: int, cost: _LineCost
) -> list[str]:
    """A section with as many whole pieces as fit; empty if none does."""
    head = _section(heading, [])
    kept: list[str] = []
    # A blank line comes before the next section.
    left = max_tokens - cost(head) - 1
    for piece in pieces:
        if (rest := left - cost([piece])) >= 0:
            kept.append(piece)
            left = rest
    # A heading with nothing under it is left out.
    shown = [
        piece
        for piece, after in pairwise([*kept, "#"])
        if not (_is_heading(piece) and _is_heading(after))
    ]
    return [*head, *shown] if shown else []


def _joined(pieces: Sequence[str]) -> str:
    """Join pieces by line, with a blank line before each topic except the first."""
    head, note, *rest = pieces
    lines = [f"\n{piece}" if _is_heading(piece) else piece for piece in rest]
    return "\n".join([head, note, "\n".join(lines).removeprefix("\n")])


def _is_heading(piece: str) -> bool:
    return _HEADING.match(piece.removeprefix(QUOTED)) is not None


# -- the long-term memory -------------------------------------------------------------


def _iter_pieces(memory: str) -> Iterator[str]:
    """The first lines of MEMORY.md as headings, facts and paragraphs, safe to show."""
    lines = mask_secrets(memory).removeprefix("\ufeff").splitlines()[:MAX_GIVEN_LINES]
    piece: list[str] = []
    fence = None
    for line in lines:
        marked = _FENCE.match(line)
        is_start = fence is None and (
            not line.strip() or _HEADING.match(line) or _ITEM.match(line)
        )
        if is_start or (piece and _HEADING.match(piece[0])):
            yield from _shown(piece)
            piece = []
        if line.strip() and not _TITLE.fullmatch(line):
            piece.append(line)
        if marked:
            fence = None if fence == marked[1] else fence or marked[1]
    yield from _shown(piece)


def _shown(piece: Sequence[str]) -> Iterator[str]:
    if piece:
        # Below the level of our own headings.
        lines = [_HEADING_MARKS.sub("###", line) for line in piece]
        yield quote_content("\n".join(lines))


# -- what fits the prompt -------------------------------------------------------------


def _new_hits(hits: Iterable[Hit], given: Sequence[str]) -> Iterator[Hit]:
    """The hits that say something the prompt does not have already."""
    known = fold("\n".join(given))
    known_words = [word_set(piece) for piece in given]
    for hit in hits:
        # Compared as the agent would see it.
        text = mask_secrets(hit.text).strip()
        words = word_set(text)
        is_known = fold(text) in known or any(
            overlap(words, other) > DUPLICATE_SHARE for other in known_words
        )
        if not is_known:
            yield hit


def _to_line(hit: Hit, query: Query | None) -> str:
    """A memory on one line, after where it comes from and its date.

    What the agent answered to it follows on a line of its own.
    """
    line = f"- [{_provenance(hit)}] {_speaker(hit.role)}"
    line += _cut(hit.text, query, _MAX_MEMORY_CHARS)
    if hit.reply is not None:
        said = _cut(hit.reply.text, query, _MAX_REPLY_CHARS)
        line += f"\n  {_speaker(hit.reply.role)}{said}"
    return line


def _speaker(role: Role | None) -> str:
    return "" if role is None else f"{role.speaker}: "


def _cut(text: str, query: Query | None, max_chars: int) -> str:
    """The part of a text that fits the query, on one line."""
    # Masked before it is cut: half a secret would not be recognized.
    text = mask_secrets(text)
    if query is not None:
        text = excerpt(text, query, max_chars=max_chars)
    return one_line(quote_content(text), max_chars)


def _provenance(hit: Hit) -> str:
    day = "" if hit.said is None else f" {hit.said.in_local_zone().date().isoformat()}"
    if hit.source is HitSource.MEMORY:
        return "Long-term memory"
    if hit.source is HitSource.DAILY_LOG:
        return f"Daily log{day}"
    title = "" if hit.session is None else mask_secrets(hit.session.title)
    title = label(title, _MAX_TITLE_CHARS)
    return f"Conversation{day}" + (f' "{title}"' if title else "")
