"""What a history store promises, whatever database is behind it.

A store holds sessions, their messages, and how far each source has been read. The
position in a source belongs with the messages, because both must change in the same
transaction: a reader that is killed resumes where it stopped, losing and repeating
nothing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from backstory.values.forgetting import ASKED_FOR, Erasure, Forgetting
from backstory.values.history import (
    Message,
    MessageTitle,
    NewMessage,
    Problem,
    Role,
    Session,
    SessionFacts,
)
from backstory.values.notes import SeenNote
from backstory.values.structs import FrozenStruct, Struct, field

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


class SourceKey(FrozenStruct):
    """A file, or one part of it: a conversation in a database, an entry of a zip."""

    path: str
    part: str = ""


class SourceState(FrozenStruct):
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


class ReadFile(NamedTuple):
    """What a file, or one part of it, looked like when it was last read."""

    path: str
    host: str
    signature: str
    excluded_by: str


class KeptMessage(FrozenStruct):
    """A new message ready to be stored.

    ``full_bytes`` is the length of the whole text if it was cut; ``line`` is the line
    of the source that it came from.
    """

    message: NewMessage
    full_bytes: int | None = None
    line: int | None = None


class Batch(Struct):
    """Everything that one transaction writes.

    ``after_line``: the source is read from the line after it, and problems recorded for
    later lines are deleted. ``moved_from`` is the key of the source under its former
    name. ``emptied`` are sessions whose content must be deleted; only their ids are
    kept. ``hidden`` are messages whose text turned out to be private, by the ids of
    session and message. ``is_companion``: the source only adds facts to sessions that
    exist; while one does not, the source counts as changed, so that it is read again.
    ``titles`` wait for the messages that they name. ``logged`` are sessions that were
    summarized elsewhere, each with the id of the last message that is in a summary.

    ``replaces``: a message with a known id replaces the old one. Without it, a known id
    with another text means that the file used the id twice, and both texts are kept.
    ``reread`` holds the numbers of the messages that a second reading has met so far;
    only those count as used twice.
    """

    host: str
    read_from: str | None = None
    facts: list[SessionFacts] = field(default_factory=list)
    messages: list[KeptMessage] = field(default_factory=list)
    titles: list[MessageTitle] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)
    hidden: list[tuple[str, str]] = field(default_factory=list)
    logged: list[tuple[str, str]] = field(default_factory=list)
    progress: SourceState | None = None
    moved_from: SourceKey | None = None
    after_line: int | None = None
    replaces: bool = False
    reread: set[int] | None = None
    is_companion: bool = False


class Written(FrozenStruct):
    """What a batch changed, and the problems that only the store could see.

    ``made_sessions`` are the native ids of new sessions; ``last_message_id`` is the
    number of the batch's last message, new or not.
    """

    made_sessions: tuple[str, ...] = ()
    new_messages: int = 0
    changed_messages: int = 0
    problems: tuple[Problem, ...] = ()
    last_message_id: int | None = None


class SessionFilter(FrozenStruct):
    """Which sessions to list; every condition that is set must hold.

    ``folder`` matches sessions that ran in it or below it, ``folder_name`` those that
    ran in any folder of that name. ``active_since`` and ``started_before`` together
    match the sessions in which something may have been said in that time.
    """

    host: str | None = None
    folder: str | None = None
    folder_name: str | None = None
    active_since: datetime | None = None
    started_before: datetime | None = None
    limit: int | None = None


class ForgottenPart(FrozenStruct):
    """What to forget of a session: all of it, or the messages with some numbers.

    ``is_lasting``: what is said in the session from now on is left out as well.
    """

    session_id: int
    message_ids: tuple[int, ...] | None = None
    is_lasting: bool = False


class Change(FrozenStruct):
    """Messages of a session that were written: the numbers of the first and last.

    Without numbers, only facts about the session changed. The number 0 means that all
    its messages were deleted. ``tag`` is random; changes are compared without it.
    """

    change_id: int
    session_id: int
    first_message_id: int | None = None
    last_message_id: int | None = None
    tag: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Change) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)

    @property
    def _facts(self) -> tuple[int | None, ...]:
        return (
            self.change_id,
            self.session_id,
            self.first_message_id,
            self.last_message_id,
        )

    @property
    def is_emptying(self) -> bool:
        return self.last_message_id == 0


class Counts(FrozenStruct):
    """How much a host has in the store."""

    host: str
    sessions: int
    messages: int
    sources: int


class HistoryStore(Protocol):
    """Sessions and messages. Safe to use from several threads and processes.

    Every write is one transaction, and durable when the call returns. Failures are
    raised as ``StoreProblem``; after one, the store is as it was before the call. The
    exception is ``StoreUnreachable``: the connection to a server was lost before it
    answered, so everything may have been written. Writing it again does no harm.
    """

    def check_complete(self) -> None:
        """Raise ``StoreIncomplete`` for a copy that ``move`` has not completed.

        All reads and writes of the history check this themselves; this is for what is
        in files beside it.
        """
        ...

    # -- writing ---

    def write(
        self,
        batch: Batch,
        *,
        now: datetime,
        is_durable: bool = True,
        is_patient: bool = True,
    ) -> Written:
        """Write all of ``batch`` or nothing; what is stored is not written again.

        Without ``is_durable``, a power cut may undo the whole batch and later ones:
        good enough for what can be read again. Without ``is_patient``, it waits for
        another writer only briefly before it raises ``StoreLocked``.
        """
        ...

    def make_durable(self) -> None:
        """Make what was written without ``is_durable`` survive a power cut, too."""
        ...

    def replace_loose_problems(
        self, problems: Sequence[Problem], *, now: datetime
    ) -> None:
        """Replace the problems that belong to no source, such as unreadable folders."""
        ...

    def add_loose_problems(self, problems: Sequence[Problem], *, now: datetime) -> None:
        """Add to these problems those that are not among them yet."""
        ...

    def change_seen_notes(
        self, change: Callable[[Mapping[str, SeenNote]], Sequence[SeenNote]]
    ) -> None:
        """Write what ``change`` returns when given all seen notes, by key.

        ``change`` may be called twice: what it returned last was written.
        """
        ...

    def forget(
        self,
        parts: Sequence[ForgottenPart],
        *,
        now: datetime,
        facts: int = 0,
        reason: str = ASKED_FOR,
    ) -> Forgetting:
        """Delete parts of sessions, and never store them again.

        ``facts`` is only recorded: how many facts are deleted from the notes at the
        same time.

        Every later ``write`` leaves out a message if its id or its session was
        forgotten; of a session, what was said afterwards is only left out if the part
        ``is_lasting``. Nothing but hashes of the ids is kept. A session whose messages
        are all forgotten is gone.
        """
        ...

    def undo_forgetting(self, forgetting_id: int) -> Forgetting | None:
        """Let what one call forgot be stored again; None for an unknown number.

        The sources of the hosts concerned count as changed, so that they are read
        again.
        """
        ...

    def delete_lost_sources(self, is_there: Callable[[str], bool]) -> None:
        """Delete the paths of sources that are gone and that no session was read from.

        If one comes back, it is read from its start.
        """
        ...

    def erase_deleted(self) -> Erasure:
        """Erase what was deleted from the files, too.

        If that is blocked, it can be tried again; what is left to others cannot.
        """
        ...

    def finish_erasing(self) -> bool:
        """Erase what is left of earlier forgettings that were stopped or blocked.

        Returns False if that is blocked again.
        """
        ...

    # -- reading ---

    def without_forgotten(self, batch: Batch) -> Batch:
        """The batch as ``write`` would write it: without what was forgotten."""
        ...

    def list_said_before(
        self, at: datetime, *, role: Role | None = None
    ) -> list[ForgottenPart]:
        """What was said in each session before a time, perhaps only by one role.

        A message without a time counts as said when its session began.
        """
        ...

    def list_forgettings(self) -> list[Forgetting]:
        """Everything that was forgotten, in order, as numbers only."""
        ...

    def list_seen_notes(self) -> dict[str, SeenNote]:
        """Every note ever seen, by key."""
        ...

    def list_sources(self) -> dict[SourceKey, SourceState]:
        """Every source ever read."""
        ...

    def list_read_files(self) -> list[ReadFile]:
        """Every source ever read, with just enough to see what changed; much faster."""
        ...

    def list_sessions(self, where: SessionFilter) -> list[Session]:
        """Sessions with at least one message, the most recently active first."""
        ...

    def find_sessions(self, name: str) -> list[Session]:
        """Sessions with that id; if there is none, those whose id begins with it.

        ``name`` may also be ``host/id``. A beginning only finds sessions with messages.
        """
        ...

    def short_ids(self, session_ids: Collection[int]) -> dict[int, str]:
        """The shortest name that ``find_sessions`` finds each session by, and no other.

        That is the first 8, 13 or 18 characters of an id longer than 12, else the whole
        id, else ``host/id``. Subagents (``<id>/...``) do not count if the session
        ``<id>`` is found too. Unknown sessions are left out.
        """
        ...

    def iter_messages(
        self, session_id: int, *, first: int = 0, last: int | None = None
    ) -> Iterator[Message]:
        """The messages of a session in order, from position ``first`` to ``last``."""
        ...

    def find_message(self, session_id: int, name: str) -> Message | None:
        """The message with that native id or, failing that, number."""
        ...

    def get_messages(self, message_ids: Collection[int]) -> dict[int, Message]:
        """The messages with these numbers; unknown numbers are left out."""
        ...

    def get_ranges(
        self, ranges: Collection[tuple[int, int, int]]
    ) -> dict[tuple[int, int, int], list[Message]]:
        """The messages of parts of sessions, in order.

        A part is a session and its first and last position. The result has every part.
        """
        ...

    def find_positions(
        self, session_id: int, first_id: int, last_id: int
    ) -> tuple[int, int] | None:
        """The first and last position of a session's messages with numbers in a range.

        None if the session has none of them.
        """
        ...

    def find_neighbours(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[Message | None, Message | None]]:
        """What user or assistant said right before and right after each place.

        A place is a session and a position in it. The result has every place.
        """
        ...

    def find_replies(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], Message]:
        """The last reply to what the user said at each place.

        That is the assistant's last message before the user's next one, among the next
        100 messages of these two roles; other roles do not count. A place without a
        reply is left out.
        """
        ...

    def find_tool_names(
        self, calls: Collection[tuple[int, str]]
    ) -> dict[tuple[int, str], str]:
        """The tool of each call, given as session and call id.

        A call whose tool is unknown is left out.
        """
        ...

    def list_latest_turn(self, session_id: int) -> list[int]:
        """The numbers of a session's messages from the user's last one on."""
        ...

    def find_text(
        self,
        folded: str,
        *,
        limit: int,
        where: Callable[[Message], bool],
        until: float | None = None,
    ) -> list[Message]:
        """Messages that contain a folded text, newest first, by reading them all.

        Slow: only for when there is no index. ``where`` says which may be found;
        ``until`` is when to stop, on the monotonic clock.
        """
        ...

    def get_sessions(self, session_ids: Collection[int]) -> dict[int, Session]:
        """The sessions with these numbers; unknown numbers are left out."""
        ...

    def get_titles(self, session_ids: Collection[int]) -> dict[int, str]:
        """The titles that sessions were given, by their programs or by whoever records.

        A session that was never given a title is left out.
        """
        ...

    def count_messages(self) -> int:
        """How many messages there are."""
        ...

    def has_messages(self) -> bool:
        """Whether there are any messages, which is faster than counting them."""
        ...

    @property
    def identity(self) -> str:
        """A text that is unique to this history."""
        ...

    def last_change_id(self) -> int:
        """The number of the latest change; 0 if there is none."""
        ...

    def find_tag(self, change_id: int) -> int | None:
        """The random tag of a change; None if there is no change of that number.

        A history that was restored from a backup reuses numbers, but no tags.
        """
        ...

    def list_changes(self, after: int, limit: int) -> list[Change]:
        """Changes after the one with that number, in order."""
        ...

    def count_by_host(self) -> list[Counts]:
        """Sessions, messages and sources of every host that has any."""
        ...

    def has_session(self, host: str, native_id: str) -> bool:
        """Whether the session is known, with or without messages."""
        ...

    def find_project(self, host: str, native_id: str) -> str | None:
        """The folder that a session ran in, if known."""
        ...

    def count_by_quarter_hour(self, session_ids: Collection[int]) -> dict[int, int]:
        """How many messages of these sessions were sent in each quarter of an hour.

        Each quarter is given by its start in microseconds. A message whose time is
        unknown, or of which only the day is known, does not count.
        """
        ...

    def list_projects(self) -> list[str]:
        """Every project folder a session was seen in."""
        ...

    def list_problems(self) -> list[Problem]:
        """What went wrong when each source was last read."""
        ...

    def size_bytes(self) -> int:
        """How much space the history takes; of a shared database, its own part."""
        ...

    def has_damage(self) -> bool:
        """Whether part of it cannot be read any more. Reads all of it."""
        ...

    def verify(self) -> list[str]:
        """Check everything that must hold; one sentence for each failure."""
        ...

    def close(self) -> None:
        """Close it; used again, it is opened again."""
        ...


def find_exactly_named(history: HistoryStore, name: str) -> list[Session]:
    """The sessions with exactly this id, of any host; usually there is one."""
    return [
        each
        for each in history.find_sessions(name)
        if name in (each.native_id, f"{each.host}/{each.native_id}")
    ]
