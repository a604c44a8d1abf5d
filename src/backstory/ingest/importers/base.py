"""What an importer promises: bytes in, sessions and messages out, nothing else.

There are three kinds of format, by how a source changes:

- lines: a file that grows at its end. Read from where the last reading stopped.
- documents: a file that is written whole. Read whole when it changed.
- databases: another program's SQLite file. Read conversation by conversation, those
  whose version changed.

All of them yield ``SessionFacts``, ``NewMessage`` and ``Problem`` values, facts about a
session before its first message. They never raise on bad content, never touch our
store, and give the same ids for the same content every time.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Protocol

import apsw
import orjson

from backstory.text.json_values import JsonObject
from backstory.values.history import Item, Problem, Role
from backstory.values.identity import content_id
from backstory.values.moments import Localize, Moment, parse_moment, read_as_local
from backstory.values.structs import FrozenStruct, field

# Any: a memo holds plain JSON values of the parser's choice.
Memo = dict[str, Any]


# Returns what a file beside a source holds: nothing if there is none, or if it cannot
# be read, which is then a problem of the source.
ReadBeside = Callable[[Path], bytes]


class Record(NamedTuple):
    """One JSON object of a line file, and the number of its line."""

    line: int
    value: JsonObject


class Conversation(NamedTuple):
    """One conversation in a database; ``version`` changes when it does.

    If ``is_deleted``, it is in the program's trash, and is not read.
    """

    native_id: str
    version: str
    is_deleted: bool = False


class Origin(FrozenStruct):
    """What is known about a source besides its content.

    ``beside`` holds what ``look_beside`` found; ``modified`` is the file's own time,
    for formats that carry none. ``any_year``: times before 1980 are real.
    """

    path: Path
    modified: Moment | None = None
    localize: Localize = read_as_local
    beside: Mapping[str, str] = field(default_factory=dict)
    any_year: bool = False

    def moment(self, value: object) -> Moment | None:
        """Read a time of this source; times without a zone are local."""
        return parse_moment(value, self.localize, any_year=self.any_year)


class LineFormat(Protocol):
    """A format whose files grow by whole lines, each a JSON object.

    ``revises``: a later record with the same id is a newer version of the message.
    """

    kind: Literal["lines"]
    revises: bool

    def recognizes(self, path: Path, head: bytes) -> bool:
        """Whether a file of this name that begins with ``head`` is in this format."""
        ...

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        """Facts from other files near ``path``, which only ``read`` may open."""
        ...

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        """What one record says.

        Whatever is needed to understand later records is kept in ``memo``, as plain
        JSON values, because those may be read another day.
        """
        ...


class DocumentFormat(Protocol):
    """A format whose files are written whole. ``parse`` streams: memory stays small."""

    kind: Literal["document"]

    def recognizes(self, path: Path, head: bytes) -> bool: ...

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]: ...

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]: ...


class DatabaseFormat(Protocol):
    """A format that is another program's SQLite database, opened read-only.

    A database is recognized if it has all of ``tables``. A missing column or an
    unreadable row is a ``Problem``; ``apsw.Error`` is raised only when the database as
    a whole cannot be read.
    """

    kind: Literal["database"]
    tables: frozenset[str]

    def recognizes(self, path: Path, head: bytes) -> bool:
        """Whether the file's name and its ``SQLite format 3`` head fit."""
        ...

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]: ...

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]: ...


Format = LineFormat | DocumentFormat | DatabaseFormat


class FormatRow(FrozenStruct):
    """One row of FORMATS: a format's name, its host, and where its class is."""

    name: str
    host: str
    target: str
    summary: str
    # A companion only adds facts to sessions that other files hold.
    is_companion: bool = False

    def load(self) -> Format:
        module, _, attribute = self.target.partition(":")
        made: Format = getattr(import_module(module), attribute)()
        return made


# -- small pieces that many parsers need ----------------------------------------------


def made_id(
    session_id: str, role: Role, text: str, sent: Moment | None, ordinal: int
) -> str:
    """An id for a message that has none of its own.

    A message with a time is identified by its time and text, wherever it is, so a
    rotated or shortened file gives no message twice. Without a time, only its position
    distinguishes it from an equal message.
    """
    place = sent.at.isoformat() if sent is not None else f"#{ordinal}"
    return content_id(session_id, role, place, text)


def make_unique(native_id: str, sent: Moment | None, memo: Memo) -> str:
    """Add a suffix to a made id if the same was said before at the same instant.

    Programs that record whole seconds may write two equal answers with equal times.
    Only the ids of the last instant are kept.
    """
    if sent is None:
        return native_id
    instant = sent.at.isoformat()
    if memo.get("instant") != instant:
        memo["instant"], memo["at_instant"] = instant, {}
    before = memo["at_instant"].get(native_id, 0)
    memo["at_instant"][native_id] = before + 1
    return f"{native_id}~{before}" if before else native_id


def first_records(head: bytes, most: int = 20) -> Iterator[JsonObject]:
    """The JSON objects that the first lines of a file hold, for recognizing it."""
    for line in head.splitlines()[:most]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value


def unknown_record(kind: object, line: int | None) -> Problem:
    """The problem to report for a record of an unknown kind."""
    if kind is None:
        return Problem("a record without a type", line)
    return Problem(f"unknown record type {kind!r:.80}", line)
