"""The table ``changes``: what was written, in order, so that indexes can follow.

A row is a run of messages, or a session whose facts alone changed. Rows are never
deleted, and become visible in the order of their numbers.
"""

import secrets
from collections.abc import Collection, Sequence

from backstory.store.base.history import Change
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import take_numbers
from backstory.store.postgres.rows import to_columns

_TAG_BITS = 63

# A session, and the numbers of the first and last message that was written.
NewChange = tuple[int, int | None, int | None]


def of_session(session_id: int) -> NewChange:
    """Only facts about the session changed."""
    return (session_id, None, None)


def of_emptying(session_id: int) -> NewChange:
    return (session_id, 0, 0)


def insert_changes(db: Connection, changes: Sequence[NewChange]) -> None:
    if not changes:
        return
    first = take_numbers(db, "last_change_id", len(changes))
    rows = [
        (number, *change, secrets.randbits(_TAG_BITS))
        for number, change in enumerate(changes, start=first)
    ]
    db.execute(
        """
        INSERT INTO changes (change_id, session_id, first_message_id, last_message_id,
                             tag)
        SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
                             %s::bigint[])
        """,
        to_columns(rows, 5),
    )


def find_spans(
    db: Connection, session_ids: Collection[int], *, is_timeless_only: bool = False
) -> dict[int, NewChange]:
    """All messages of sessions, or those without a time, as changes, by session.

    A session that has none is left out.
    """
    if not session_ids:
        return {}
    rows = db.execute(
        """
        SELECT session_id, MIN(message_id), MAX(message_id) FROM messages
         WHERE session_id = ANY(%s::bigint[]) AND (NOT %s OR sent_at IS NULL)
         GROUP BY session_id
        """,
        (list(session_ids), is_timeless_only),
    )
    return {row[0]: (row[0], row[1], row[2]) for row in rows}


def find_identity(db: Connection) -> str:
    row = db.execute("SELECT identity FROM counters").fetchone()
    return "" if row is None else str(row[0])


def last_change_id(db: Connection) -> int:
    # Not MAX, for which all of a tenant may be read: see looked_up.
    row = db.execute(
        "SELECT change_id FROM changes ORDER BY change_id DESC LIMIT 1"
    ).fetchone()
    return 0 if row is None else int(row[0])


def find_tag(db: Connection, change_id: int) -> int | None:
    row = db.execute(
        "SELECT tag FROM changes WHERE change_id = %s", (change_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def list_changes(db: Connection, after: int, limit: int) -> list[Change]:
    rows = db.execute(
        """
        SELECT change_id, session_id, first_message_id, last_message_id, tag
          FROM changes WHERE change_id > %s ORDER BY change_id LIMIT %s
        """,
        (after, limit),
    )
    return [Change(*row) for row in rows]
