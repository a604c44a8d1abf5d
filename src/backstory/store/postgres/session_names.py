"""Find sessions by name: an id, ``host/id``, or the beginning of either."""

from collections.abc import Collection, Iterable

from backstory.store.base.short_ids import FoundByName, Way, find_short_ids
from backstory.store.base.stored_rows import SESSION_COLUMNS, to_session
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.rows import looked_up, to_columns
from backstory.values.history import Session

_START_CHARS = 64
# No id contains the last character of Unicode, so it ends the range of ids.
_LAST_CHARACTER = "\U0010ffff"


def start_of(native_id: str) -> str:
    """What the index of ids has of one."""
    return native_id[:_START_CHARS]


def find_sessions(db: Connection, name: str) -> list[Session]:
    host, _, native_id = name.partition("/")
    values = {"name": name, "host": host, "id": native_id}
    exact = db.execute(
        f"""
        SELECT {SESSION_COLUMNS} FROM sessions
         WHERE (native_start = %(name_start)s AND native_id = %(name)s)
            OR (native_start = %(id_start)s AND native_id = %(id)s AND host = %(host)s)
         ORDER BY session_id
        """,
        {**values, "name_start": start_of(name), "id_start": start_of(native_id)},
    ).fetchall()
    if exact:
        return [to_session(row) for row in exact]
    rows = db.execute(
        f"""
        SELECT {SESSION_COLUMNS} FROM sessions
         WHERE message_count > 0 AND (
               (native_start >= %(name_from)s AND native_start < %(name_to)s
                AND starts_with(native_id, %(name)s))
               OR (host = %(host)s AND %(id)s <> ''
                   AND native_start >= %(id_from)s AND native_start < %(id_to)s
                   AND starts_with(native_id, %(id)s)))
         ORDER BY last_active_at DESC NULLS LAST, session_id DESC
        """,
        {
            **values,
            "name_from": start_of(name),
            "name_to": _end_of(name),
            "id_from": start_of(native_id),
            "id_to": _end_of(native_id),
        },
    )
    return [to_session(row) for row in rows]


def _end_of(beginning: str) -> str:
    return start_of(beginning) + _LAST_CHARACTER


def short_ids(db: Connection, session_ids: Collection[int]) -> dict[int, str]:
    columns = "session_id, host, native_id"
    found = looked_up("sessions", columns, key="session_id", within="")
    rows = db.execute(
        f"SELECT {columns} FROM {found}".encode(), (list({*session_ids}),)
    ).fetchall()
    return find_short_ids(
        [(number, host, native_id) for number, host, native_id in rows],
        list_exact=lambda ways: _list_exact(db, ways),
        list_first=lambda ways: _list_first(db, ways),
    )


def _list_exact(db: Connection, ways: list[Way]) -> Iterable[FoundByName]:
    """The sessions with these ids."""
    rows = [(name, start_of(begun), begun, host) for name, begun, host, _, _ in ways]
    found = db.execute(
        """
        SELECT ways.name, native_id, session_id
          FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
               AS ways (name, start, begun, of_host)
         CROSS JOIN LATERAL (
               SELECT native_id, session_id, host FROM sessions
                WHERE native_start BETWEEN ways.start AND ways.start
                  AND native_id = ways.begun
                ORDER BY native_start OFFSET 0) AS sessions
         WHERE of_host IS NULL OR host = of_host
        """,
        to_columns(rows, 4),
    )
    return [(name, native_id, number) for name, native_id, number in found]


def _list_first(db: Connection, ways: list[Way]) -> Iterable[FoundByName]:
    """The first session whose id begins so, besides one and its subagents."""
    rows = [(*way, start_of(way[1]), _end_of(way[1])) for way in ways]
    found = db.execute(
        """
        SELECT ways.name, first.native_id, first.session_id
          FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[],
                      %s::text[], %s::text[])
               AS ways (name, begun, of_host, besides, besides_id, start, over)
         CROSS JOIN LATERAL (
               SELECT native_id, session_id FROM sessions
                WHERE native_start >= ways.start AND native_start < ways.over
                  AND starts_with(native_id, ways.begun)
                  AND (ways.of_host IS NULL OR host = ways.of_host)
                  AND message_count > 0
                  AND session_id IS DISTINCT FROM ways.besides_id
                  AND (ways.besides IS NULL
                       OR NOT starts_with(native_id, ways.besides || '/'))
                ORDER BY native_start, native_id LIMIT 1) AS first
        """,
        to_columns(rows, 7),
    )
    return [(name, native_id, number) for name, native_id, number in found]
