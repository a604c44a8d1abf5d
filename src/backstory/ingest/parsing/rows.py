"""Read rows of another program's database, whatever columns and bytes they hold.

Schemas grow over the years, and SQLite allows any bytes in a text column. So a missing
column reads as None, bytes that are not UTF-8 are replaced, and only the beginning of a
very long value is read. That way, only the bad value is lost, not the conversation
around it.
"""

import codecs
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import IO, Any, Self, cast

import apsw

from backstory.ingest.importers.base import Record
from backstory.ingest.parsing.databases import list_columns
from backstory.ingest.parsing.lines import MAX_STRING_BYTES, LineReader
from backstory.text.cut import cut_mark
from backstory.text.json_values import compact_json
from backstory.values.history import CutString, Problem

# Longer values are never held in memory as a whole.
MAX_VALUE_BYTES = 8 * 1024 * 1024
_CHUNK = 1024 * 1024
# Ids are much shorter.
_MAX_KEY_BYTES = 64 * 1024


class LongText(str):
    """The beginning of a value that was too long to read; ``size`` is its full size.

    A JSON object stays an object; only its long strings are cut, and listed in
    ``cuts``.
    """

    __slots__ = ("cuts", "size")
    size: int
    cuts: tuple[CutString, ...]

    def __new__(
        cls, text: str, *, size: int = 0, cuts: tuple[CutString, ...] = ()
    ) -> Self:
        made = super().__new__(cls, text)
        made.size, made.cuts = size, cuts
        return made


def iter_rows(
    db: apsw.Connection,
    table: str,
    columns: Sequence[str],
    *,
    rest: str = "",
    params: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """The rows of a table as mappings of ``columns``; ``rest`` is the SQL after FROM.

    ``table``, ``columns`` and ``rest`` are constants of the calling importer, never
    text from a database; ``params`` are bound.
    """
    return ForeignTable(db, table, columns).rows(rest, params)


def report_long(row: Mapping[str, object], what: str) -> Iterator[Problem]:
    """A problem for every value of a row that was too long to read."""
    for column, value in row.items():
        if isinstance(value, LongText):
            yield Problem(
                f"{what}: {column} has {value.size:,} bytes; only the beginning of "
                "what is long in it was read",
                cuts=value.cuts,
            )


def lenient(expression: str) -> str:
    """SQL for a value that may hold any bytes; pass its result to ``decode``.

    apsw raises an error for text that is not UTF-8, but returns bytes as they are. So
    the SQL returns values as bytes, and text only for the size of a value that is too
    long.
    """
    return _LENIENT.format(expression, MAX_VALUE_BYTES)


_LENIENT = """
CASE WHEN typeof({0}) NOT IN ('text', 'blob') THEN {0}
     WHEN octet_length({0}) > {1} THEN CAST(octet_length({0}) AS TEXT)
     ELSE CAST({0} AS BLOB) END"""


def decode(value: object) -> object:
    """Bytes as text, with what is not UTF-8 replaced; anything else as it is."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return value


class ForeignTable:
    """Some columns of a table, some of which may be missing, or the whole table.

    ``blobs`` are columns whose bytes are not text; too long, they are ``LongText``.
    """

    def __init__(
        self,
        db: apsw.Connection,
        name: str,
        columns: Sequence[str],
        *,
        blobs: Sequence[str] = (),
    ) -> None:
        self.db = db
        self.name = name
        self.known = list_columns(db, name)
        self._columns = tuple(columns)
        self._blobs = frozenset(blobs)
        self.has_rowid = bool(self.known) and _has_rowid(db, name)
        chosen = [f"{name}.rowid" if self.has_rowid else "NULL"]
        chosen += [
            lenient(f"{name}.{column}") if column in self.known else "NULL"
            for column in columns
        ]
        self._select = f"SELECT {', '.join(chosen)} FROM {name} "

    def rows(
        self, rest: str = "", params: Sequence[str] = ()
    ) -> Iterator[dict[str, Any]]:
        """The rows that ``rest``, the SQL after FROM, selects."""
        if not self.known:
            return
        for rowid, *values in self.db.execute(self._select + rest, params):
            yield {
                column: self._value(column, value, rowid)
                for column, value in zip(self._columns, values, strict=True)
            }

    def _value(self, column: str, value: object, rowid: int | None) -> object:
        if isinstance(value, str):
            size = int(value)
            if column in self._blobs:
                return LongText("", size=size)
            return self._beginning(column, rowid, size)
        return value if column in self._blobs else decode(value)

    def _beginning(self, column: str, rowid: int | None, size: int) -> LongText:
        if rowid is None:
            return LongText("[too long to be read]", size=size)
        blob = self.db.blob_open("main", self.name, column, rowid, False)
        with closing(blob):
            raw = io.BufferedReader(_BlobFile(blob), _CHUNK)
            if raw.peek(1)[:1] == b"{":
                # To a type checker, IO[bytes] and BufferedReader are not the same.
                reader = LineReader(
                    cast(IO[bytes], raw), max_line_bytes=MAX_VALUE_BYTES
                )
                cuts: list[CutString] = []
                for item in reader.records():
                    if isinstance(item, Record):
                        text = compact_json(item.value)
                        return LongText(text, size=size, cuts=tuple(cuts))
                    cuts.extend(item.cuts)
                raw.seek(0)
            head = raw.read(MAX_STRING_BYTES)
            text = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
            cut = CutString(cut_mark(len(head), size), size)
            return LongText(text + cut.mark, size=size, cuts=(cut,))


def _has_rowid(db: apsw.Connection, table: str) -> bool:
    try:
        # pragma_table_list would tell, but reads all views of the database as well.
        db.execute(f"SELECT rowid FROM {table} LIMIT 0")
    except apsw.SQLError:
        return False
    return True


class _BlobFile(io.RawIOBase):
    """A value of a database as a file, read piece by piece."""

    def __init__(self, blob: apsw.Blob) -> None:
        self._blob = blob

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._blob.seek(offset, whence)
        return self._blob.tell()

    # Any: io's own type for what bytes can be read into is not public.
    def readinto(self, buffer: Any) -> int:
        piece = self._blob.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _short(key: str) -> str:
    """SQL for a key, or NULL if it is so long that copies of it would fill the disk."""
    return f"CASE WHEN octet_length({key}) <= {_MAX_KEY_BYTES} THEN {key} END"


class Lookup:
    """Find a table's rows by a key for which the table itself has no index.

    The index is a temporary table beside the database, made once: keys and row numbers
    of all rows there are at that time. Of ``keys``, the first that is not NULL counts.
    """

    _numbers = itertools.count()

    def __init__(
        self, table: ForeignTable, keys: Sequence[str], order: Sequence[str]
    ) -> None:
        self._table = table
        self._index = f"backstory_{next(self._numbers)}"
        self.is_empty = True
        found = [f"{table.name}.{key}" for key in keys if key in table.known]
        if not found or not table.has_rowid:
            return
        known_order = [f'"{name}"' for name in order if name in table.known]
        table.db.execute(
            f"""
            CREATE TABLE temp.{self._index} (key, place);
            INSERT INTO temp.{self._index}
            SELECT {_short(f"COALESCE({', '.join(found)}, NULL)")}, rowid
              FROM {table.name}
             ORDER BY {", ".join([*known_order, "rowid"])};
            CREATE INDEX temp.{self._index}_key ON {self._index} (key)
            """
        )
        self.is_empty = not table.db.execute(
            f"SELECT EXISTS (SELECT 1 FROM temp.{self._index})"
        ).get

    def rows(self, key: str) -> Iterator[dict[str, Any]]:
        """The rows of that key, in order."""
        if self.is_empty:
            return iter(())
        name = self._table.name
        return self._table.rows(
            f"""
            JOIN temp.{self._index} AS found ON {name}.rowid = found.place
            WHERE found.key = ? ORDER BY found.rowid
            """,
            (key,),
        )
