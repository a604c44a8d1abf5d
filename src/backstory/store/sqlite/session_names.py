"""Find sessions by name: an id, ``host/id``, or the beginning of either."""

from collections.abc import Collection, Iterable
from typing import Any

import apsw

from backstory.store.base.short_ids import FoundByName, Way, find_short_ids
from backstory.store.base.stored_rows import SESSION_COLUMNS, to_session
from backstory.store.sqlite.rows import to_json
from backstory.values.history import Session


def find_sessions(db: apsw.Connection, name: str) -> list[Session]:
    host, _, native_id = name.partition("/")
    exact = db.execute(
        f"""
        SELECT {SESSION_COLUMNS} FROM sessions
         WHERE native_id = ?1 OR (host = ?2 AND native_id = ?3)
         ORDER BY session_id
        """,
        (name, host, native_id),
    ).fetchall()
    if exact:
        return [to_session(row) for row in exact]
    rows = db.execute(
        f"""
        SELECT {SESSION_COLUMNS} FROM sessions
         WHERE message_count > 0 AND (
               substr(native_id, 1, length(?1)) = ?1
               OR (host = ?2 AND ?3 != '' AND substr(native_id, 1, length(?3)) = ?3))
         ORDER BY last_active_at DESC NULLS LAST, session_id DESC
        """,
        (name, host, native_id),
    )
    return [to_session(row) for row in rows]


# -- the shortest name ----------------------------------------------------------------


def short_ids(db: apsw.Connection, session_ids: Collection[int]) -> dict[int, str]:
    # Any: SQLite rows carry no types; the schema does.
    rows: Any = db.execute(
        """
        SELECT session_id, host, native_id FROM sessions
         WHERE session_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(session_ids),),
    ).fetchall()
    return find_short_ids(
        rows,
        list_exact=lambda ways: _list_exact(db, ways),
        list_first=lambda ways: _list_first(db, ways),
    )


def _list_exact(db: apsw.Connection, ways: Iterable[Way]) -> Iterable[FoundByName]:
    """The sessions with these ids."""
    return db.execute(
        """
        SELECT ways.value ->> 0, native_id, session_id
          FROM json_each(?) AS ways
          JOIN sessions ON native_id = ways.value ->> 1
         WHERE ways.value ->> 2 IS NULL OR host = ways.value ->> 2
        """,
        (to_json(ways),),
    )


def _list_first(db: apsw.Connection, ways: Iterable[Way]) -> Iterable[FoundByName]:
    """The first session whose id begins with it, apart from one and its subagents."""
    # No id contains the last character of Unicode, so it ends the range of ids.
    return db.execute(
        """
        SELECT ways.value ->> 0, found.native_id, found.session_id
          FROM json_each(?) AS ways
          JOIN sessions AS found ON found.session_id = (
               SELECT session_id FROM sessions
                WHERE native_id >= ways.value ->> 1
                  AND native_id < (ways.value ->> 1) || char(1114111)
                  AND (ways.value ->> 2 IS NULL OR host = ways.value ->> 2)
                  AND message_count > 0
                  AND session_id IS NOT ways.value ->> 4
                  AND (ways.value ->> 3 IS NULL
                       OR substr(native_id, 1, length(ways.value ->> 3) + 1)
                          != (ways.value ->> 3) || '/')
                ORDER BY native_id LIMIT 1)
        """,
        (to_json(ways),),
    )
