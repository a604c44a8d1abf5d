"""Cut a session or a Markdown file into units that are found and chunks that are shown.

A unit is one message; its date and its short neighbours are searched along with it,
because a question helps to find its answer. A chunk is a run of whole messages of at
most about a thousand tokens; a longer message is a chunk of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from backstory.notes.find import UNIT_KINDS, FoundNote, NoteKind
from backstory.notes.sections import Section, group_blocks, iter_sections
from backstory.text.dates import day_words
from backstory.text.envelope import quote_after_label
from backstory.text.own_calls import is_own_tool_call
from backstory.text.passages import cut_passages
from backstory.text.redaction import mask_secrets
from backstory.text.tokens import rough_tokens
from backstory.values.history import Message, Role, Session, SessionKind
from backstory.values.identity import content_id
from backstory.values.moments import Moment, whole_day
from backstory.values.structs import FrozenStruct
from backstory.values.units import (
    OF_A_DAY,
    FileRef,
    NewChunk,
    NewUnit,
    SessionRef,
    UnitKind,
    session_unit_id,
)

MAX_CHUNK_TOKENS = 1024
# How far away a message's neighbours may be: there may be tool calls in between.
REACH = 8
# Long neighbours say more about themselves than about the message between them.
_SHORT_CHARS = 300
# A shorter message of an agent that is followed by a tool call says what the agent will
# do next. It is near to many questions and answers none, and in a large memory,
# thousands of such messages would be nearer to a question than its answer.
_STEP_CHARS = 150
# More than any model reads of a text.
MEANING_CHARS = 8_000

SPOKEN_ROLES = {
    Role.USER: UnitKind.USER,
    Role.ASSISTANT: UnitKind.ASSISTANT,
    Role.SUMMARY: UnitKind.SUMMARY,
}
_WITH_PASSAGES = frozenset({UnitKind.USER, UnitKind.ASSISTANT})
_NOTES = {
    SessionKind.MEMORY: UnitKind.MEMORY,
    SessionKind.DAILY_LOG: UnitKind.DAILY_LOG,
}
# The size of one unit of guidance.
_GUIDANCE_UNIT_TOKENS = 200
# A day has many messages.
_day_words = lru_cache(maxsize=1024)(day_words)


# -- units ----------------------------------------------------------------------------


def cut_units(
    session: Session, messages: Sequence[Message], first: int, last: int
) -> Iterator[NewUnit]:
    """The units of the messages from ``first`` to ``last`` and of their neighbours.

    ``messages`` are the session's, in order, with some more on both sides.
    """
    spoken = [m.position for m in messages if m.role in SPOKEN_ROLES]
    first = max((p for p in spoken if first - REACH <= p < first), default=first)
    last = min((p for p in spoken if last < p <= last + REACH), default=last)
    before = _nearest_spoken(messages)
    after = _nearest_spoken(messages[::-1])[::-1]
    calling = {m.position - 1 for m in messages if m.role is Role.TOOL_CALL}
    for message, said_before, said_after in zip(messages, before, after, strict=True):
        if first <= message.position <= last and _is_worth_finding(message):
            is_step = message.position in calling and _may_be_step(message)
            yield _to_unit(session, message, said_before, said_after, is_step=is_step)


def _is_worth_finding(message: Message) -> bool:
    """Whether a message has text, and is not a call of one of our own tools.

    A query to our tools would be found as its own answer the next time.
    """
    if not message.text or message.text.isspace():
        return False
    return message.role is not Role.TOOL_CALL or not is_own_tool_call(
        message.tool_name, message.text
    )


def _may_be_step(message: Message) -> bool:
    return message.role is Role.ASSISTANT and len(message.text) < _STEP_CHARS


def _to_unit(
    session: Session, message: Message, before: str, after: str, *, is_step: bool
) -> NewUnit:
    sent = message.sent or session.started
    kind = _unit_kind(session, message)
    if sent is not None and kind in OF_A_DAY:
        sent = whole_day(sent.in_own_zone().date())
    said_at = None if sent is None else sent.to_microseconds()
    if kind is UnitKind.OTHER:
        around, meaning = message.tool_name or "", None
    else:
        day = "" if sent is None else _day_words(sent.in_own_zone().date())
        around = "\n".join(filter(None, (before, after, day)))
        has_meaning = not is_step and kind is not UnitKind.TASK
        meaning = meaning_of(message) if has_meaning else None
    return NewUnit(
        unit_id=message.message_id,
        kind=kind,
        container=SessionRef(message.session_id),
        position=message.position,
        said_at=said_at,
        text=message.text,
        around=around,
        meaning=meaning,
        passages=passages_of(message) if kind in _WITH_PASSAGES else (),
    )


def _unit_kind(session: Session, message: Message) -> UnitKind:
    if session.kind in _NOTES:
        return _NOTES[session.kind]
    if session.is_task(message.role):
        return UnitKind.TASK
    return SPOKEN_ROLES.get(message.role, UnitKind.OTHER)


def meaning_of(message: Message) -> str:
    """What a message's vector is made from.

    The day and the neighbours help to find it by words, but would blur its meaning.
    """
    return message.text[:MEANING_CHARS]


def passages_of(message: Message) -> list[str]:
    """What the vectors of a long message's passages are made from."""
    return [message.text[first:last] for first, last in cut_passages(message.text)]


def _nearest_spoken(messages: Iterable[Message]) -> list[str]:
    """For each message, the text last spoken before it, if it is near and short."""
    nearest: list[str] = []
    said, position = "", 0
    for message in messages:
        is_near = abs(message.position - position) <= REACH
        nearest.append(said if is_near else "")
        if message.role in SPOKEN_ROLES:
            position = message.position
            said = message.text if len(message.text) <= _SHORT_CHARS else ""
    return nearest


def session_unit(session: Session) -> NewUnit | None:
    """The unit of a session's title and preview; None for notes."""
    if session.kind in _NOTES:
        return None
    active = session.last_active
    text = f"{session.title}\n{session.preview}".strip()
    if not text:
        return None
    return NewUnit(
        unit_id=session_unit_id(session.session_id),
        kind=UnitKind.SESSION,
        container=SessionRef(session.session_id),
        position=0,
        said_at=None if active is None else active.to_microseconds(),
        text=text,
    )


# -- chunks ---------------------------------------------------------------------------


def cut_chunks(messages: Iterable[Message]) -> Iterator[NewChunk]:
    """Group as many whole messages as fit; tool calls and results are left out."""
    first = last = tokens = 0
    for message in messages:
        if message.role not in SPOKEN_ROLES:
            continue
        size = rough_tokens(message.text) + 2
        if tokens and tokens + size > MAX_CHUNK_TOKENS:
            yield NewChunk(first, last, tokens)
            tokens = 0
        if not tokens:
            first = message.position
        last = message.position
        tokens += size
    if tokens:
        yield NewChunk(first, last, tokens)


def chunk_text(session: Session, messages: Iterable[Message]) -> str:
    """The text of a chunk of a conversation: who said what, with secrets masked.

    No line of a message can pass for another speaker: the first one follows the
    speaker's name, and all others are quoted.
    """
    return "\n".join(
        # Masked before it is quoted, or a key of several lines would not be recognized.
        f"{session.name_speaker(message.role)}: "
        f"{quote_after_label(mask_secrets(message.text))}"
        for message in messages
        if message.role in SPOKEN_ROLES
    )


# -- Markdown files -------------------------------------------------------------------


class CutNote(FrozenStruct):
    """A Markdown file, cut: the heading and text of each future unit, and the chunks.

    ``hash`` is the hash of the whole text.
    """

    note: FoundNote
    hash: str
    parts: list[tuple[str, str]]
    chunks: list[NewChunk]

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.parts]

    def to_units(
        self, days: Sequence[Moment], *, first_unit_id: int, container: FileRef
    ) -> list[NewUnit]:
        """The units; ``days`` has the days of the parts."""
        own_day = "" if self.note.day is None else day_words(self.note.day)
        return [
            NewUnit(
                first_unit_id + position,
                UNIT_KINDS[self.note.kind],
                container,
                position,
                day.to_microseconds(),
                text,
                f"{heading}\n{own_day}".strip(),
                note_meaning(heading, text),
                heading,
            )
            for position, ((heading, text), day) in enumerate(
                zip(self.parts, days, strict=True)
            )
        ]


def cut_note(note: FoundNote, text: str) -> CutNote:
    """Cut a Markdown file.

    In memory, every fact is a unit; in guidance, a few paragraphs are.
    """
    parts: list[tuple[str, str]] = []
    chunks: list[NewChunk] = []
    for section in iter_sections(text):
        for group in group_blocks(section, max_tokens=MAX_CHUNK_TOKENS):
            first = len(parts)
            found = _cut_group(note.kind, section, group)
            parts += [(section.heading, part) for part in found]
            shown = "\n".join(group)
            if section.heading:
                shown = f"{section.heading}\n{shown}"
            chunks.append(NewChunk(first, len(parts) - 1, rough_tokens(shown), shown))
    return CutNote(note, content_id(text), parts, chunks)


def note_meaning(heading: str, text: str) -> str:
    """What the vector of a part of a file is made from.

    It includes the heading, because a fact alone says little.
    """
    return f"{heading}: {text}" if heading else text


def _cut_group(
    kind: NoteKind, section: Section, group: tuple[str, ...]
) -> Iterator[str]:
    if kind is not NoteKind.GUIDANCE:
        yield from group
        return
    part = Section(section.heading, group)
    for blocks in group_blocks(part, max_tokens=_GUIDANCE_UNIT_TOKENS):
        yield "\n".join(blocks)
