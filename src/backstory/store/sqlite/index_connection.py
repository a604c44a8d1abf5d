"""Connections to index.db: consistent reads, and what counts as damage."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from backstory.errors import StoreDamaged, StoreProblem
from backstory.store.sqlite.connection import (
    is_large,
    open_database,
    set_durability,
    translated,
)
from backstory.store.sqlite.index_state import snapshot
from backstory.store.sqlite.opening import Connections

Found = TypeVar("Found")

MIGRATIONS = "index_migrations"
# How often a reader starts over if its texts were wiped or replaced meanwhile.
_TRIES = 100
# What Python raises for values that a sound row cannot have.
_BAD_ROW_ERRORS = (TypeError, ValueError, LookupError, OverflowError)


class IndexConnection:
    """One connection to index.db for each thread.

    ``verify`` lists what is wrong with the index. It is called only for a bad row, to
    tell damage from a bug.
    """

    def __init__(
        self, path: Path, verify: Callable[[apsw.Connection], list[str]]
    ) -> None:
        self.path = path
        self._verify = verify
        self._connections = Connections(path, lambda: _open(path))
        self._connections.current()

    @property
    def db(self) -> apsw.Connection:
        """This thread's connection."""
        return self._connections.current()

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """This thread's connection. In the block, damage raises ``StoreDamaged``."""
        try:
            with translated(self.path):
                yield self.db
        except StoreDamaged as exc:
            # If the path is another one, it is the cache that is damaged.
            if exc.path is not None and exc.path.name.startswith(self.path.stem):
                exc.hint = "run 'backstory rebuild'; nothing is lost"
            raise
        except _BAD_ROW_ERRORS as exc:
            # This may be damage that SQLite did not notice, or a bug.
            if self._is_sound():
                raise
            raise StoreDamaged(
                f"{self.path}: a row makes no sense ({exc})", path=self.path
            ) from exc

    def _is_sound(self) -> bool:
        try:
            with translated(self.path), snapshot(self.db):
                return not self._verify(self.db)
        except (StoreProblem, *_BAD_ROW_ERRORS):
            return False

    def scan(self, find: Callable[[apsw.Connection], Found]) -> Found:
        """Read tables and texts in a consistent state.

        The file of texts is not part of SQLite's transaction: if it is changed or
        replaced during a read, the read starts over.
        """
        for _ in range(_TRIES):
            version = self._version()
            try:
                with self.reading() as db, snapshot(db):
                    return find(db)
            except StoreDamaged as exc:
                damage = exc
                if self._version() == version:
                    break
        raise damage

    def _version(self) -> int:
        """A number that changes when another connection has written."""
        with self.reading() as db:
            version: int = db.execute("PRAGMA data_version").get
            return version

    def interrupt(self, thread_ids: Collection[int]) -> None:
        self._connections.interrupt(thread_ids)

    def close(self) -> None:
        self._connections.close()


def _open(path: Path) -> apsw.Connection:
    db = open_database(path, MIGRATIONS)
    with translated(path):
        # What a power cut loses is read from the history again.
        set_durability(db, is_durable=False)
        # For a million messages, the lengths alone take 10 MB, and ranking reads those
        # of every message that has a word of the query.
        db.execute(f"PRAGMA cache_size = -{64_000 if is_large(path) else 24_000}")
    return db
