"""The table ``message_titles``: titles of sessions that are known by a message.

Of several for one session, that of its last message counts, whichever was read first.
"""

from collections.abc import Collection, Iterable, Sequence

from backstory.store.base.message_ids import record_of
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.rows import key_of, to_columns
from backstory.values.history import MessageTitle


def insert_titles(
    db: Connection, host: str, titles: Sequence[MessageTitle]
) -> list[int]:
    """Insert or replace titles; returns the sessions that have such a message."""
    # A statement may not change a row twice; the last one counts.
    last = {each.message_id: each.title for each in titles}
    rows = [
        (
            key_of(host, native_id),
            record_key(host, native_id),
            key_of(native_id),
            host,
            native_id,
            title,
        )
        for native_id, title in last.items()
    ]
    db.execute(
        """
        INSERT INTO message_titles (title_key, record_key, native_key, host, native_id,
                                    title)
        SELECT * FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[], %s::text[],
                             %s::text[], %s::text[])
            ON CONFLICT (tenant_id, title_key) DO UPDATE
           SET title = excluded.title, native_id = excluded.native_id
        """,
        to_columns(rows, 6),
    )
    found = db.execute(
        """
        SELECT DISTINCT session_id
          FROM sessions JOIN messages USING (tenant_id, session_id)
         WHERE host = %s AND native_key = ANY(%s::bytea[])
        """,
        (host, [key_of(native_id) for native_id in last]),
    )
    return [session_id for (session_id,) in found]


def record_key(host: str, native_id: str) -> bytes:
    return key_of(host, record_of(native_id))


def find_titled(db: Connection, host: str, native_ids: Iterable[str]) -> set[str]:
    """Those of the messages that a title names."""
    keys = {key_of(host, native_id): native_id for native_id in native_ids}
    if not keys:
        return set()
    rows = db.execute(
        "SELECT title_key FROM message_titles WHERE title_key = ANY(%s::bytea[])",
        (list(keys),),
    )
    return {keys[bytes(key)] for (key,) in rows}


def find_titles(db: Connection, session_ids: Collection[int]) -> dict[int, str]:
    """The title that each session has by one of its messages."""
    rows = db.execute(
        """
        SELECT DISTINCT ON (session_id) session_id, message_titles.title
          FROM sessions JOIN messages USING (tenant_id, session_id)
          JOIN message_titles USING (tenant_id, host, native_key)
         WHERE session_id = ANY(%s::bigint[])
         ORDER BY session_id, position DESC
        """,
        (list(session_ids),),
    )
    return dict(rows.fetchall())


def delete_titles(db: Connection, named: Iterable[tuple[str, str]]) -> None:
    """Delete the titles that name one of some messages, given as host and id."""
    keys = {record_key(host, native_id) for host, native_id in named}
    db.execute(
        "DELETE FROM message_titles WHERE record_key = ANY(%s::bytea[])", (list(keys),)
    )
