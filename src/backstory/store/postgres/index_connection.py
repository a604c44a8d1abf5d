"""Transactions on one search index of a tenant.

An index is known by its name. What it is made of belongs to its number, so another one
can take its place at once: it is given the name.
"""

import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import psycopg

from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import Tenant
from backstory.system.fork_safety import reset_in_child

# No index has this number.
_NO_INDEX = 0
_ID_BITS = 31
_CANCEL_TIMEOUT_S = 2.0

# All that belongs to an index, apart from its row in ``indexes``.
TABLES = (
    "index_states",
    "indexed_sessions",
    "indexed_files",
    "units",
    "unit_notes",
    "unit_passages",
    "index_chunks",
    "word_tail",
    "word_blocks",
    "word_segments",
    "units_to_embed",
    "vector_codes",
    "unit_vectors",
)


class IndexCounters(NamedTuple):
    """The row of an index: its number, and what is counted."""

    index_id: int = _NO_INDEX
    unit_count: int = 0
    word_count: int = 0
    vector_count: int = 0
    tail_count: int = 0
    last_file_id: int = 0
    last_chunk_id: int = 0


class IndexTransactions:
    """Begins transactions on one index."""

    def __init__(self, tenant: Tenant, name: str) -> None:
        self.tenant = tenant
        self.name = name
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._used: dict[int, Connection] = {}

    @contextmanager
    def reading(self) -> Iterator[tuple[Connection, IndexCounters]]:
        """A transaction that sees one state of the index; it may have no row yet."""
        with self.tenant.reading() as db, self._interruptible(db):
            yield db, _find_counters(db, self.name) or IndexCounters()

    @contextmanager
    def writing(self, *, wait_s: float) -> Iterator[tuple[Connection, IndexCounters]]:
        """A transaction that no other writer of the index shares."""
        # What a crash of the server loses is read from the history again.
        with self.tenant.writing_apart(wait_s=wait_s, is_durable=False) as db:
            yield db, lock_index(db, self.name)

    @contextmanager
    def _interruptible(self, db: Connection) -> Iterator[None]:
        thread_id = threading.get_ident()
        with self._lock:
            self._used[thread_id] = db
        try:
            yield
        finally:
            # While another thread cancels the statement, the connection stays ours.
            with self._lock:
                self._used.pop(thread_id, None)

    def interrupt(self, thread_ids: Collection[int]) -> None:
        """Cancel the statements that these threads have the server run."""
        with self._lock:
            for thread_id in thread_ids:
                db = self._used.get(thread_id)
                if db is not None:
                    with suppress(psycopg.Error):
                        db.cancel_safe(timeout=_CANCEL_TIMEOUT_S)


def lock_index(db: Connection, name: str) -> IndexCounters:
    """Lock the row of an index, which is made if it is missing."""
    db.execute(
        """
        INSERT INTO indexes (name, index_id) VALUES (%s, %s)
            ON CONFLICT (tenant_id, name) DO NOTHING
        """,
        (name, secrets.randbits(_ID_BITS - 1) + 1),
    )
    found = _find_counters(db, name, locked=True)
    assert found is not None
    return found


def _find_counters(
    db: Connection, name: str, *, locked: bool = False
) -> IndexCounters | None:
    """The row of an index; statements that follow are planned for their own values.

    A plan that was made while the index was empty would be slow when it is filled.
    """
    row = db.execute(
        b"""
        SELECT index_id, unit_count, word_count, vector_count, tail_count, last_file_id,
               last_chunk_id, set_config('plan_cache_mode', 'force_custom_plan', true)
          FROM indexes WHERE name = %s
        """
        + (b"FOR UPDATE" if locked else b""),
        (name,),
    ).fetchone()
    return None if row is None else IndexCounters(*row[:-1])


def save_counters(db: Connection, counters: IndexCounters) -> None:
    index_id, *counts = counters
    db.execute(
        """
        UPDATE indexes
           SET unit_count = %s, word_count = %s, vector_count = %s, tail_count = %s,
               last_file_id = %s, last_chunk_id = %s
         WHERE index_id = %s
        """,
        (*counts, index_id),
    )


def delete_rows(db: Connection, index_id: int) -> None:
    """Delete everything that belongs to an index."""
    for table in TABLES:
        db.execute(f"DELETE FROM {table} WHERE index_id = %s".encode(), (index_id,))


def replace_index(db: Connection, old: str, new: str) -> None:
    """Give the name of the old index to the new one, and delete the old one."""
    # In the same order everywhere, so that two of these do not wait for each other.
    for name in sorted((old, new)):
        lock_index(db, name)
    counters = _find_counters(db, old)
    assert counters is not None
    delete_rows(db, counters.index_id)
    db.execute("DELETE FROM indexes WHERE name = %s", (old,))
    db.execute("UPDATE indexes SET name = %s WHERE name = %s", (old, new))
