"""The values that everything else speaks in: sessions, messages, problems, reports.

``SessionFacts`` and ``NewMessage`` are what a source says; ``Session`` and ``Message``
are what the store holds. All are frozen: a value that crosses a module never changes.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from backstory.text.basics import neutralise
from backstory.values.moments import Moment


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
        """What it is called before what it said."""
        return _SPEAKERS[self]


_SPEAKERS = {
    Role.USER: "User",
    Role.ASSISTANT: "Agent",
    Role.TOOL_CALL: "Tool",
    Role.TOOL_RESULT: "Tool",
    Role.SYSTEM: "System",
    Role.SUMMARY: "Summary",
    Role.ERROR: "Error",
}


class SessionKind(StrEnum):
    """What a session is: a conversation, or notes that a program keeps."""

    CONVERSATION = "conversation"
    MEMORY = "memory"
    DAILY_LOG = "daily_log"


# -- what a source says ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a source says about a session. ``None`` means: it does not say.

    Facts may come in several pieces; a later piece overrides an earlier one, except for
    ``project``, ``git_branch`` and ``started``, where the first word stands: they name
    where and when the session began.
    """

    native_id: str
    title: str | None = None
    project: str | None = None
    git_branch: str | None = None
    parent_id: str | None = None
    started: Moment | None = None
    last_active: Moment | None = None
    kind: SessionKind | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One message as a source has it, before it is stored."""

    session_id: str
    native_id: str
    role: Role
    text: str
    tool_name: str | None = None
    call_id: str | None = None
    sent: Moment | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source that could not be read as it stands; the rest was read."""

    reason: str
    line: int | None = None
    path: str = ""

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}" if place else self.reason


Item = SessionFacts | NewMessage | Problem


# -- where it comes from --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file and what it looked like when it was found."""

    path: Path
    size_bytes: int
    mtime_ns: int
    file_id: str

    @property
    def signature(self) -> str:
        """Text that changes when the file is written, replaced or moved over."""
        return f"{self.size_bytes}:{self.mtime_ns}:{self.file_id}"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a known format, or one entry of a zip file that is in that format."""

    host: str
    format: str
    file: FoundFile
    entry: str = ""


# -- what the store holds -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation as it is kept."""

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


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it is kept. ``full_bytes`` is set when ``text`` was cut."""

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


def show_command(session: str, message_id: int | None = None) -> str:
    """The command that shows a session of that name, to read and to paste."""
    words = ["backstory", "show"]
    if session.startswith("-"):
        # Or it would be taken for an option.
        words += [] if message_id is None else ["--around", str(message_id)]
        words += ["--", shlex.quote(neutralise(session))]
    else:
        words += [shlex.quote(neutralise(session))]
        words += [] if message_id is None else ["--around", str(message_id)]
    return " ".join(words)


# -- what a search finds --------------------------------------------------------------


class HitSource(StrEnum):
    """Where a hit was found."""

    MEMORY = "memory"
    DAILY_LOG = "daily_log"
    MESSAGE = "message"
    SESSION = "session"
    FILE = "file"


class Strength(StrEnum):
    """How well a hit answers by itself, whatever else was found."""

    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One step of how a score came about."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found, with all that is known about where it stands.

    ``text`` is what was found, whole; ``excerpt`` the part of it around the match. Of a
    session, they are its title and preview. ``reply`` is what the agent had to say to a
    message of the user, before the user spoke again.
    """

    source: HitSource
    score: float
    strength: Strength
    text: str
    excerpt: str
    said: Moment | None = None
    role: Role | None = None
    tool_name: str | None = None
    session: Session | None = None
    message_id: int | None = None
    position: int | None = None
    path: str | None = None
    heading: str = ""
    project: str | None = None
    parts: tuple[ScorePart, ...] = ()
    reply: Message | None = None

    @property
    def host(self) -> str | None:
        return None if self.session is None else self.session.host

    @property
    def is_on_named_day(self) -> bool:
        """Whether it was said on a day that the query names."""
        return any(part.name == "day" and part.value > 0 for part in self.parts)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, best first, and what to know about it.

    ``notices`` say what could not be searched, or how good the answer is.
    """

    query: str
    hits: tuple[Hit, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def is_weak(self) -> bool:
        """Whether nothing that was found answers the query well."""
        return all(hit.strength is Strength.WEAK for hit in self.hits)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A stretch of a conversation or a file around what was found in it."""

    chunk_id: str
    source_type: str
    name: str
    score: float
    text: str
    hit: Hit


@dataclass(frozen=True, slots=True)
class Episode:
    """A message that was found, between what was said before and after it."""

    session: Session
    matched: Message
    before: Message | None = None
    after: Message | None = None


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Stretches of text in which something was found, best first."""

    query: str
    found: tuple[Recalled, ...] = ()
    notices: tuple[str, ...] = ()
    is_empty_index: bool = False


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """Messages with the query in them, the newest first."""

    query: str
    episodes: tuple[Episode, ...] = ()
    notices: tuple[str, ...] = ()


# -- what a run reports ---------------------------------------------------------------


# Told of a run's progress: bytes done, bytes in all, and the name of the file.
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one reading of the sources did."""

    read: int = 0
    unchanged: int = 0
    excluded: int = 0
    unknown: int = 0
    new_sessions: int = 0
    new_messages: int = 0
    changed_messages: int = 0
    read_bytes: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def skipped(self) -> int:
        """How many places could not be read as they stand."""
        return len(self.problems)

    def __add__(self, other: "IndexReport") -> "IndexReport":
        """Both reports as one; a problem that stands in both counts once."""
        return IndexReport(
            read=self.read + other.read,
            unchanged=self.unchanged + other.unchanged,
            excluded=self.excluded + other.excluded,
            unknown=self.unknown + other.unknown,
            new_sessions=self.new_sessions + other.new_sessions,
            new_messages=self.new_messages + other.new_messages,
            changed_messages=self.changed_messages + other.changed_messages,
            read_bytes=self.read_bytes + other.read_bytes,
            problems=tuple(dict.fromkeys(self.problems + other.problems)),
        )


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """What one host has on this machine, and how much of it has been read."""

    host: str
    title: str
    places: tuple[str, ...]
    found: int
    found_bytes: int
    indexed: int
    sessions: int
    messages: int
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of the index: what is filed, and what has its vector."""

    units: int = 0
    with_meaning: int = 0
    embedded: int = 0
    size_bytes: int = 0
    embedder: str = "none"
    is_behind: bool = False
    problem: str = ""


@dataclass(slots=True)
class LogReport:
    """What a run of the summarizer did. ``problems`` say why something waits."""

    sessions: int = 0
    messages: int = 0
    blocks: int = 0
    facts: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Curation:
    """What became of the long-term memory. ``refused`` says why nothing did."""

    removed: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    added: tuple[str, ...] = ()
    refused: str = ""

    @property
    def is_change(self) -> bool:
        return bool(self.removed or self.replaced or self.added)


@dataclass(frozen=True, slots=True)
class LogStatus:
    """How the daily logs stand, and what the language model was used for today."""

    model: str = ""
    is_enabled: bool = True
    due: int = 0
    calls_today: int = 0
    tokens_today: int = 0
    daily_tokens: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The state of one Backstory home."""

    home: str
    sessions: int
    messages: int
    size_bytes: int
    sessions_by_host: Mapping[str, int] = field(default_factory=dict)
    last_read_at: datetime | None = None
    problems: tuple[Problem, ...] = ()
    index: IndexStatus = field(default_factory=IndexStatus)
    logs: LogStatus = field(default_factory=LogStatus)
