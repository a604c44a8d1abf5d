"""What a history store promises, whatever database is behind it.

A store holds sessions, their messages, and how far each source has been read. The
last belongs with the first two, because it must change in the same transaction: a
reader that is killed goes on where it stopped, with nothing lost and nothing twice.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from backstory.values.history import Message, NewMessage, Problem, Session, SessionFacts

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class SourceKey:
    """A file, or one part of it: a conversation in a database, an entry of a zip."""

    path: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class SourceState:
    """How far a source has been read, and what it looked like then.

    ``signature`` changes when the file does; ``file_id`` follows a renamed file;
    ``prefix_hash`` tells an appended file from a rewritten one.
    """

    key: SourceKey
    host: str
    format: str
    signature: str
    file_id: str = ""
    read_to: int = 0
    lines_read: int = 0
    prefix_hash: str = ""
    memo: dict[str, JsonValue] = field(default_factory=dict)
    excluded_by: str = ""


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A new message ready to be stored.

    ``full_bytes`` is its true length when its text was cut; ``line`` its place.
    """

    message: NewMessage
    full_bytes: int | None = None
    line: int | None = None


@dataclass(slots=True)
class Batch:
    """Everything that one transaction writes.

    ``after_line``: reading begins behind that line; what was wrong from there on is no
    longer known. ``moved_from`` is the key of the source under its former name.
    ``emptied`` are sessions of which nothing may stay but that they were.
    ``is_companion``: facts are for sessions that are there; none is made for them, and
    a source that speaks of others counts as changed until they are.

    ``replaces``: a message whose id is known takes the place of the old one. Otherwise
    the id was given twice within one file, and both texts are kept. ``reread`` holds
    the messages a second reading has met so far; only those count as given twice.
    """

    host: str
    read_from: str | None = None
    facts: list[SessionFacts] = field(default_factory=list)
    messages: list[KeptMessage] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)
    progress: SourceState | None = None
    moved_from: SourceKey | None = None
    after_line: int | None = None
    replaces: bool = False
    reread: set[int] | None = None
    is_companion: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What a batch changed, and the problems that only the store could see.

    ``made_sessions`` are the native ids of the sessions that were not there before;
    ``last_message_id`` is the number of the batch's last message, new or not;
    ``is_waiting``: a companion spoke of sessions that are not there yet.
    """

    made_sessions: tuple[str, ...] = ()
    new_messages: int = 0
    changed_messages: int = 0
    problems: tuple[Problem, ...] = ()
    last_message_id: int | None = None
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list; every condition that is set must hold.

    ``folder`` takes sessions in it or below it, ``folder_name`` those in any folder of
    that name.
    """

    host: str | None = None
    folder: str | None = None
    folder_name: str | None = None
    active_since: datetime | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Messages of a session that were written: the numbers of the first and last.

    Without numbers, only what is known about the session changed. The number 0 says
    that everything in it was deleted.
    """

    change_id: int
    session_id: int
    first_message_id: int | None = None
    last_message_id: int | None = None

    @property
    def is_emptying(self) -> bool:
        return self.last_message_id == 0


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a host has in the store."""

    host: str
    sessions: int
    messages: int
    sources: int


class HistoryStore(Protocol):
    """Sessions and messages that stay. Safe to use from several threads and processes.

    Every write is one transaction, and durable when the call returns. Failures are
    raised as ``StoreProblem``; after one, the store is as it was before the call.
    """

    # -- writing ---

    def write(self, batch: Batch, *, now: datetime, is_durable: bool = True) -> Written:
        """Write all of ``batch`` or nothing; what is there is not written again.

        Without ``is_durable``, a power cut may undo it, whole, together with what was
        written after it: enough for what can be read once more.
        """
        ...

    def replace_loose_problems(
        self, problems: Sequence[Problem], *, now: datetime
    ) -> None:
        """Remember the problems that belong to no source that could be opened."""
        ...

    # -- reading ---

    def list_sources(self) -> dict[SourceKey, SourceState]:
        """Every source ever read."""
        ...

    def list_sessions(self, where: SessionFilter) -> list[Session]:
        """Sessions with at least one message, the most recently active first."""
        ...

    def find_sessions(self, name: str) -> list[Session]:
        """Sessions of that id or, failing that, whose id starts so."""
        ...

    def short_ids(self, session_ids: Collection[int]) -> dict[int, str]:
        """The shortest name by which each session is found alone.

        That is the first 8, 13 or 18 characters of an id longer than 12, else the whole
        id, else ``host/id``. What ``find_sessions`` finds below another id that it
        found (``<id>/...``, a subagent) does not count. A session that is not there is
        left out.
        """
        ...

    def iter_messages(
        self, session_id: int, *, first: int = 0, last: int | None = None
    ) -> Iterator[Message]:
        """The messages of a session in order, from position ``first`` to ``last``."""
        ...

    def find_message(self, session_id: int, name: str) -> Message | None:
        """The message of that native id or number."""
        ...

    def get_messages(self, message_ids: Collection[int]) -> dict[int, Message]:
        """The messages of these numbers; one that is not there is left out."""
        ...

    def find_positions(
        self, session_id: int, first_id: int, last_id: int
    ) -> tuple[int, int] | None:
        """The first and last place of a session's messages with these numbers."""
        ...

    def find_neighbours(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[Message | None, Message | None]]:
        """What user or assistant said right before and right after each place.

        A place is a session and a position in it. Every place that was asked for is
        in the answer.
        """
        ...

    def find_replies(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], Message]:
        """The last reply to what the user said at each place.

        That is the assistant's last message before the user's next one, among the
        first 20 messages of either; other roles do not count. A place without a reply
        is left out.
        """
        ...

    def find_tool_names(
        self, calls: Collection[tuple[int, str]]
    ) -> dict[tuple[int, str], str]:
        """The tools that were called by these ids, each in a session.

        A call whose tool is not known is left out.
        """
        ...

    def list_latest_turn(self, session_id: int) -> list[int]:
        """The numbers of a session's messages from its user's last one on."""
        ...

    def find_text(
        self,
        folded: str,
        *,
        limit: int,
        where: Callable[[Message], bool],
        until: float | None = None,
    ) -> list[Message]:
        """Messages with that folded text in them, newest first, by reading them all.

        Slow; for when there is no index. ``where`` says which may be found; ``until``
        is when to stop, on the monotonic clock.
        """
        ...

    def get_sessions(self, session_ids: Collection[int]) -> dict[int, Session]:
        """The sessions of these numbers; one that is not there is left out."""
        ...

    def count_messages(self) -> int:
        """How many messages there are."""
        ...

    @property
    def identity(self) -> str:
        """A text that no other history has."""
        ...

    def last_change_id(self) -> int:
        """The number of the latest change; 0 when there was none."""
        ...

    def list_changes(self, after: int, limit: int) -> list[Change]:
        """What was written after the change of that number, in order."""
        ...

    def count_by_host(self) -> list[Counts]:
        """Sessions, messages and sources of every host that has any."""
        ...

    def has_session(self, host: str, native_id: str) -> bool:
        """Whether anything is known of a session."""
        ...

    def find_project(self, host: str, native_id: str) -> str | None:
        """The folder that a session is known to have run in."""
        ...

    def list_projects(self) -> list[str]:
        """Every project folder a session was seen in."""
        ...

    def list_problems(self) -> list[Problem]:
        """What could not be read when its source was last read."""
        ...

    def size_bytes(self) -> int:
        """How much room the store takes on disk."""
        ...

    def verify(self) -> list[str]:
        """Check everything that must hold; each sentence is one thing that does not."""
        ...

    def close(self) -> None: ...
