"""The table ``state``: values by name. Also what all modules of index.db share."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import apsw

from backstory.store.sqlite.rows import to_dict

Value = TypeVar("Value")

# How much has been deleted since the words were last tidied. SOME may wait; MUCH may
# not: a whole session or file, or more than one unit in a hundred.
SOME = "some"
MUCH = "much"
# Vectors in one row of ``vector_pages``.
SLOTS = 1024
VECTOR_COLUMNS = ("units", "embeddings", "codes", "kinds", "sources", "said")


def get_state(db: apsw.Connection, name: str) -> str | None:
    value: str | None = db.execute(
        "SELECT value FROM state WHERE name = ?", (name,)
    ).get
    return value


def list_states(db: apsw.Connection) -> dict[str, str]:
    return to_dict(db.execute("SELECT name, value FROM state"))


def set_state(db: apsw.Connection, name: str, value: str) -> None:
    db.execute(
        """
        INSERT INTO state (name, value) VALUES (?1, ?2)
            ON CONFLICT (name) DO UPDATE SET value = ?2
        """,
        (name, value),
    )


@contextmanager
def snapshot(db: apsw.Connection) -> Iterator[None]:
    """Reads in the block see one consistent state."""
    is_outermost = not db.in_transaction
    db.execute("SAVEPOINT reading")
    try:
        yield
    finally:
        db.execute("ROLLBACK TO reading")
        try:
            db.execute("RELEASE reading")
        except apsw.CorruptError:
            # A full-text search that runs into damage leaves the transaction open,
            # which would keep this state for ever, and keep others from replacing the
            # file.
            if is_outermost:
                db.execute("ROLLBACK")
            raise


class Derived(Generic[Value]):
    """A value made from tables, for each connection, until the tables change.

    Most searches run when nothing was written since the last one.
    """

    def __init__(self) -> None:
        self._made: weakref.WeakKeyDictionary[
            apsw.Connection, tuple[tuple[int, int], Value]
        ] = weakref.WeakKeyDictionary()

    def find(self, db: apsw.Connection) -> Value | None:
        """The value that was made last; None if anything was written since then."""
        version, made = self._made.get(db, (None, None))
        return made if version == _version(db) else None

    def keep(self, db: apsw.Connection, made: Value) -> None:
        self._made[db] = (_version(db), made)


def _version(db: apsw.Connection) -> tuple[int, int]:
    """Numbers that change when this connection or another one has written."""
    return db.execute("PRAGMA data_version").get, db.total_changes()
