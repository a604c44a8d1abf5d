"""The files of an index: erase what was deleted, replace them, reset them."""

import os
from contextlib import suppress
from pathlib import Path

import apsw

from backstory.store.sqlite.connection import (
    empty_log,
    transaction,
    translated,
)
from backstory.store.sqlite.index_connection import IndexConnection
from backstory.store.sqlite.index_state import SOME, get_state, set_state
from backstory.store.sqlite.page_checksums import UNVERIFIED
from backstory.store.sqlite.unit_counts import UNITS, get_count
from backstory.store.sqlite.words import merge_words

# Tidying rewrites all words. In an index with more units than this, the words of a few
# deleted messages are left until FTS5 merges them away by itself.
_LARGE = 50_000
# Set while SQLite's log may still have what was deleted.
_LOG_IS_DUE = "log_is_due"


def tidy_words(db: apsw.Connection) -> bool:
    """Erase the words of what was deleted; returns False if that can wait."""
    deleted = get_state(db, "deleted")
    is_large = get_count(db, UNITS) > _LARGE
    if not deleted or (deleted == SOME and is_large):
        return False
    with transaction(db):
        merge_words(db)
        set_state(db, "deleted", "")
        set_state(db, _LOG_IS_DUE, "yes")
    return True


def empty_log_if_due(db: apsw.Connection) -> None:
    """Erase deleted rows from the log; stays due while somebody reads it."""
    if not get_state(db, _LOG_IS_DUE):
        return
    with suppress(apsw.BusyError):
        if empty_log(db):
            with transaction(db):
                set_state(db, _LOG_IS_DUE, "")


def replace_index(old: IndexConnection, new: IndexConnection) -> None:
    """Copy the new index over the old one, and move its texts.

    Readers go on with what was there when they began.
    """
    name = f"{old.path.stem}-{os.urandom(4).hex()}.text"
    name_in_new = get_state(new.db, "text_file")
    if name_in_new is not None:
        texts = new.path.with_name(name_in_new)
        if texts.exists():  # it is created with the first text
            texts.rename(old.path.with_name(name))
        set_state(new.db, "text_file", name)
    with old.db.backup("main", new.db, "main") as backup:
        while not backup.done:
            backup.step()
    set_state(old.db, _LOG_IS_DUE, "yes")
    empty_log_if_due(old.db)
    delete_other_texts(old.path, name)


def list_other_texts(path: Path, name: str | None) -> list[Path]:
    """The files of texts next to an index, except the one it uses."""
    return [file for file in _list_texts(path) if file.name != name]


def delete_other_texts(path: Path, name: str) -> None:
    for file in list_other_texts(path, name):
        file.unlink(missing_ok=True)


def size_bytes(path: Path) -> int:
    files = [path, path.with_name(f"{path.name}-wal"), *_list_texts(path)]
    return sum(file.stat().st_size for file in files if file.exists())


def _list_texts(path: Path) -> list[Path]:
    return list(path.parent.glob(f"{path.stem}-*.text"))


def reset_database(path: Path) -> None:
    """Turn a file into an empty database, whatever is in it."""
    with translated(path):
        db = apsw.Connection(str(path), vfs=UNVERIFIED)
        db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
        db.execute("VACUUM")
        db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
        db.close()
