"""Transactions on one search index of a tenant.

An index is known by its name. What it is made of belongs to its number, so another one
can take its place at once: it is given the name.
"""

import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import LiteralString, NamedTuple

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from backstory.errors import StoreLocked
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import Tenant
from backstory.store.postgres.index_states import list_states
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
    "last_words",
    "word_rows",
    "word_segments",
    "gram_segments",
    "gram_units",
    # Of programs that know neither.
    "text_grams",
    "units_to_embed",
    "vector_codes",
    # After the table whose triggers write it.
    "vector_segments",
    "unit_vectors",
)


# The row of an index. Statements that follow are planned for their own values: a plan
# that was made while the index was empty would be slow when it is filled. Sorting is
# off, so that rows are read in the order of an index: if the planner expects one row,
# it might otherwise read a whole tenant by a smaller index and sort that. And writers
# say which grams they know, for the trigger on this table.
_COUNTERS: LiteralString = """
    SELECT index_id, unit_count, word_count, vector_count, tail_count, last_file_id,
           last_chunk_id, xmin::text,
           set_config('plan_cache_mode', 'force_custom_plan', true),
           set_config('enable_sort', 'off', true),
           set_config('backstory.grams', 'of units', true)
      FROM indexes WHERE name = {}
"""


class IndexCounters(NamedTuple):
    """The row of an index: its number, and what is counted."""

    index_id: int = _NO_INDEX
    unit_count: int = 0
    word_count: int = 0
    vector_count: int = 0
    tail_count: int = 0
    last_file_id: int = 0
    last_chunk_id: int = 0
    # The transaction that wrote it, which every one does that changes the index: while
    # the row is the same, so is all of the index.
    written_by: str = ""


class IndexTransactions:
    """Begins transactions on one index."""

    def __init__(self, tenant: Tenant, name: str) -> None:
        self.tenant = tenant
        self.name = name
        self._counters = sql.SQL(_COUNTERS).format(name)
        # Of an index that only this process builds: its number.
        self.own_id: int | None = None
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._used: dict[int, Connection] = {}
        self._states: tuple[IndexCounters, dict[str, str]] | None = None

    @contextmanager
    def reading(self) -> Iterator[tuple[Connection, IndexCounters]]:
        """A transaction that sees one state of the index; it may have no row yet."""
        with (
            self.tenant.reading_first(self._counters) as (db, row),
            self._interruptible(db),
        ):
            view = self.tenant.view
            known = None if view is None else view.values.get(self.name)
            if not isinstance(known, IndexCounters):
                row = row or db.execute(self._counters).fetchone()
                known = _to_counters(row) or IndexCounters()
                if view is not None:
                    view.values[self.name] = known
            yield db, known

    def list_states(self, db: Connection, counters: IndexCounters) -> dict[str, str]:
        """All states of the index; while it stays the same, they are read once."""
        known = self._states
        if known is None or known[0] != counters:
            known = self._states = counters, list_states(db, counters.index_id)
        return known[1]

    @contextmanager
    def writing(self, *, wait_s: float) -> Iterator[tuple[Connection, IndexCounters]]:
        """A transaction that no other writer of the index shares."""
        # What a crash of the server loses is read from the history again.
        with self.tenant.writing_apart(wait_s=wait_s, is_durable=False) as db:
            counters = lock_index(db, self.name)
            self.check_own(counters)
            yield db, counters

    def check_own(self, counters: IndexCounters) -> None:
        """Raise ``StoreLocked`` if another process has begun the index anew."""
        if self.own_id not in (None, counters.index_id):
            raise StoreLocked(
                f"{self.tenant.database.server.name}: another process rebuilds the "
                "index"
            )

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
    statement = sql.SQL(_COUNTERS).format(name)
    if locked:
        statement += sql.SQL("FOR UPDATE")
    return _to_counters(db.execute(statement).fetchone())


def _to_counters(row: TupleRow | None) -> IndexCounters | None:
    return None if row is None else IndexCounters(*row[: len(IndexCounters._fields)])


def save_counters(db: Connection, counters: IndexCounters) -> None:
    index_id, *counts, _ = counters
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


def has_index(db: Connection, name: str) -> bool:
    return _find_counters(db, name) is not None


def delete_index(db: Connection, name: str) -> None:
    """Delete an index with everything that belongs to it, if there is one."""
    counters = _find_counters(db, name, locked=True)
    if counters is not None:
        delete_rows(db, counters.index_id)
        db.execute("DELETE FROM indexes WHERE name = %s", (name,))


def replace_index(db: Connection, old: str, new: IndexTransactions) -> None:
    """Give the name of the old index to the new one, and delete the old one."""
    # In the same order everywhere, so that two of these do not wait for each other.
    locked = {name: lock_index(db, name) for name in sorted((old, new.name))}
    new.check_own(locked[new.name])
    delete_index(db, old)
    db.execute("UPDATE indexes SET name = %s WHERE name = %s", (old, new.name))
