"""The table ``message_titles``: titles of sessions, each known by one of its messages.

If a session has several, the title of its last message counts, whichever was read
first.
"""

from collections.abc import Collection, Sequence

import apsw

from backstory.store.sqlite.rows import to_json
from backstory.values.history import MessageTitle


def insert_titles(
    db: apsw.Connection, host: str, titles: Sequence[MessageTitle]
) -> list[int]:
    """Insert or replace titles; returns the sessions that have such a message."""
    db.executemany(
        """
        INSERT INTO message_titles (host, native_id, title) VALUES (?, ?, ?)
            ON CONFLICT (host, native_id) DO UPDATE SET title = excluded.title
        """,
        [(host, each.message_id, each.title) for each in titles],
    )
    # In this join order, each pair is one lookup in the index of a session's messages.
    rows = db.execute(
        """
        SELECT DISTINCT session_id
          FROM sessions
         CROSS JOIN json_each(?) AS titled
         CROSS JOIN messages USING (session_id)
         WHERE host = ? AND messages.native_id = titled.value
        """,
        (to_json([each.message_id for each in titles]), host),
    )
    return [session_id for (session_id,) in rows]


def refresh_titles(db: apsw.Connection, session_ids: Collection[int]) -> None:
    """Give each session the title that one of its messages has."""
    db.execute(
        """
        UPDATE sessions
           SET message_title = (
               SELECT message_titles.title
                 FROM message_titles
                CROSS JOIN messages
                WHERE message_titles.host = sessions.host
                  AND messages.session_id = sessions.session_id
                  AND messages.native_id = message_titles.native_id
                ORDER BY messages.position DESC LIMIT 1)
         WHERE session_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(session_ids),),
    )


def delete_titles(db: apsw.Connection, session_id: int) -> None:
    """Delete the titles that name a message of a session."""
    _delete_titles(db, session_id, None)


def delete_titles_of(
    db: apsw.Connection, session_id: int, message_ids: Collection[int]
) -> None:
    """Delete the titles that name one of some messages of a session."""
    _delete_titles(db, session_id, to_json(message_ids))


def _delete_titles(
    db: apsw.Connection, session_id: int, message_ids: str | None
) -> None:
    # The same as ``record_of`` in message_ids.
    record = "substr({0}, 1, instr({0} || '/', '/') - 1)"
    db.execute(
        f"""
        DELETE FROM message_titles
         WHERE (host, {record.format("native_id")}) IN (
               SELECT sessions.host, {record.format("messages.native_id")}
                 FROM sessions JOIN messages USING (session_id)
                WHERE session_id = ?1
                  AND (?2 IS NULL
                       OR message_id IN (SELECT value FROM json_each(?2))))
        """,
        (session_id, message_ids),
    )
