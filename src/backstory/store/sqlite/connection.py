"""Open a database of ours, keep its schema current, and write in whole transactions."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
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

BUSY_TIMEOUT_MS = 30_000

# The first row whose class the exception is an instance of says what it means.
_MEANINGS: tuple[tuple[type[apsw.Error], type[StoreProblem], str], ...] = (
    (apsw.BusyError, StoreLocked, "another process is writing it"),
    (apsw.LockedError, StoreLocked, "another process is writing it"),
    (apsw.FullError, StoreFull, "the disk is full"),
    (apsw.CorruptError, StoreDamaged, "the file is damaged"),
    (apsw.NotADBError, StoreDamaged, "the file is not a database"),
    (apsw.ReadOnlyError, StoreUnwritable, "it may not be written"),
    (apsw.CantOpenError, StoreUnwritable, "it cannot be opened"),
    (apsw.PermissionsError, StoreUnwritable, "it may not be opened"),
    (apsw.Error, StoreProblem, "SQLite refused"),
)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, naming the file."""
    try:
        yield
    except apsw.Error as exc:
        problem, words = next(
            (problem, words)
            for foreign, problem, words in _MEANINGS
            if isinstance(exc, foreign)
        )
        if isinstance(exc, apsw.SQLError) and "no such" in str(exc):
            # Every table is made when the file is.
            problem, words = StoreDamaged, "part of it is missing"
        raise problem(f"{path}: {words} ({exc})", path=path) from exc


def open_database(path: Path, migrations: str) -> apsw.Connection:
    """Open or create the database at ``path`` and bring its schema up to date.

    Only its owner may read it. Commits reach the disk before they return.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its journal files the mode of the database file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as exc:
        raise StoreUnwritable(f"{path}: {exc.strerror}") from exc
    with translated(path):
        db = apsw.Connection(str(path))
        try:
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            for pragma in (
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA foreign_keys = ON",
                "PRAGMA secure_delete = ON",
                "PRAGMA temp_store = MEMORY",
            ):
                _execute_patiently(db, pragma)
            migrate(db, path, migrations)
        except BaseException:
            # Its locks must not outlive it in the traceback.
            db.close(True)
            raise
    return db


def _execute_patiently(db: apsw.Connection, statement: str) -> None:
    """Run a statement for which SQLite itself does not wait.

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
    """Choose whether a commit waits until the disk has it. Not inside a transaction."""
    mode = "FULL" if is_durable else "NORMAL"
    db.execute(f"PRAGMA synchronous = {mode}")


def forget_deleted(db: apsw.Connection) -> None:
    """Let nothing of deleted rows stay in the log; the file has zeros for them."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Everything inside happens, or none of it; waits for other writers first."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # SQLite has already rolled back by itself after some errors (a full disk).
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def migrate(db: apsw.Connection, path: Path, package: str) -> None:
    """Apply the numbered scripts of ``package`` that this database has not seen yet.

    Each runs in one transaction together with the version it leads to, so two processes
    that open a new file at once apply each script once.
    """
    scripts = read_migrations(package)
    version = schema_version(db)
    if version > len(scripts):
        raise StoreTooNew(
            f"{path}: written by a newer Backstory "
            f"(schema {version}, this version knows {len(scripts)})"
        )
    for number, script in enumerate(scripts, start=1):
        if number <= version:
            continue
        with transaction(db):
            if schema_version(db) < number:
                for statement in split_statements(script):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number:d}")


def schema_version(db: apsw.Connection) -> int:
    version = db.execute("PRAGMA user_version").get
    assert isinstance(version, int)
    return version


def read_migrations(package: str) -> list[str]:
    folder = resources.files(package)
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return [entry.read_text(encoding="utf-8") for entry in files]


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: apsw stops a script at its first row."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if apsw.complete(statement):
            yield statement
            statement = ""
