"""Open a database of a home only to read it, for a hook.

It neither waits for a writer nor writes: a database that is locked, damaged or of
another version is left to commands that can do something about it.
"""

import os

import apsw

from backstory.store.base.copies import COPYING
from backstory.store.sqlite.page_checksums import VERIFIED
from backstory.store.sqlite.readable_text import read_invalid_text

_BUSY_MS = 200
# A schema's version is the number of scripts in its folder.
_MIGRATIONS = {"index.db": "index_migrations", "history.db": "history_migrations"}


def open_read_only(home: str, name: str) -> apsw.Connection:
    """A database of a home. Raises LookupError if it is of another version."""
    path = os.path.join(home, name)
    # Without a log, nobody is writing, and we may not be allowed to create one.
    has_log = os.path.exists(f"{path}-wal")
    if not has_log and not os.access(home, os.W_OK):
        return _open(path, name, "immutable=1")
    try:
        return _open(path, name, "mode=ro")
    except (apsw.CantOpenError, apsw.FullError, apsw.IOError):
        # On a full disk there is no room for the file that SQLite shares beside the
        # log.
        if has_log:
            raise
        return _open(path, name, "immutable=1")


def _open(path: str, name: str, way: str) -> apsw.Connection:
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = apsw.Connection(
        f"file:{quoted}?{way}",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        vfs=VERIFIED,
    )
    db.set_busy_timeout(_BUSY_MS)
    read_invalid_text(db)
    # Reading must not move what is in the log into the file.
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    scripts = os.listdir(os.path.join(os.path.dirname(__file__), _MIGRATIONS[name]))
    version = sum(script.endswith(".sql") for script in scripts)
    try:
        found = db.execute("PRAGMA user_version").get
    except apsw.Error as exc:
        raise type(exc)(f"{path}: {exc}") from exc
    if found != version:
        raise LookupError(f"{path}: of another version")
    return db


def open_history_read_only(home: str) -> apsw.Connection:
    """The history of a home. Raises LookupError for an incomplete copy, too."""
    db = open_read_only(home, "history.db")
    if is_copying(db):
        db.close()
        raise LookupError(f"{home}: a copy that is not complete")
    return db


def is_copying(history: apsw.Connection) -> bool:
    """Whether a history is a copy that is not complete."""
    statement = "SELECT 1 FROM journal_state WHERE name = ?"
    return history.execute(statement, (COPYING,)).get is not None


def read_identity(history: apsw.Connection) -> str:
    """The text that is unique to this history."""
    return str(history.execute("SELECT value FROM identity").get)
