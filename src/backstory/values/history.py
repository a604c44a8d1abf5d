"""Sessions and messages: as a source describes them, and as the store holds them.

``SessionFacts``, ``NewMessage`` and ``MessageTitle`` are what a source says;
``Session`` and ``Message`` are what the store holds.
"""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from backstory.values.moments import Moment, to_modified
from backstory.values.speakers import SPEAKERS
from backstory.values.structs import FrozenStruct


class Role(StrEnum):
    """Who or what a message comes from."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    SYSTEM = "system"
    SUMMARY = "summary"
    ERROR = "error"

    @property
    def speaker(self) -> str:
        """The name that is shown before its messages."""
        return SPEAKERS[self.value]


class SessionKind(StrEnum):
    """What a session is: a conversation, or notes that a program keeps."""

    CONVERSATION = "conversation"
    MEMORY = "memory"
    DAILY_LOG = "daily_log"


# -- what a source says ---------------------------------------------------------------

# Some programs use the entire first prompt as the title.
MAX_TITLE_CHARS = 500


class SessionFacts(FrozenStruct):
    """What a source says about a session; ``None`` means that it does not say.

    Facts may come in several pieces. A later piece overrides an earlier one, except for
    ``project``, ``git_branch`` and ``started``: they say where and when the session
    began, so the first value stays. ``saved`` is the time of a file without times of
    its own: it counts only if the file says something new. ``parent_id`` is the session
    whose agent started this one; a session that a person forked from another one has
    none.
    """

    native_id: str
    title: str | None = None
    project: str | None = None
    git_branch: str | None = None
    parent_id: str | None = None
    started: Moment | None = None
    last_active: Moment | None = None
    kind: SessionKind | None = None
    saved: Moment | None = None


class NewMessage(FrozenStruct):
    """One message of a source, before it is stored."""

    session_id: str
    native_id: str
    role: Role
    text: str
    tool_name: str | None = None
    call_id: str | None = None
    sent: Moment | None = None


class MessageTitle(FrozenStruct):
    """A title for whichever session has the message with this native id.

    It is used if the session itself has no title.
    """

    message_id: str
    title: str


class CutString(NamedTuple):
    """A string that was cut while it was read: its new end, and its original length."""

    mark: str
    full_bytes: int


class Problem(FrozenStruct):
    """Something in a source that could not be read; the rest of the source was.

    ``cuts`` are the strings that the problem is about, if any were cut.
    """

    reason: str
    line: int | None = None
    path: str = ""
    cuts: tuple[CutString, ...] = ()

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}" if place else self.reason


Item = SessionFacts | NewMessage | MessageTitle | Problem


# -- where it comes from --------------------------------------------------------------


class FoundFile(FrozenStruct):
    """A file, and its size and time when it was found."""

    path: Path
    size_bytes: int
    mtime_ns: int
    file_id: str

    @property
    def signature(self) -> str:
        """A text that changes when the file is written or replaced."""
        return file_signature(self.size_bytes, self.mtime_ns, self.file_id)

    @property
    def modified(self) -> Moment | None:
        """The file's own time; None if a datetime cannot hold it."""
        return to_modified(self.mtime_ns)


def file_signature(size_bytes: int, mtime_ns: int, file_id: str) -> str:
    return f"{size_bytes}:{mtime_ns}:{file_id}"


class Source(FrozenStruct):
    """A file of a known format, or one entry of a zip file that is in that format."""

    host: str
    format: str
    file: FoundFile
    entry: str = ""


# -- what a program records ---

RECORDED_HOST = "python"


class RecordedMessage(FrozenStruct):
    """A message as a program passes it in; ``Memory.record`` explains the fields."""

    session: str
    role: Role | str
    text: object
    tool_name: str | None = None
    call_id: str | None = None
    sent_at: datetime | None = None
    message: str | None = None
    host: str = RECORDED_HOST
    title: str | None = None
    project: str | Path | None = None
    parent: str | None = None


# -- what the store holds -------------------------------------------------------------


class Session(FrozenStruct):
    """A conversation, as stored."""

    session_id: int
    host: str
    native_id: str
    title: str
    project: str | None
    git_branch: str | None
    parent_id: str | None
    started: Moment | None
    last_active: Moment | None
    message_count: int
    preview: str
    read_from: str | None
    last_logged_message_id: int | None = None
    kind: SessionKind = SessionKind.CONVERSATION

    def is_task(self, role: Role) -> bool:
        """Whether its messages with this role are what an agent asked of a subagent.

        Programs record these as if a user had said them. The agent passed them to a
        tool, so
        they are also in the agent's own session.
        """
        return role is Role.USER and self.parent_id is not None

    def name_speaker(self, role: Role) -> str:
        """The name that is shown before its messages with this role."""
        return SPEAKERS["task"] if self.is_task(role) else role.speaker


class Message(FrozenStruct):
    """A message, as stored. ``full_bytes`` is set if ``text`` was cut."""

    message_id: int
    session_id: int
    native_id: str
    position: int
    role: Role
    text: str
    tool_name: str | None = None
    call_id: str | None = None
    sent: Moment | None = None
    full_bytes: int | None = None

    @property
    def is_damaged(self) -> bool:
        """Whether it can no longer be read, and ``text`` says so instead."""
        return not self.native_id
