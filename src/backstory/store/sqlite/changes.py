"""The table ``changes``: what was written, in order, for whoever follows the history.

A row is one run of messages, or a session of which only what is known about it
changed. Nothing is ever deleted: an index of any age can catch up from where it is.
"""

from collections.abc import Iterable

import apsw

from backstory.store.base import Change


def insert_changes(
    db: apsw.Connection, session_id: int, written: Iterable[tuple[int, int]]
) -> None:
    db.executemany(
        """
        INSERT INTO changes (session_id, first_message_id, last_message_id)
        VALUES (?, ?, ?)
        """,
        [(session_id, first, last) for first, last in written],
    )


def insert_session_change(db: apsw.Connection, session_id: int) -> None:
    db.execute("INSERT INTO changes (session_id) VALUES (?)", (session_id,))


def last_change_id(db: apsw.Connection) -> int:
    last: int | None = db.execute("SELECT MAX(change_id) FROM changes").get
    return last or 0


def list_changes(db: apsw.Connection, after: int, limit: int) -> list[Change]:
    rows = db.execute(
        """
        SELECT change_id, session_id, first_message_id, last_message_id
          FROM changes WHERE change_id > ? ORDER BY change_id LIMIT ?
        """,
        (after, limit),
    )
    return [Change(*row) for row in rows]
