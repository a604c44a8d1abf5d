"""The table ``changes``: what was written, in order, so that indexes can follow.

A row is a run of messages, or a session whose facts alone changed. Rows are never
deleted: an index of any age can catch up from where it is. Each has a random tag, so
that an index can tell that it is still the change that it has indexed.
"""

from collections.abc import Iterable

import apsw

from backstory.store.base.history import Change


def insert_changes(
    db: apsw.Connection, session_id: int, written: Iterable[tuple[int, int]]
) -> None:
    db.executemany(
        """
        INSERT INTO changes (session_id, first_message_id, last_message_id, tag)
        VALUES (?, ?, ?, random())
        """,
        [(session_id, first, last) for first, last in written],
    )


def insert_session_change(db: apsw.Connection, session_id: int) -> None:
    db.execute(
        "INSERT INTO changes (session_id, tag) VALUES (?, random())", (session_id,)
    )


def insert_emptying(db: apsw.Connection, session_id: int) -> None:
    insert_changes(db, session_id, [(0, 0)])


def insert_whole_session(
    db: apsw.Connection, session_id: int, *, is_timeless_only: bool = False
) -> None:
    """Record all messages of a session as written again, or those without a time."""
    condition = "AND sent_at IS NULL" if is_timeless_only else ""
    db.execute(
        f"""
        INSERT INTO changes (session_id, first_message_id, last_message_id, tag)
        SELECT session_id, MIN(message_id), MAX(message_id), random()
          FROM messages WHERE session_id = ? {condition} GROUP BY session_id
        """,
        (session_id,),
    )


def identity(db: apsw.Connection) -> str:
    return str(db.execute("SELECT value FROM identity").get)


def last_change_id(db: apsw.Connection) -> int:
    last: int | None = db.execute("SELECT MAX(change_id) FROM changes").get
    return last or 0


def find_tag(db: apsw.Connection, change_id: int) -> int | None:
    tag: int | None = db.execute(
        "SELECT tag FROM changes WHERE change_id = ?", (change_id,)
    ).get
    return tag


def list_changes(db: apsw.Connection, after: int, limit: int) -> list[Change]:
    rows = db.execute(
        """
        SELECT change_id, session_id, first_message_id, last_message_id, tag
          FROM changes WHERE change_id > ? ORDER BY change_id LIMIT ?
        """,
        (after, limit),
    )
    return [Change(*row) for row in rows]
