"""Open another program's SQLite database without disturbing that program.

The file is never written, never checkpointed, and its owner is never made to wait:

- Nobody has it open, or it has no write-ahead log: it is read in place, without locks
  (``immutable``), and read again if it changed while it was read.
- Its owner is running, with a write-ahead log: an ordinary read-only connection, which
  never blocks a writer.
- A log was left behind by a crash: reading it would mean writing beside it, so database
  and log are copied to a temporary folder and read there.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import apsw

from backstory.errors import SourceUnreadable
from backstory.system.files import open_file

_BUSY_TIMEOUT_MS = 2_000


def log_signature(path: Path) -> str:
    """Text that changes when the write-ahead log beside a database does."""
    try:
        stat = _beside(path.resolve(), "-wal").stat()
    except OSError:
        return ""
    return f":{stat.st_size}:{stat.st_mtime_ns}" if stat.st_size else ""


@dataclass(frozen=True, slots=True)
class ForeignDatabase:
    """An open database of another program.

    ``is_unguarded``: its owner may write it while it is read, so what was read counts
    only if the signature is still the same afterwards.
    """

    db: apsw.Connection
    is_unguarded: bool


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
        return ForeignDatabase(_connect(path, "immutable=1"), is_unguarded=True)
    if _beside(path, "-shm").exists():
        return ForeignDatabase(_connect(path, "mode=ro"), is_unguarded=False)
    folder = tempfile.TemporaryDirectory(prefix="backstory-")
    copy = Path(until_closed.enter_context(folder)) / path.name
    shutil.copyfile(path, copy)
    shutil.copyfile(_beside(path, "-wal"), _beside(copy, "-wal"))
    return ForeignDatabase(_connect(copy, "mode=rw"), is_unguarded=True)


def _connect(path: Path, options: str) -> apsw.Connection:
    writable = options == "mode=rw"
    db = apsw.Connection(
        f"file:{quote(os.fsencode(path))}?{options}",
        flags=apsw.SQLITE_OPEN_URI
        | (apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY),
    )
    db.set_busy_timeout(_BUSY_TIMEOUT_MS)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    # A crafted schema must not run anything: no views' or triggers' functions.
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.execute("SELECT COUNT(*) FROM sqlite_schema").fetchall()
    return db


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
    rows = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return frozenset(name for (name,) in rows)


def list_columns(db: apsw.Connection, table: str) -> frozenset[str]:
    """The names of a table's columns: schemas of other programs grow over time.

    A view has none: no program that we know reads through one, and a crafted view can
    have rows without end.
    """
    if table not in list_tables(db):
        return frozenset()
    rows = db.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(name for (name,) in rows)
