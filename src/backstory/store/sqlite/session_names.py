"""Find sessions by name: an id, ``host/id``, or the beginning of either."""

from collections.abc import Collection
from functools import cache, partial
from typing import Any

import apsw

from backstory.store.sqlite.rows import to_json
from backstory.store.sqlite.sessions import COLUMNS, to_session
from backstory.values.history import Session
from backstory.values.identity import is_below

# Beginnings of ids to try, from short to long, before the whole id.
_SHORT_ID_CHARS = (8, 13, 18)
_MAX_WHOLE_ID_CHARS = 12

# A host, or None for any of them, and an id or the beginning of one.
_Way = tuple[str | None, str]


def find_sessions(db: apsw.Connection, name: str) -> list[Session]:
    host, _, native_id = name.partition("/")
    exact = db.execute(
        f"""
        SELECT {COLUMNS} FROM sessions
         WHERE native_id = ?1 OR (host = ?2 AND native_id = ?3)
         ORDER BY session_id
        """,
        (name, host, native_id),
    ).fetchall()
    if exact:
        return [to_session(row) for row in exact]
    rows = db.execute(
        f"""
        SELECT {COLUMNS} FROM sessions
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
    # Many ids may begin alike, and each of them asks for the same beginning.
    find_only = cache(partial(_find_only, db))
    # Any: SQLite rows carry no types; the schema does.
    rows: Any = db.execute(
        """
        SELECT session_id, host, native_id FROM sessions
         WHERE session_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(session_ids),),
    ).fetchall()
    names = {}
    for session_id, host, native_id in rows:
        tried = _names_to_try(native_id)
        own = (name for name in tried if find_only(name) == session_id)
        names[session_id] = next(own, f"{host}/{native_id}")
    return names


def _names_to_try(native_id: str) -> list[str]:
    lengths = _SHORT_ID_CHARS if len(native_id) > _MAX_WHOLE_ID_CHARS else ()
    return [*(native_id[:length] for length in lengths), native_id]


def _find_only(db: apsw.Connection, name: str) -> int | None:
    """The session that a name finds, as above, if it finds exactly one.

    A subagent's id may begin with its parent's; then the parent is meant.
    """
    host, _, rest = name.partition("/")
    ways: list[_Way] = [(None, name), *([(host, rest)] if rest else [])]
    found = [each for way in ways for each in _list_exact(db, way)]
    if not found:
        # The first by id is the parent, if there is one of all others.
        first = sorted(filter(None, (_find_first(db, way) for way in ways)))[:1]
        others = filter(None, (_find_first(db, way, *first) for way in ways))
        found = [*first, *others]
    ids = {native_id for native_id, _ in found}
    top = {each for native_id, each in found if not is_below(native_id, ids)}
    return top.pop() if len(top) == 1 else None


def _list_exact(db: apsw.Connection, way: _Way) -> list[tuple[str, int]]:
    """The sessions with that id: ids and numbers."""
    # Any: SQLite rows carry no types; the schema does.
    rows: Any = db.execute(
        """
        SELECT native_id, session_id FROM sessions
         WHERE native_id = ?2 AND (?1 IS NULL OR host = ?1)
        """,
        way,
    )
    return list(rows)


def _find_first(
    db: apsw.Connection, way: _Way, besides: tuple[str, int] = ("", 0)
) -> tuple[str, int] | None:
    """The first session whose id begins so, besides one and its subagents."""
    # No id contains the last character of Unicode, so it ends the range of ids.
    # Any: SQLite rows carry no types; the schema does.
    row: Any = db.execute(
        """
        SELECT native_id, session_id FROM sessions
         WHERE native_id >= ?2 AND native_id < ?2 || char(1114111)
           AND (?1 IS NULL OR host = ?1) AND message_count > 0 AND session_id != ?4
           AND (?3 = '' OR substr(native_id, 1, length(?3) + 1) != ?3 || '/')
         ORDER BY native_id LIMIT 1
        """,
        (*way, *besides),
    ).fetchone()
    return row  # type: ignore[no-any-return]
