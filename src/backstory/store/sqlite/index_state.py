"""The table ``state``: values by name; and what all modules of index.db share."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

# Vectors in one row of ``vector_pages``.
SLOTS = 1024
VECTOR_COLUMNS = ("units", "embeddings", "codes", "kinds", "sources", "said")


def get_state(db: apsw.Connection, name: str) -> str | None:
    value: str | None = db.execute(
        "SELECT value FROM state WHERE name = ?", (name,)
    ).get
    return value


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
    db.execute("SAVEPOINT reading")
    try:
        yield
    finally:
        db.execute("ROLLBACK TO reading")
        db.execute("RELEASE reading")
