"""Units, which are found, and chunks, which are shown around them.

A unit is a message, a session's title, a fact or a section of a Markdown file. A chunk
is the part of a session or file from one position to another. The position of a message
is its place in its session; the position of a part of a file, its place in the file.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Literal, NamedTuple

from backstory.values.structs import FrozenStruct

# Ids below this one are ids of messages.
_NOTES_FROM = 1 << 40
_SESSIONS_FROM = 1 << 50


class UnitKind(IntEnum):
    """What a unit is. The numbers are stored.

    A task is what an agent asked of a subagent; its program records it as if a user had
    said it. ``OTHER`` are messages that nobody said, such as tool calls.
    """

    USER = 1
    ASSISTANT = 2
    SUMMARY = 3
    OTHER = 4
    SESSION = 5
    MEMORY = 6
    DAILY_LOG = 7
    GUIDANCE = 8
    TASK = 9


_SPOKEN = frozenset({UnitKind.USER, UnitKind.ASSISTANT, UnitKind.SUMMARY})
UNSPOKEN = frozenset({UnitKind.OTHER, UnitKind.TASK})
MESSAGES = _SPOKEN | UNSPOKEN
# Only the day of these is known: ``said_at`` is a ``whole_day``.
OF_A_DAY = frozenset({UnitKind.MEMORY, UnitKind.DAILY_LOG, UnitKind.GUIDANCE})


def first_note_id() -> int:
    return _NOTES_FROM


def first_session_unit_id() -> int:
    return _SESSIONS_FROM


def session_unit_id(session_id: int) -> int:
    """The id of the unit with a session's title and preview."""
    return _SESSIONS_FROM + session_id


def is_message(unit_id: int) -> bool:
    return unit_id < _NOTES_FROM


def is_session(unit_id: int) -> bool:
    return unit_id >= _SESSIONS_FROM


def is_note(unit_id: int) -> bool:
    """Whether a unit is a part of a Markdown file."""
    return _NOTES_FROM <= unit_id < _SESSIONS_FROM


# Tuples, because a search looks up the containers of hundreds of units. They are
# compared by value, so each one contains its kind: session 1 is not file 1.


class SessionRef(NamedTuple):
    """Reference to a session that units belong to."""

    session_id: int
    kind: Literal["session"] = "session"


class FileRef(NamedTuple):
    """Reference to a Markdown file that units belong to."""

    file_id: int
    kind: Literal["file"] = "file"


# What units and chunks belong to.
Container = SessionRef | FileRef


class NewUnit(FrozenStruct):
    """A unit to add to the index.

    ``around`` are nearby words that help to find it. ``meaning`` is the text that its
    vector is made from; None if it gets none. ``heading`` is only set for a unit of a
    file. ``passages`` are the passages of a long message, which get vectors of their
    own.
    """

    unit_id: int
    kind: UnitKind
    container: Container
    position: int
    said_at: int | None
    text: str
    around: str = ""
    meaning: str | None = None
    heading: str | None = None
    passages: Sequence[str] = ()


class NewChunk(FrozenStruct):
    """A chunk to add to the index; ``text`` is None if it stays in the history."""

    first_position: int
    last_position: int
    token_count: int
    text: str | None = None
