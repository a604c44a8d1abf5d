"""Open our databases, keep their schemas current, and write in transactions."""

import errno
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import apsw

from backstory.errors import (
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreProblem,
    StoreTooNew,
    StoreUnwritable,
)
from backstory.store.sqlite import page_checksums
from backstory.store.sqlite.database_file import create
from backstory.store.sqlite.log_check import (
    find_last_commit,
    is_end_lost,
    warn_of_lost_end,
)
from backstory.system.files import make_private_folders
from backstory.system.fork_safety import block_forks
from backstory.system.loggers import lazy_logger

logger = lazy_logger(__name__)

BUSY_TIMEOUT_MS = 30_000
LARGE_BYTES = 256_000_000
# How long to wait for readers, because the log cannot be emptied while they read.
_LOG_WAIT_MS = 1_000

# What SQLite's errors mean; the first row that matches applies.
_MEANINGS: tuple[tuple[type[apsw.Error], type[StoreProblem], str], ...] = (
    (apsw.BusyError, StoreLocked, "another process is writing it"),
    (apsw.LockedError, StoreLocked, "another process is writing it"),
    (apsw.FullError, StoreFull, "the disk is full"),
    (apsw.CorruptError, StoreDamaged, "the file is damaged"),
    (apsw.NotADBError, StoreDamaged, "the file is not a database"),
    (apsw.ReadOnlyError, StoreUnwritable, "it is read-only"),
    (apsw.CantOpenError, StoreUnwritable, "it cannot be opened"),
    (apsw.PermissionsError, StoreUnwritable, "no permission to open it"),
    (apsw.Error, StoreProblem, "SQLite refused"),
)
_IO_HINT = (
    "check the disk, its free space, your quota, "
    "and how large files may get (ulimit -f)"
)
# Called with what is wrong, in a few words.
OnDamage = Callable[[str], None]

# Why these connections are read-only.
_WHY_READ_ONLY: weakref.WeakKeyDictionary[apsw.Connection, StoreProblem] = (
    weakref.WeakKeyDictionary()
)


def limit_page_caches(max_bytes: int) -> None:
    """Have all connections of this process together cache no more than this, roughly.

    Beyond that, a connection evicts its own pages instead of keeping more of them.
    """
    apsw.soft_heap_limit(max_bytes)


def is_large(path: Path) -> bool:
    """Whether a database is so large that its connections need larger caches.

    With the usual ones, every search would read most pages from the file again, and
    check them again.
    """
    return path.stat().st_size > LARGE_BYTES


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, naming the file. Forks wait for the block."""
    try:
        with block_forks():
            yield
    except apsw.Error as exc:
        problem, words = next(
            (problem, words)
            for foreign, problem, words in _MEANINGS
            if isinstance(exc, foreign)
        )
        if isinstance(exc, apsw.SQLError) and "no such" in str(exc):
            # All tables are created with the file, so a missing one means damage.
            problem, words = StoreDamaged, "part of it is missing"
        if getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
            problem, words = StoreFull, "the disk is full"
        hint = _IO_HINT if isinstance(exc, apsw.IOError) else None
        raise problem(f"{path}: {words} ({exc})", hint=hint, path=path) from exc
    except UnicodeDecodeError as exc:
        # We only write valid UTF-8.
        raise StoreDamaged(f"{path}: a text is not UTF-8 ({exc})", path=path) from exc


def from_os_error(path: Path, exc: OSError) -> StoreProblem:
    """The problem to raise when a file of ours cannot be opened or written."""
    kind = StoreFull if exc.errno == errno.ENOSPC else StoreUnwritable
    return kind(f"{path}: {exc.strerror}", path=path)


def open_database(
    path: Path, migrations: str, *, on_damage: OnDamage = lambda reason: None
) -> apsw.Connection:
    """Open or create the database at ``path`` and bring its schema up to date.

    Only its owner may read it. Commits reach the disk before they return. If it cannot
    be written, or the disk is full, it is opened read-only, as it is. ``on_damage`` is
    called if the end of its log was lost, which only shows now.
    """
    try:
        return _open_to_write(path, migrations, on_damage)
    except (StoreUnwritable, StoreFull) as exc:
        opened = _open_to_read(path, migrations)
        if opened is None:
            raise
        # A copy: the traceback of the original would keep the connection alive.
        _WHY_READ_ONLY[opened] = type(exc)(str(exc), path=path)
        return opened


def _open_to_write(path: Path, migrations: str, on_damage: OnDamage) -> apsw.Connection:
    try:
        make_private_folders(path.parent)
        # SQLite gives its journal files the mode of the database file.
        create(path)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except OSError as exc:
        raise from_os_error(path, exc) from exc
    with translated(path):
        last_commit = find_last_commit(path)
        db = apsw.Connection(str(path), vfs=page_checksums.VERIFIED)
        try:
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            # A connection that the garbage collector closes must not write.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            if not path.stat().st_size:
                page_checksums.reserve_bytes(db)
            for pragma in (
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA foreign_keys = ON",
                "PRAGMA secure_delete = ON",
                "PRAGMA temp_store = MEMORY",
            ):
                _execute_patiently(db, pragma)
            # Whoever else has it locked has read its log already.
            with suppress(apsw.BusyError):
                if is_end_lost(db, path, last_commit):
                    on_damage(warn_of_lost_end(path))
            page_checksums.add_checksums(db, path)
            migrate(db, path, migrations)
        except BaseException:
            # Otherwise the traceback would keep it open, with its locks.
            close_database(db)
            raise
    return db


def close_database(db: apsw.Connection) -> None:
    """Close a connection; the last one to close moves the log into the file.

    If there is no room for that, the data stays in the log, where it is just as safe.
    Raises ``apsw.ThreadingViolationError`` if another thread is using the connection.
    """
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        db.close(True)
    except apsw.ThreadingViolationError:
        raise
    except apsw.Error:
        return


def _open_to_read(path: Path, migrations: str) -> apsw.Connection | None:
    """The database as it is; None if it cannot be read or has an older schema."""
    # Even to read, SQLite writes files next to the database, to coordinate with
    # writers. If it cannot, it must be told that the file never changes, which is only
    # true if there is no log.
    ways = ["mode=ro"]
    if not _has_log(path):
        ways.append("immutable=1")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    for way in ways:
        with suppress(StoreProblem), translated(path):
            db = apsw.Connection(
                f"{path.absolute().as_uri()}?{way}",
                flags=flags,
                vfs=page_checksums.VERIFIED,
            )
            try:
                db.set_busy_timeout(BUSY_TIMEOUT_MS)
                db.execute("PRAGMA temp_store = MEMORY")
                if schema_version(db) == latest_version(migrations):
                    return db
            except apsw.Error:
                db.close(True)
                raise
            db.close(True)
    return None


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def _execute_patiently(db: apsw.Connection, statement: str) -> None:
    """Run a statement that ignores SQLite's busy timeout.

    Several processes that open a new file at once all try to turn on its log.
    """
    pause_s = 0.01
    for _ in range(round(BUSY_TIMEOUT_MS / 1000 / pause_s)):
        try:
            db.execute(statement).fetchall()
            return
        except apsw.BusyError:
            time.sleep(pause_s)
    db.execute(statement).fetchall()


def set_durability(db: apsw.Connection, *, is_durable: bool) -> None:
    """Choose whether commits wait for the disk. Not inside a transaction."""
    mode = "FULL" if is_durable else "NORMAL"
    db.execute(f"PRAGMA synchronous = {mode}")


def empty_log(db: apsw.Connection) -> bool:
    """Remove deleted rows from the log too; in the file they are overwritten.

    Returns False if a reader of an older state still needs the log, for some time.
    """
    db.set_busy_timeout(_LOG_WAIT_MS)
    try:
        is_busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
    finally:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
    if is_busy:
        logger.info(
            "%s-wal: still has deleted rows, because it is being read", db.filename
        )
    return not is_busy


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """All of the block is committed, or none of it. Waits for other writers first."""
    reason = _WHY_READ_ONLY.get(db)
    if reason is not None:
        raise type(reason)(str(reason), path=reason.path)
    db.execute("BEGIN IMMEDIATE")
    changes = db.total_changes()
    try:
        yield
        if db.total_changes() != changes:
            page_checksums.write_first_page(db)
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def migrate(db: apsw.Connection, path: Path, folder: str) -> None:
    """Apply the numbered scripts of ``folder`` that are new to this database.

    They run in one transaction with the version number: if two processes open a new
    file at once, one applies them, and nobody sees a half-made schema.
    """
    latest = latest_version(folder)
    version = schema_version(db)
    if version > latest:
        raise StoreTooNew(
            f"{path}: written by a newer Backstory "
            f"(schema {version}, this version knows {latest})",
            path=path,
        )
    if not version and db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get:
        # Another process may have made them just now.
        if not schema_version(db):
            raise StoreDamaged(
                f"{path}: it has tables but no schema version", path=path
            )
        version = schema_version(db)
    if version == latest:
        return
    with transaction(db):
        for script in read_migrations(folder)[schema_version(db) :]:
            for statement in split_statements(script):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {latest:d}")


def schema_version(db: apsw.Connection) -> int:
    version = db.execute("PRAGMA user_version").get
    assert isinstance(version, int)
    return version


def latest_version(folder: str) -> int:
    """The version of a schema to which all scripts of ``folder`` were applied."""
    return len(_list_migrations(folder))


@cache
def read_migrations(folder: str) -> tuple[str, ...]:
    scripts = _list_migrations(folder)
    return tuple(script.read_text(encoding="utf-8") for script in scripts)


@cache
def _list_migrations(folder: str) -> list[Path]:
    # importlib.resources would find them too, but takes milliseconds to import. A glob
    # is avoided too, because it compiles a regular expression.
    scripts = Path(__file__).with_name(folder).iterdir()
    return sorted(each for each in scripts if each.suffix == ".sql")


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: apsw stops at the first returned row."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if apsw.complete(statement):
            yield statement
            statement = ""
