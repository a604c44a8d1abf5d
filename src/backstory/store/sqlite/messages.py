"""The table ``messages``: what was said, in order."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apsw

from backstory.store.base.history import KeptMessage
from backstory.store.sqlite.rows import to_json
from backstory.store.sqlite.sessions import read_moment
from backstory.text.words import fold
from backstory.values.history import Message, Role
from backstory.values.identity import content_id

_COLUMNS = """
    message_id, session_id, native_id, position, role, text, tool_name, call_id,
    sent_at, utc_offset_min, full_bytes
"""

# So many messages behind a user's are looked at for the last reply to it.
_REPLY_STEPS = 20

# A session and a position in it.
Place = tuple[int, int]

# To look one up here takes a tenth of the time of ``Role(...)``.
_ROLES = {role.value: role for role in Role}

# Everything about a message that may change, in the order of the columns below.
Content = tuple[str, str, str | None, str | None, int | None, int | None, int | None]


@dataclass(slots=True)
class Changes:
    """What writing the messages of one session changed.

    ``written`` are the numbers of the messages, first and last of each run of them.
    """

    inserted: int = 0
    updated: int = 0
    written: tuple[tuple[int, int], ...] = ()
    given_twice: tuple[KeptMessage, ...] = ()
    last_message_id: int | None = None


def write_messages(
    db: apsw.Connection,
    session_id: int,
    kept: Sequence[KeptMessage],
    *,
    is_new_session: bool,
    replaces: bool,
    reread: set[int] | None,
) -> Changes:
    """Insert the messages that are new, update those that changed, leave the rest."""
    changes = Changes()
    wanted: dict[str, Content] = {}
    known = {} if is_new_session else _find_known(db, session_id, kept)
    for item in kept:
        message, content = item.message, _to_content(item)
        native_id = message.native_id
        if native_id in wanted:
            clashes = wanted[native_id] != content
        elif native_id in known:
            message_id, stored = known[native_id]
            clashes = stored != content and (reread is None or message_id in reread)
        else:
            clashes = False
        if clashes and not replaces:
            native_id = f"{native_id}~{content_id(message.role, message.text)[3:]}"
            if native_id not in wanted:
                changes.given_twice += (item,)
                varied = replace(message, native_id=native_id)
                known |= _find_known(db, session_id, [KeptMessage(varied)])
        stored_before = wanted.get(native_id) or known.get(native_id, (0, None))[1]
        wanted[native_id] = _with_first_time(content, stored_before)

    position = _next_position(db, session_id)
    inserts: list[tuple[Any, ...]] = []
    updates: list[tuple[Any, ...]] = []
    for native_id, content in wanted.items():
        if native_id not in known:
            inserts.append((session_id, native_id, position, *content))
            position += 1
        elif known[native_id][1] != content:
            updates.append((*content, known[native_id][0]))
    last = 0
    if inserts:
        _insert(db, inserts)
        last = db.last_insert_rowid()
        if reread is not None:
            # Rows of one statement in one transaction are numbered one after another.
            reread.update(range(last - len(inserts) + 1, last + 1))
    if updates:
        _update(db, updates)
    if reread is not None:
        reread.update(message_id for message_id, _ in known.values())
    changes.inserted, changes.updated = len(inserts), len(updates)
    changes.written = tuple((row[-1], row[-1]) for row in updates)
    if inserts:
        changes.written += ((last - len(inserts) + 1, last),)
    last_id = next(reversed(wanted))
    changes.last_message_id = known[last_id][0] if last_id in known else last
    return changes


def _to_content(kept: KeptMessage) -> Content:
    message = kept.message
    sent = message.sent
    return (
        message.role.value,
        message.text,
        message.tool_name,
        message.call_id,
        None if sent is None else sent.to_microseconds(),
        None if sent is None else sent.utc_offset_min,
        kept.full_bytes,
    )


def _with_first_time(content: Content, before: Content | None) -> Content:
    """The content, with the time at which the message was said for the first time.

    Programs that write a message anew, or resume a session, give it a later time.
    """
    if before is None:
        return content
    role, text, tool_name, call_id, sent_at, _, full_bytes = content
    *_, first_sent_at, first_offset, _ = before
    if first_sent_at is None or (sent_at is not None and sent_at <= first_sent_at):
        return content
    return role, text, tool_name, call_id, first_sent_at, first_offset, full_bytes


def _find_known(
    db: apsw.Connection, session_id: int, kept: Sequence[KeptMessage]
) -> dict[str, tuple[int, Content]]:
    """The stored messages of the same ids: number and content of each."""
    native_ids = to_json(item.message.native_id for item in kept)
    rows = db.execute(
        """
        SELECT native_id, message_id, role, text, tool_name, call_id, sent_at,
               utc_offset_min, full_bytes
          FROM messages
         WHERE session_id = ?
           AND native_id IN (SELECT value FROM json_each(?))
        """,
        (session_id, native_ids),
    )
    return {
        native_id: (message_id, tuple(rest)) for native_id, message_id, *rest in rows
    }


def _next_position(db: apsw.Connection, session_id: int) -> int:
    last = db.execute(
        "SELECT MAX(position) FROM messages WHERE session_id = ?", (session_id,)
    ).get
    return 0 if last is None else last + 1


def _insert(db: apsw.Connection, rows: Sequence[tuple[object, ...]]) -> None:
    db.executemany(
        """
        INSERT INTO messages (session_id, native_id, position, role, text, tool_name,
                              call_id, sent_at, utc_offset_min, full_bytes)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        rows,
    )


def _update(db: apsw.Connection, rows: Sequence[tuple[object, ...]]) -> None:
    db.executemany(
        """
        UPDATE messages
           SET role = ?, text = ?, tool_name = ?, call_id = ?, sent_at = ?,
               utc_offset_min = ?, full_bytes = ?
         WHERE message_id = ?
        """,
        rows,
    )


# -- reading --------------------------------------------------------------------------


def list_messages(
    db: apsw.Connection, session_id: int, first: int, last: int | None, limit: int
) -> list[Message]:
    rows = db.execute(
        f"""
        SELECT {_COLUMNS} FROM messages
         WHERE session_id = ?1 AND position >= ?2 AND (?3 IS NULL OR position <= ?3)
         ORDER BY position
         LIMIT ?4
        """,
        (session_id, first, last, limit),
    )
    return [_to_message(row) for row in rows]


def get_messages(
    db: apsw.Connection, message_ids: Collection[int]
) -> dict[int, Message]:
    rows = db.execute(
        f"""
        SELECT {_COLUMNS} FROM messages
         WHERE message_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(message_ids),),
    )
    return {row[0]: _to_message(row) for row in rows}


def find_beside(
    db: apsw.Connection, session_id: int, position: int, *, is_after: bool
) -> Message | None:
    comparison, order = (">", "ASC") if is_after else ("<", "DESC")
    row = db.execute(
        f"""
        SELECT {_COLUMNS} FROM messages
         WHERE session_id = ? AND position {comparison} ?
           AND role IN ('user', 'assistant')
         ORDER BY position {order} LIMIT 1
        """,
        (session_id, position),
    ).fetchone()
    return None if row is None else _to_message(row)


def find_tool_name(db: apsw.Connection, session_id: int, call_id: str) -> str | None:
    found: str | None = db.execute(
        """
        SELECT tool_name FROM messages
         WHERE session_id = ? AND call_id = ? AND tool_name IS NOT NULL LIMIT 1
        """,
        (session_id, call_id),
    ).get
    return found


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
        SELECT of_session, at_position, {_COLUMNS}
          FROM neighbours JOIN messages ON message_id IN (before_id, after_id)
        """,
        (to_json(places),),
    )
    before: dict[Place, Message] = {}
    after: dict[Place, Message] = {}
    for session_id, position, *row in rows:
        message = _to_message(tuple(row))
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
                                     ORDER BY position LIMIT {_REPLY_STEPS}))
                     WHERE user_messages = 0
                     ORDER BY position DESC LIMIT 1) AS reply_id
              FROM places)
        SELECT of_session, at_position, {_COLUMNS}
          FROM replies JOIN messages ON message_id = reply_id
        """,
        (to_json(places),),
    )
    return {(row[0], row[1]): _to_message(row[2:]) for row in rows}


def find_tool_names(
    db: apsw.Connection, calls: Collection[tuple[int, str]]
) -> dict[tuple[int, str], str]:
    # The plus signs: each session is read once, not once for each of its calls.
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
    limit: int,
    where: Callable[[Message], bool],
    until: float | None,
) -> list[Message]:
    found: list[Message] = []
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages ORDER BY sent_at DESC, message_id DESC"
    )
    for row in rows:
        if len(found) == limit or (until is not None and time.monotonic() >= until):
            break
        if folded in fold(row[5]) and where(message := _to_message(row)):
            found.append(message)
    return found


def find_positions(
    db: apsw.Connection, session_id: int, first_id: int, last_id: int
) -> tuple[int, int] | None:
    """The first and last place of the messages of a session with these numbers."""
    first, last = db.execute(
        """
        SELECT MIN(position), MAX(position) FROM messages
         WHERE +session_id = ? AND message_id BETWEEN ? AND ?
        """,
        (session_id, first_id, last_id),
    ).get
    return None if first is None else (first, last)


def find_message(db: apsw.Connection, session_id: int, name: str) -> Message | None:
    row = db.execute(
        f"""
        SELECT {_COLUMNS} FROM messages
         WHERE session_id = ?1
           AND (native_id = ?2 OR CAST(message_id AS TEXT) = ?2)
         ORDER BY native_id = ?2 DESC LIMIT 1
        """,
        (session_id, name),
    ).fetchone()
    return None if row is None else _to_message(row)


# Any: SQLite rows carry no types; the schema does.
def _to_message(row: tuple[Any, ...]) -> Message:
    (
        message_id,
        session_id,
        native_id,
        position,
        role,
        text,
        tool_name,
        call_id,
        sent_at,
        utc_offset_min,
        full_bytes,
    ) = row
    return Message(
        message_id,
        session_id,
        native_id,
        position,
        _ROLES.get(role) or Role(role),
        text,
        tool_name,
        call_id,
        read_moment(sent_at, utc_offset_min),
        full_bytes,
    )
