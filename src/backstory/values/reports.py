"""What long operations report, and the state of a home."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path

from backstory.values.forgetting import Forgetting
from backstory.values.history import Problem
from backstory.values.notes import FactOrigin
from backstory.values.structs import FrozenStruct, Struct, field

# Called with the number of items done, and the total.
OnCount = Callable[[int, int], None]


class ReadingProgress(FrozenStruct):
    """How far a reading of the sources has got.

    ``name`` is the file that is being read, ``sources_left`` the number of sources
    after it. ``new_sessions`` and ``new_messages`` have been stored so far.
    """

    done_bytes: int
    total_bytes: int
    name: str = ""
    sources_left: int = 0
    new_sessions: int = 0
    new_messages: int = 0


OnProgress = Callable[[ReadingProgress], None]


class IndexReport(FrozenStruct):
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
        """How many places in the sources could not be read."""
        return len(self.problems)

    def __add__(self, other: "IndexReport") -> "IndexReport":
        """Both reports as one; a problem that is in both counts once."""
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


class SavedTexts(FrozenStruct):
    """A file with the texts of messages that only the index still had."""

    path: Path
    messages: int


class DamagedPage(FrozenStruct):
    """A page of a database that does not match its checksum.

    ``table`` is the table or index that it belongs to, if known; ``is_known`` says
    whether its correct content is known. ``lost_checksum``: it has no checksum, but all
    other pages have theirs.
    """

    number: int
    table: str = ""
    is_known: bool = False
    lost_checksum: bool = False

    def __str__(self) -> str:
        where = f" ({self.table})" if self.table else ""
        what = "one byte" if not self.lost_checksum else "it has lost its checksum"
        known = f"; {what}, which can be corrected" if self.is_known else ""
        return f"page {self.number}{where} is damaged{known}"


class SalvagedFile(FrozenStruct):
    """A new database with what could be read of a damaged one.

    ``is_complete``: nothing is missing. Otherwise, ``rows`` counts the rows that were
    read, by table.
    """

    path: Path
    damaged: tuple[DamagedPage, ...] = ()
    is_complete: bool = False
    rows: Mapping[str, int] = field(default_factory=dict)


class SalvagedHistory(FrozenStruct):
    """What was saved of a damaged history, which is kept as ``kept_as``.

    ``is_complete``: nothing is missing. Otherwise ``lost_messages`` counts what is
    missing, by session. ``unproven_messages`` were saved from damaged pages, and there
    is no other record to prove that they are what was stored. ``may_lack_forgotten``:
    damaged pages had ids of what was forgotten, so some of that may return.
    ``mended_texts``: which texts were not UTF-8, and now have U+FFFD in the invalid
    places.
    """

    kept_as: Path
    damaged: tuple[DamagedPage, ...] = ()
    is_complete: bool = False
    lost_messages: Mapping[str, int] = field(default_factory=dict)
    unproven_messages: int = 0
    may_lack_forgotten: bool = False
    mended_texts: tuple[str, ...] = ()


class CheckedFile(FrozenStruct):
    """A file of a home, and what is wrong with it.

    ``not_checked`` is why it could not be opened, such as a full disk. ``is_derived``:
    a rebuild makes it again.
    """

    path: Path
    problems: tuple[str, ...] = ()
    not_checked: str = ""
    is_derived: bool = False


class SourceSummary(FrozenStruct):
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


class IndexStatus(FrozenStruct):
    """The state of the index: how much it holds, and how much of it has vectors.

    ``in_background``: a background process makes the missing vectors.
    """

    units: int = 0
    with_meaning: int = 0
    embedded: int = 0
    size_bytes: int = 0
    embedder: str = "none"
    is_behind: bool = False
    problem: str = ""
    in_background: bool = False


class ListedLog(FrozenStruct):
    """A daily log in a list; ``problem`` says why it could not be read."""

    day: date
    path: Path
    text: str = ""
    problem: str = ""

    @property
    def size_bytes(self) -> int:
        return len(self.text.encode("utf-8"))


class LogReport(Struct):
    """What the summarizer did; ``problems`` say why some messages are still waiting.

    ``refused`` are lines of the model that were not written: they would have passed for
    something that the user said, but the user did not say it.
    """

    sessions: int = 0
    messages: int = 0
    blocks: int = 0
    facts: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)


class Curation(FrozenStruct):
    """What changed in the long-term memory; ``refused`` says what did not, and why."""

    removed: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    added: tuple[str, ...] = ()
    refused: str = ""
    # Where new words come from, by the facts that contain them.
    origins: Mapping[str, tuple[FactOrigin, ...]] = field(default_factory=dict)

    @property
    def is_change(self) -> bool:
        return bool(self.removed or self.replaced or self.added)

    def plus(self, other: "Curation") -> "Curation":
        """Both changes as one."""
        return Curation(
            self.removed + other.removed,
            self.replaced + other.replaced,
            self.added + other.added,
            self.refused or other.refused,
            {**self.origins, **other.origins},
        )


class LogStatus(FrozenStruct):
    """The state of the daily logs, and how much the language model did today.

    ``set_aside`` is the number of parts of sessions that it could not summarize.
    """

    model: str = ""
    is_enabled: bool = True
    due: int = 0
    calls_today: int = 0
    tokens_today: int = 0
    daily_tokens: int = 0
    problem: str = ""
    set_aside: int = 0


class ModelCall(FrozenStruct):
    """One call of a model. ``outcome`` is ``ok``, ``running``, or why it failed."""

    called_at: datetime
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    took_ms: int | None
    outcome: str

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class KeptExcluded(FrozenStruct):
    """What was read of a host or a folder before the settings excluded it."""

    option: str
    name: str
    sessions: int
    messages: int

    @property
    def command(self) -> str:
        """The command that forgets it."""
        # Few people exclude what has been read already.
        import shlex

        return shlex.join(["backstory", "forget", self.option, self.name])


class Status(FrozenStruct):
    """The state of one Backstory home; ``store`` is the database that it is in.

    ``store`` is empty if everything is in the folder itself.
    """

    home: str
    sessions: int
    messages: int
    size_bytes: int
    sessions_by_host: Mapping[str, int] = field(default_factory=dict)
    last_read_at: datetime | None = None
    problems: tuple[Problem, ...] = ()
    index: IndexStatus = field(default_factory=IndexStatus)
    logs: LogStatus = field(default_factory=LogStatus)
    excluded: tuple[KeptExcluded, ...] = ()
    last_forgetting: Forgetting | None = None
    store: str = ""


class Overview(FrozenStruct):
    """What a home has, at a glance.

    ``texts`` is how many should have a vector, ``embedded`` how many have one.
    ``found_hosts`` are the titles of the agent programs that have left conversations on
    this machine; they are searched for only if nothing has been read yet. ``is_new``:
    there is no history.
    """

    home: str
    is_new: bool = False
    sessions_by_host: Mapping[str, int] = field(default_factory=dict)
    messages: int = 0
    last_read_at: datetime | None = None
    texts: int = 0
    embedded: int = 0
    facts: int = 0
    logs: int = 0
    found_hosts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def sessions(self) -> int:
        return sum(self.sessions_by_host.values())
