"""Erase what was deleted from the files of the server, as far as our role may.

A deleted row stays in its file until a vacuum, and even then its bytes stay where they
were until others are written over them. Only a table that is written anew has none of
them. That locks the table for everybody, so large ones are only vacuumed: their bytes
go with time, or when the owner writes them anew (VACUUM FULL). Up to PostgreSQL 16,
only the owner of a table may do either.

What the server wrote into its log of changes (WAL), and what replicas and backups have
of it, is out of our hands.
"""

import logging
from collections.abc import Sequence

from psycopg import errors, sql

from backstory.store.postgres.connecting import Connection
from backstory.values.forgetting import Erasure

logger = logging.getLogger(__name__)

# Tables with what people wrote, and with what tells where and when.
HISTORY_TABLES = (
    "messages",
    "sessions",
    "message_titles",
    "problems",
    "sources",
    "seen_notes",
    "summaries",
    "notes",
)
INDEX_TABLES = (
    "units",
    "unit_notes",
    "index_chunks",
    "indexed_files",
    "last_words",
    "word_rows",
    "gram_segments",
    "gram_units",
    "unit_vectors",
    "vector_codes",
    "embeddings",
)
# The state of a history that has something to erase: the last transaction that deleted
# any of it, as the server numbers them.
ERASE_DUE = "erase_due"
# Writing this much anew takes a few seconds.
_MAX_REWRITTEN_BYTES = 256_000_000


def note_deletion(db: Connection) -> None:
    """Note that this transaction deletes what has to be erased after it."""
    db.execute(
        """
        INSERT INTO journal_state (name, value)
        VALUES (%s, pg_current_xact_id()::text)
            ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value
        """,
        (ERASE_DUE,),
    )


def find_deletion(db: Connection) -> int | None:
    """The last transaction that deleted something, if not all of it is erased yet."""
    row = db.execute(
        "SELECT value FROM journal_state WHERE name = %s", (ERASE_DUE,)
    ).fetchone()
    return None if row is None else int(row[0])


def forget_deletion(db: Connection, deleted_by: int) -> None:
    """Note that all is erased, unless more was deleted meanwhile."""
    db.execute(
        "DELETE FROM journal_state WHERE name = %s AND value = %s",
        (ERASE_DUE, str(deleted_by)),
    )


def erase_deleted(
    db: Connection, tables: Sequence[str], *, deleted_by: int | None = None
) -> Erasure:
    """Erase it, if nobody else still sees it.

    ``deleted_by`` is the number of the last transaction that deleted something, if it
    is known. Needs a connection that is in no transaction.
    """
    db.autocommit = True
    try:
        if not _may_maintain(db):
            logger.info("deleted rows are not erased: the role may not vacuum")
            return Erasure.LEFT
        if _is_read(db, deleted_by):
            return Erasure.BLOCKED
        outcomes = {_erase(db, table) for table in tables}
        for outcome in (Erasure.BLOCKED, Erasure.LEFT):
            if outcome in outcomes:
                return outcome
        return Erasure.DONE
    finally:
        if not db.closed:
            db.autocommit = False


def _may_maintain(db: Connection) -> bool:
    try:
        row = db.execute(
            "SELECT has_table_privilege('backstory.messages', 'MAINTAIN')"
        ).fetchone()
    except errors.InvalidParameterValue:
        # Up to version 16, there is no such privilege.
        return False
    return row == (True,)


def _is_read(db: Connection, deleted_by: int | None) -> bool:
    """Whether a transaction may still see what was deleted."""
    row = db.execute(
        """
        SELECT EXISTS (
               SELECT 1 FROM pg_stat_activity
                WHERE pid <> pg_backend_pid()
                  AND GREATEST(age(backend_xmin), age(backend_xid))
                   >= age(LEAST(%s::text::xid8,
                                pg_snapshot_xmax(pg_current_snapshot()))::xid))
        """,
        # A number that is yet to come is from the server that a backup was made on.
        (None if deleted_by is None else str(deleted_by),),
    ).fetchone()
    return row == (True,)


def _erase(db: Connection, table: str) -> Erasure:
    row = db.execute(
        "SELECT pg_total_relation_size(%s::regclass)", (f"backstory.{table}",)
    ).fetchone()
    is_small = row is not None and row[0] <= _MAX_REWRITTEN_BYTES
    was_locked = False

    def notice(said: errors.Diagnostic) -> None:
        nonlocal was_locked
        was_locked |= said.sqlstate == errors.LockNotAvailable.sqlstate

    db.add_notice_handler(notice)
    try:
        # Who waited for the lock would keep others from the table.
        db.execute(
            sql.SQL("VACUUM (SKIP_LOCKED, {}) {}").format(
                sql.SQL("FULL" if is_small else "INDEX_CLEANUP ON"),
                sql.Identifier("backstory", table),
            )
        )
    finally:
        db.remove_notice_handler(notice)
    if was_locked:
        return Erasure.BLOCKED
    return Erasure.DONE if is_small else Erasure.LEFT
