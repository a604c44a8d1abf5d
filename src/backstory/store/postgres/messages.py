"""The table ``messages``: what was said, in order."""

import time
from collections.abc import Callable, Collection, Iterator

from backstory.store.base.stored_rows import (
    MESSAGE_COLUMNS,
    QUARTER_HOUR_US,
    REPLY_STEPS,
    to_message,
)
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.rows import key_of, looked_up, to_columns
from backstory.text.words import fold
from backstory.values.history import Message
from backstory.values.moments import WHOLE_DAY

# A session and a position in it, or the first and the last of several.
Place = tuple[int, int]
Range = tuple[int, int, int]

_MAX_NUMBER = 2**63 - 1


def list_messages(
    db: Connection, session_id: int, *, first: int, last: int | None, limit: int
) -> list[Message]:
    rows = db.execute(
        f"""
        SELECT {MESSAGE_COLUMNS} FROM messages
         WHERE session_id = %s AND position >= %s AND position <= %s
         ORDER BY position LIMIT %s
        """,
        (session_id, first, _MAX_NUMBER if last is None else last, limit),
    )
    return [to_message(row) for row in rows]


def get_ranges(db: Connection, ranges: Collection[Range]) -> dict[Range, list[Message]]:
    found: dict[Range, list[Message]] = {each: [] for each in ranges}
    rows = db.execute(
        f"""
        SELECT of_session, first_position, last_position, {MESSAGE_COLUMNS}
          FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])
               AS ranges (of_session, first_position, last_position)
         CROSS JOIN LATERAL (
               SELECT {MESSAGE_COLUMNS} FROM messages
                WHERE session_id = of_session
                  AND position BETWEEN first_position AND last_position
                ORDER BY position OFFSET 0) AS messages
         ORDER BY of_session, first_position, last_position, position
        """,
        to_columns(found, 3),
    )
    for session_id, first, last, *row in rows:
        found[session_id, first, last].append(to_message(tuple(row)))
    return found


def get_messages(db: Connection, message_ids: Collection[int]) -> dict[int, Message]:
    found = looked_up("messages", MESSAGE_COLUMNS, key="message_id", within="")
    rows = db.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM {found}".encode(), (list({*message_ids}),)
    )
    return {row[0]: to_message(row) for row in rows}


def find_neighbours(
    db: Connection, places: Collection[Place]
) -> dict[Place, tuple[Message | None, Message | None]]:
    rows = db.execute(
        f"""
        SELECT of_session, at_position, near.*
          FROM unnest(%s::bigint[], %s::bigint[]) AS places (of_session, at_position)
         CROSS JOIN LATERAL (
               (SELECT {MESSAGE_COLUMNS} FROM messages
                 WHERE session_id = of_session AND position < at_position
                   AND role IN ('user', 'assistant')
                 ORDER BY position DESC LIMIT 1)
               UNION ALL
               (SELECT {MESSAGE_COLUMNS} FROM messages
                 WHERE session_id = of_session AND position > at_position
                   AND role IN ('user', 'assistant')
                 ORDER BY position LIMIT 1)) AS near
        """,
        to_columns(places, 2),
    )
    before: dict[Place, Message] = {}
    after: dict[Place, Message] = {}
    for session_id, position, *row in rows:
        message = to_message(tuple(row))
        side = before if message.position < position else after
        side[session_id, position] = message
    return {place: (before.get(place), after.get(place)) for place in places}


def find_replies(db: Connection, places: Collection[Place]) -> dict[Place, Message]:
    # Only the position of each reply is looked for first: texts can be long.
    rows = db.execute(
        f"""
        SELECT of_session, at_position, {MESSAGE_COLUMNS}
          FROM unnest(%s::bigint[], %s::bigint[]) AS places (of_session, at_position)
         CROSS JOIN LATERAL (
               SELECT MAX(place) AS last_place
                 FROM (SELECT position AS place,
                              COUNT(*) FILTER (WHERE role = 'user')
                              OVER (ORDER BY position) AS user_messages
                         FROM (SELECT position, role FROM messages
                                WHERE session_id = of_session
                                  AND position > at_position
                                  AND role IN ('user', 'assistant')
                                ORDER BY position LIMIT {REPLY_STEPS}) AS following
                      ) AS counted
                WHERE user_messages = 0) AS reply
         CROSS JOIN LATERAL (
               SELECT {MESSAGE_COLUMNS} FROM messages
                WHERE session_id = of_session
                  AND position BETWEEN last_place AND last_place
                ORDER BY position LIMIT 1) AS messages
        """,
        to_columns(places, 2),
    )
    return {(row[0], row[1]): to_message(row[2:]) for row in rows}


def find_tool_names(
    db: Connection, calls: Collection[tuple[int, str]]
) -> dict[tuple[int, str], str]:
    rows = db.execute(
        """
        SELECT of_session, call_id, tool_name
          FROM unnest(%s::bigint[]) AS places (of_session)
         CROSS JOIN LATERAL (
               SELECT position, call_id, tool_name FROM messages
                WHERE session_id = of_session AND tool_name IS NOT NULL
                  AND call_id = ANY(%s::text[])
                ORDER BY position OFFSET 0) AS messages
         ORDER BY of_session, position
        """,
        (list({number for number, _ in calls}), [call_id for _, call_id in calls]),
    )
    wanted = set(calls)
    names: dict[tuple[int, str], str] = {}
    for session_id, call_id, tool_name in rows:
        if (session_id, call_id) in wanted:
            names.setdefault((session_id, call_id), tool_name)
    return names


def list_latest_turn(db: Connection, session_id: int) -> list[int]:
    rows = db.execute(
        """
        SELECT message_id FROM messages
         WHERE session_id = %(session)s
           AND position >= (SELECT MAX(position) FROM messages
                             WHERE session_id = %(session)s AND role = 'user')
         ORDER BY position
        """,
        {"session": session_id},
    )
    return [message_id for (message_id,) in rows]


def list_newest_first(db: Connection) -> list[int]:
    """The numbers of all messages."""
    rows = db.execute(
        """
        SELECT message_id FROM messages
         ORDER BY sent_at DESC NULLS LAST, message_id DESC
        """
    )
    return [message_id for (message_id,) in rows]


def iter_with_text(
    pages: Iterator[list[Message]],
    folded: str,
    *,
    where: Callable[[Message], bool],
    until: float | None,
) -> Iterator[Message]:
    """Those of the messages that contain a folded text, until it is time to stop."""
    for page in pages:
        for message in page:
            if until is not None and time.monotonic() >= until:
                return
            if folded in fold(message.text) and where(message):
                yield message


def count_by_quarter_hour(
    db: Connection, session_ids: Collection[int]
) -> dict[int, int]:
    rows = db.execute(
        """
        SELECT sent_at / %(quarter)s * %(quarter)s, COUNT(*) FROM messages
         WHERE session_id = ANY(%(sessions)s::bigint[])
           AND sent_at IS NOT NULL AND utc_offset_min IS DISTINCT FROM %(whole_day)s
         GROUP BY 1
        """,
        {
            "quarter": QUARTER_HOUR_US,
            "sessions": list(session_ids),
            "whole_day": WHOLE_DAY,
        },
    )
    return dict(rows.fetchall())


def find_positions(
    db: Connection, session_id: int, first_id: int, last_id: int
) -> tuple[int, int] | None:
    row = db.execute(
        """
        SELECT MIN(position), MAX(position) FROM messages
         WHERE session_id = %s AND message_id BETWEEN %s AND %s
        """,
        (session_id, first_id, last_id),
    ).fetchone()
    return None if row is None or row[0] is None else (row[0], row[1])


def find_message(db: Connection, session_id: int, name: str) -> Message | None:
    row = db.execute(
        f"""
        SELECT {MESSAGE_COLUMNS} FROM messages
         WHERE session_id = %(session)s
           AND (native_key = %(key)s OR message_id = %(number)s::bigint)
         ORDER BY native_key = %(key)s DESC LIMIT 1
        """,
        {"session": session_id, "key": key_of(name), "number": _to_number(name)},
    ).fetchone()
    return None if row is None else to_message(row)


def _to_number(name: str) -> int | None:
    """The number of a message, if that is how it is written."""
    is_number = name.isascii() and name.isdigit() and not name.startswith("0")
    number = int(name) if is_number and len(name) < 20 else _MAX_NUMBER + 1
    return number if number <= _MAX_NUMBER else None
