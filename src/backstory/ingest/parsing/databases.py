"""Open another program's SQLite database without disturbing that program.

The file is never written, never checkpointed, and its owner is never made to wait:

- Nobody has it open, or it has no write-ahead log: it is read in place, without locks
  (``immutable``), and read again if it changed while it was read.
- Its owner is running, with a write-ahead log: an ordinary read-only connection, which
  never blocks a writer.
- A log was left behind by a crash: reading it would mean writing beside it, so database
  and log are copied to a temporary folder and read there.

A file can claim more than it holds: pages that point at the same page many times make
endless rows, and computed columns make long values out of nothing. So the work that a
file may cause is limited by its size, far above what an honest file needs.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from backstory.errors import SourceUnreadable
from backstory.system.files import open_file, stored_bytes
from backstory.values.structs import FrozenStruct

_BUSY_TIMEOUT_MS = 2_000
# Steps of SQLite's virtual machine. The most that an honest file needed, one of nothing
# but tiny rows, was two for each of its bytes.
_MIN_STEPS = 20_000_000
_STEPS_PER_BYTE = 100
_STEPS_PER_CHECK = 10_000
# Bytes that are returned. A text that many rows refer to is returned as many times.
_MIN_BYTES_OUT = 128 * 1024 * 1024
_BYTES_OUT_PER_BYTE = 250
# The longest value that SQLite ever makes while it reads.
_MIN_LENGTH = 1024 * 1024
_VIRTUAL, _STORED = 2, 3  # how pragma_table_xinfo marks computed columns


class ForeignDatabase(FrozenStruct):
    """An open database of another program.

    ``is_unguarded``: its owner may write to it during the reading, so what was read
    counts only if the signature is still the same afterwards.
    """

    db: apsw.Connection
    is_unguarded: bool
    allowance: "Allowance"


class Allowance:
    """What reading a database may cost; ``is_spent`` once it has cost more.

    From then on every statement raises ``SourceUnreadable``.
    """

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._steps = _MIN_STEPS + _STEPS_PER_BYTE * size_bytes
        self._bytes_out = _MIN_BYTES_OUT + _BYTES_OUT_PER_BYTE * size_bytes

    @property
    def is_spent(self) -> bool:
        return self._steps < 0 or self._bytes_out < 0

    def limit(self, db: apsw.Connection) -> None:
        """Have everything that is read through ``db`` counted."""
        db.set_progress_handler(self._take_steps, _STEPS_PER_CHECK)
        db.row_trace = self._take_row
        longest = max(2 * self._size_bytes, _MIN_LENGTH)
        # SQLite lowers a value above its own limit.
        db.limit(apsw.SQLITE_LIMIT_LENGTH, min(longest, 2**31 - 1))

    def _take_steps(self) -> bool:
        self._steps -= _STEPS_PER_CHECK
        self._check()
        return False

    # Any: SQLite's values, of any of its types.
    def _take_row(self, cursor: apsw.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        sizes = (len(value) for value in row if isinstance(value, str | bytes))
        self._bytes_out -= sum(sizes) + len(row)
        self._check()
        return row

    def _check(self) -> None:
        if self.is_spent:
            raise SourceUnreadable(
                f"reading it takes more work than {self._size_bytes:,} bytes can need; "
                "its pages may point at each other in circles"
            )


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignDatabase]:
    """A read-only connection to the database at ``path``.

    Raises ``SourceUnreadable`` if it cannot be opened or is not a database.
    """
    with ExitStack() as until_closed:
        try:
            # The log of a linked database is beside the database, not the link.
            foreign = _open(path.resolve(), until_closed)
        except (apsw.Error, OSError) as exc:
            raise SourceUnreadable(f"not a readable database ({exc})") from exc
        until_closed.callback(foreign.db.close)
        yield foreign


@contextmanager
def foreign_errors() -> Iterator[None]:
    """Turn SQLite's errors into ``SourceUnreadable``."""
    try:
        yield
    except apsw.TooBigError as exc:
        raise SourceUnreadable("a value in it is longer than the whole file") from exc
    except apsw.SQLError as exc:
        raise SourceUnreadable(f"unknown schema ({exc})") from exc
    except (apsw.Error, UnicodeDecodeError) as exc:
        raise SourceUnreadable(f"it cannot be read ({exc})") from exc


def _open(path: Path, until_closed: ExitStack) -> ForeignDatabase:
    if _is_hot(_beside(path, "-journal")):
        raise SourceUnreadable(
            "its program is writing to it, or crashed while doing so",
            hint="start the program once, or run 'backstory index' again later",
        )
    if not _has_content(_beside(path, "-wal")):
        return _connect(path, "immutable=1", is_unguarded=True)
    if _beside(path, "-shm").exists():
        return _connect(path, "mode=ro", is_unguarded=False)
    folder = tempfile.TemporaryDirectory(prefix="backstory-")
    copy = Path(until_closed.enter_context(folder)) / path.name
    shutil.copyfile(path, copy)
    shutil.copyfile(_beside(path, "-wal"), _beside(copy, "-wal"))
    return _connect(copy, "mode=rw", is_unguarded=True)


def _connect(path: Path, options: str, *, is_unguarded: bool) -> ForeignDatabase:
    writable = options == "mode=rw"
    db = apsw.Connection(
        f"file:{quote(os.fsencode(path))}?{options}",
        flags=apsw.SQLITE_OPEN_URI
        | (apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY),
    )
    db.set_busy_timeout(_BUSY_TIMEOUT_MS)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    # A crafted schema must not run anything, such as functions in views or triggers.
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    allowance = Allowance(sum(map(_stored_bytes, (path, _beside(path, "-wal")))))
    allowance.limit(db)
    db.execute("SELECT COUNT(*) FROM sqlite_schema").fetchall()
    db.authorizer = _Readable(db).authorize
    return ForeignDatabase(db, is_unguarded, allowance)


class _Readable:
    """Allows reading only what is stored: no virtual tables and no computed columns.

    One step of either can take any amount of time and memory, and no program that we
    read from keeps a conversation in them.
    """

    def __init__(self, db: apsw.Connection) -> None:
        rows = db.execute(
            """
            SELECT name, NULL FROM sqlite_schema WHERE type = 'table' AND rootpage = 0
            UNION ALL
            SELECT found.name, computed.name
              FROM sqlite_schema AS found, pragma_table_xinfo(found.name) AS computed
             WHERE found.type = 'table' AND found.rootpage > 0
               AND computed.hidden IN (?, ?)
            """,
            (_VIRTUAL, _STORED),
        )
        self._computed = {
            (table.lower(), column and column.lower()) for table, column in rows
        }

    def authorize(
        self,
        operation: int,
        table: str | None,
        column: str | None,
        database: str | None,
        inside: str | None,
    ) -> int:
        if operation == apsw.SQLITE_READ and database == "main" and table:
            places = (table.lower(), None), (table.lower(), (column or "").lower())
            if not self._computed.isdisjoint(places):
                name = f"{table}.{column}" if column else table
                raise SourceUnreadable(
                    f"{name} is computed, not stored, and is not read"
                )
        return apsw.SQLITE_OK


def _stored_bytes(path: Path) -> int:
    try:
        with open_file(path) as file:
            return stored_bytes(file)
    except FileNotFoundError:
        return 0


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _is_hot(journal: Path) -> bool:
    """Whether a journal holds an open transaction; a finished one begins with zeros."""
    try:
        with open_file(journal) as file:
            return file.read(1) not in (b"", b"\0")
    except FileNotFoundError:
        return False


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def list_tables(db: apsw.Connection) -> frozenset[str]:
    """The names of the tables in a database."""
    # A virtual table has no page of its own.
    rows = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
    )
    return frozenset(name for (name,) in rows)


def list_columns(db: apsw.Connection, table: str) -> frozenset[str]:
    """The names of a table's columns: schemas of other programs grow over time.

    A view has none: no program that we know reads through one, and a crafted view can
    have rows without end. Computed columns are included, so that an attempt to read one
    is reported.
    """
    if table not in list_tables(db):
        return frozenset()
    rows = db.execute("SELECT name FROM pragma_table_xinfo(?)", (table,))
    return frozenset(name for (name,) in rows)
