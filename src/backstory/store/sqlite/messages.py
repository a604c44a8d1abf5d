"""The table ``messages``: what was said, in order."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import apsw

from backstory.store.base.stored_rows import (
    MESSAGE_COLUMNS,
    QUARTER_HOUR_US,
    REPLY_STEPS,
    to_message,
)
from backstory.store.sqlite.rows import to_json
from backstory.text.words import fold
from backstory.values.history import Message, Role
from backstory.values.moments import WHOLE_DAY

# A session and a position in it, or the first and the last of several.
Place = tuple[int, int]
Range = tuple[int, int, int]

# Finds those messages in damaged pages that are proven to be intact, given why each
# could not be read.
FindProven = Callable[[Mapping[int, str]], Mapping[int, Message]]

_SEE_MORE = "Run 'backstory check --repair' to save what can be read."


def list_messages(
    db: apsw.Connection,
    session_id: int,
    *,
    first: int,
    last: int | None,
    limit: int,
    find_proven: FindProven,
) -> list[Message]:
    which = "session_id = ?1 AND position >= ?2 AND (?3 IS NULL OR position <= ?3)"
    values = (session_id, first, last, limit)
    try:
        rows = db.execute(
            f"""
            SELECT {MESSAGE_COLUMNS} FROM messages
             WHERE {which} ORDER BY position LIMIT ?4
            """,
            values,
        )
        return [to_message(row) for row in rows]
    except apsw.CorruptError:
        # Only the index of places is read, because its pages may be sound.
        places = db.execute(
            f"""
            SELECT message_id, session_id, position FROM messages
             WHERE {which} ORDER BY position LIMIT ?4
            """,
            values,
        ).fetchall()
        return _get_each(db, places, find_proven)


def get_ranges(
    db: apsw.Connection, ranges: Collection[Range], *, find_proven: FindProven
) -> dict[Range, list[Message]]:
    found: dict[Range, list[Message]] = {each: [] for each in ranges}
    try:
        rows = db.execute(
            f"""
            WITH ranges AS (
                SELECT value ->> 0 AS of_session, value ->> 1 AS first_position,
                       value ->> 2 AS last_position
                  FROM json_each(?))
            SELECT of_session, first_position, last_position, {MESSAGE_COLUMNS}
              FROM ranges JOIN messages
                ON session_id = of_session
               AND position BETWEEN first_position AND last_position
             ORDER BY of_session, first_position, last_position, position
            """,
            (to_json(found),),
        )
        for session_id, first, last, *row in rows:
            found[session_id, first, last].append(to_message(tuple(row)))
    except apsw.CorruptError:
        for session_id, first, last in found:
            found[session_id, first, last] = list_messages(
                db,
                session_id,
                first=first,
                last=last,
                limit=last - first + 1,
                find_proven=find_proven,
            )
    return found


def get_messages(
    db: apsw.Connection, message_ids: Collection[int], *, find_proven: FindProven
) -> dict[int, Message]:
    wanted = to_json(message_ids)
    try:
        rows = db.execute(
            f"""
            SELECT {MESSAGE_COLUMNS} FROM messages
             WHERE message_id IN (SELECT value FROM json_each(?))
            """,
            (wanted,),
        )
        return {row[0]: to_message(row) for row in rows}
    except apsw.CorruptError:
        places = db.execute(
            """
            SELECT message_id, session_id, position
              FROM messages INDEXED BY sqlite_autoindex_messages_2
             WHERE +message_id IN (SELECT value FROM json_each(?))
            """,
            (wanted,),
        ).fetchall()
        found = _get_each(db, places, find_proven)
        return {message.message_id: message for message in found}


# Any: SQLite rows carry no types; the schema does.
def _get_each(
    db: apsw.Connection, places: Sequence[tuple[Any, ...]], find_proven: FindProven
) -> list[Message]:
    """Read messages one by one; a damaged one is replaced by a message that says so."""
    found: dict[int, Message] = {}
    reasons: dict[int, str] = {}
    for message_id, _, _ in places:
        try:
            row = db.execute(
                f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE message_id = ?",
                (message_id,),
            ).fetchone()
            if row is not None:
                found[message_id] = to_message(row)
            else:
                reasons[message_id] = "it is not where the index says"
        except apsw.CorruptError as exc:
            reasons[message_id] = str(exc)
    if reasons:
        found.update(find_proven(reasons))
    return [
        found.get(place[0]) or _damaged_message(place, reasons[place[0]])
        for place in places
    ]


def _damaged_message(place: tuple[Any, ...], reason: str) -> Message:
    message_id, session_id, position = place
    text = f"[This message is damaged: {reason}. {_SEE_MORE}]"
    return Message(message_id, session_id, "", position, Role.ERROR, text)


def find_neighbours(
    db: apsw.Connection, places: Collection[Place]
) -> dict[Place, tuple[Message | None, Message | None]]:
    rows = db.execute(
        f"""
        WITH places AS (
            SELECT value ->> 0 AS of_session, value ->> 1 AS at_position
              FROM json_each(?)),
        neighbours AS (
            SELECT of_session, at_position,
                   (SELECT message_id FROM messages
                     WHERE session_id = of_session AND position < at_position
                       AND role IN ('user', 'assistant')
                     ORDER BY position DESC LIMIT 1) AS before_id,
                   (SELECT message_id FROM messages
                     WHERE session_id = of_session AND position > at_position
                       AND role IN ('user', 'assistant')
                     ORDER BY position LIMIT 1) AS after_id
              FROM places)
        SELECT of_session, at_position, {MESSAGE_COLUMNS}
          FROM neighbours JOIN messages ON message_id IN (before_id, after_id)
        """,
        (to_json(places),),
    )
    before: dict[Place, Message] = {}
    after: dict[Place, Message] = {}
    for session_id, position, *row in rows:
        message = to_message(tuple(row))
        side = before if message.position < position else after
        side[session_id, position] = message
    return {place: (before.get(place), after.get(place)) for place in places}


def find_replies(
    db: apsw.Connection, places: Collection[Place]
) -> dict[Place, Message]:
    rows = db.execute(
        f"""
        WITH places AS (
            SELECT value ->> 0 AS of_session, value ->> 1 AS at_position
              FROM json_each(?)),
        replies AS (
            SELECT of_session, at_position,
                   (SELECT message_id
                      FROM (SELECT message_id, position,
                                   COUNT(*) FILTER (WHERE role = 'user')
                                   OVER (ORDER BY position) AS user_messages
                              FROM (SELECT message_id, position, role FROM messages
                                     WHERE session_id = of_session
                                       AND position > at_position
                                       AND role IN ('user', 'assistant')
                                     ORDER BY position LIMIT {REPLY_STEPS}))
                     WHERE user_messages = 0
                     ORDER BY position DESC LIMIT 1) AS reply_id
              FROM places)
        SELECT of_session, at_position, {MESSAGE_COLUMNS}
          FROM replies JOIN messages ON message_id = reply_id
        """,
        (to_json(places),),
    )
    return {(row[0], row[1]): to_message(row[2:]) for row in rows}


def find_tool_names(
    db: apsw.Connection, calls: Collection[tuple[int, str]]
) -> dict[tuple[int, str], str]:
    # The plus signs make SQLite read each session once, not once for each of its calls.
    rows = db.execute(
        """
        SELECT session_id, call_id, tool_name FROM messages
         WHERE session_id IN (SELECT value FROM json_each(?))
           AND tool_name IS NOT NULL
           AND (+session_id, +call_id) IN
               (SELECT value ->> 0, value ->> 1 FROM json_each(?))
         ORDER BY session_id, position
        """,
        (to_json({session_id for session_id, _ in calls}), to_json(calls)),
    )
    names: dict[tuple[int, str], str] = {}
    for session_id, call_id, tool_name in rows:
        names.setdefault((session_id, call_id), tool_name)
    return names


def list_latest_turn(db: apsw.Connection, session_id: int) -> list[int]:
    rows = db.execute(
        """
        SELECT message_id FROM messages
         WHERE session_id = ?1
           AND position >= (SELECT MAX(position) FROM messages
                             WHERE session_id = ?1 AND role = 'user')
        """,
        (session_id,),
    )
    return [message_id for (message_id,) in rows]


def find_text(
    db: apsw.Connection,
    folded: str,
    *,
    limit: int,
    where: Callable[[Message], bool],
    until: float | None,
) -> list[Message]:
    found: list[Message] = []
    rows = db.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM messages ORDER BY sent_at DESC, message_id DESC"
    )
    for row in rows:
        if len(found) == limit or (until is not None and time.monotonic() >= until):
            break
        if folded in fold(row[5]) and where(message := to_message(row)):
            found.append(message)
    return found


def find_positions(
    db: apsw.Connection, session_id: int, first_id: int, last_id: int
) -> tuple[int, int] | None:
    values = (session_id, first_id, last_id)
    try:
        first, last = db.execute(
            """
            SELECT MIN(position), MAX(position) FROM messages
             WHERE +session_id = ? AND message_id BETWEEN ? AND ?
            """,
            values,
        ).get
    except apsw.CorruptError:
        first, last = db.execute(
            """
            SELECT MIN(position), MAX(position)
              FROM messages INDEXED BY sqlite_autoindex_messages_2
             WHERE session_id = ? AND +message_id BETWEEN ? AND ?
            """,
            values,
        ).get
    return None if first is None else (first, last)


def find_message(db: apsw.Connection, session_id: int, name: str) -> Message | None:
    row = db.execute(
        f"""
        SELECT {MESSAGE_COLUMNS} FROM messages
         WHERE session_id = ?1
           AND (native_id = ?2 OR CAST(message_id AS TEXT) = ?2)
         ORDER BY native_id = ?2 DESC LIMIT 1
        """,
        (session_id, name),
    ).fetchone()
    return None if row is None else to_message(row)


def count_by_quarter_hour(
    db: apsw.Connection, session_ids: Collection[int]
) -> dict[int, int]:
    # Any: SQLite rows carry no types; the schema does.
    rows: Any = db.execute(
        """
        SELECT sent_at / ?1 * ?1, COUNT(*) FROM messages
         WHERE session_id IN (SELECT value FROM json_each(?2))
           AND sent_at IS NOT NULL AND utc_offset_min IS NOT ?3
         GROUP BY 1
        """,
        (QUARTER_HOUR_US, to_json(session_ids), WHOLE_DAY),
    )
    return dict(rows)
