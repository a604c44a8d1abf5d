"""Find sessions by name: an id, ``host/id``, or the beginning of either."""

from collections.abc import Collection, Iterable
from typing import Any

import apsw

from backstory.store.base.stored_rows import SESSION_COLUMNS, to_session
from backstory.store.sqlite.rows import to_json
from backstory.values.history import Session
from backstory.values.identity import is_below

# Beginnings of ids to try, from short to long, before the whole id.
_SHORT_ID_CHARS = (8, 13, 18)
_MAX_WHOLE_ID_CHARS = 12

# A name, an id or the beginning of one that it may mean, and its host, or None for any.
_Way = tuple[str, str, str | None]
# The same, and a session to leave out with its subagents: id and number.
_WayBesides = tuple[str, str, str | None, str, int]
# A name, and a session that it finds: id and number.
_Found = tuple[str, str, int]


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
    tried = {native_id: _names_to_try(native_id) for _, _, native_id in rows}
    only = _find_only(db, {name for names in tried.values() for name in names})
    names = {}
    for session_id, host, native_id in rows:
        own = (name for name in tried[native_id] if only.get(name) == session_id)
        names[session_id] = next(own, f"{host}/{native_id}")
    return names


def _names_to_try(native_id: str) -> list[str]:
    lengths = _SHORT_ID_CHARS if len(native_id) > _MAX_WHOLE_ID_CHARS else ()
    return [*(native_id[:length] for length in lengths), native_id]


def _find_only(db: apsw.Connection, names: Iterable[str]) -> dict[str, int]:
    """The sessions that names find, as above, where a name finds exactly one.

    A subagent's id may begin with its parent's; then the parent is meant.
    """
    found = _group(_list_exact(db, [way for name in names for way in _ways(name)]))
    begun = [way for name in names if name not in found for way in _ways(name)]
    # The first by id is the parent, if there is one of all others.
    firsts = _group(_list_first(db, begun))
    firsts = {name: [min(sessions)] for name, sessions in firsts.items()}
    others = [(*way, *firsts[way[0]][0]) for way in begun if way[0] in firsts]
    for name, sessions in _group(_list_first(db, others)).items():
        firsts[name] += sessions
    only = {}
    for name, sessions in (found | firsts).items():
        ids = {native_id for native_id, _ in sessions}
        top = {each for native_id, each in sessions if not is_below(native_id, ids)}
        if len(top) == 1:
            only[name] = top.pop()
    return only


def _ways(name: str) -> list[_Way]:
    host, _, rest = name.partition("/")
    return [(name, name, None), *([(name, rest, host)] if rest else [])]


def _group(rows: Iterable[_Found]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for name, native_id, session_id in rows:
        found.setdefault(name, []).append((native_id, session_id))
    return found


def _list_exact(db: apsw.Connection, ways: Iterable[_Way]) -> Iterable[_Found]:
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


def _list_first(
    db: apsw.Connection, ways: Iterable[_Way | _WayBesides]
) -> Iterable[_Found]:
    """The first session whose id begins so, besides one and its subagents."""
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
