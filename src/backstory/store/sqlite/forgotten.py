"""The tables ``forgettings`` and ``forgotten``: what is never stored again.

Only salted hashes of ids are kept: enough to recognize what was forgotten when a source
is read again, but not to tell what it was.
"""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

import apsw

from backstory.store.base.forgotten_keys import (
    KEY_BYTES,
    SALT_BYTES,
    ForgottenKeys,
)
from backstory.store.base.history import Batch, ForgottenPart
from backstory.store.sqlite import changes, message_titles, sessions
from backstory.store.sqlite.rows import to_dict, to_json
from backstory.text.words import fold
from backstory.values.forgetting import Forgetting
from backstory.values.history import Role
from backstory.values.moments import Moment, from_microseconds


def _find_salt(db: apsw.Connection) -> bytes | None:
    salt: bytes | None = db.execute("SELECT salt FROM forgettings LIMIT 1").get
    return salt


# -- leaving out ----------------------------------------------------------------------


def leave_out_forgotten(db: apsw.Connection, batch: Batch) -> Batch:
    """The batch without what was forgotten."""
    salt = _find_salt(db)
    if salt is None:
        return batch
    keys = ForgottenKeys(salt, batch.host)
    known = _find_known(db, keys.of_batch(batch))
    return keys.leave_out(batch, known) if known else batch


def _find_known(db: apsw.Connection, keys: Iterable[bytes]) -> dict[bytes, int | None]:
    """Those of the keys that are remembered, with their times.

    None stands for all time, and outranks any time.
    """
    rows = db.execute(
        """
        SELECT key, CASE WHEN COUNT(*) = COUNT(before_at) THEN MAX(before_at) END
          FROM forgotten
         WHERE key IN (SELECT unhex(value) FROM json_each(?))
         GROUP BY key
        """,
        (to_json(key.hex() for key in keys),),
    )
    return to_dict(rows)


# -- forgetting -----------------------------------------------------------------------


def forget(
    db: apsw.Connection,
    parts: Sequence[ForgottenPart],
    *,
    now: datetime,
    facts: int,
    reason: str,
) -> Forgetting:
    """Delete parts of sessions and remember their ids; must run in a transaction."""
    salt = _find_salt(db) or os.urandom(SALT_BYTES)
    stored = sessions.get_sessions(db, [part.session_id for part in parts])
    db.execute(
        """
        INSERT INTO forgettings (forgotten_at, sessions, messages, hosts, salt, facts,
                                 reason)
        VALUES (?, 0, 0, ?, ?, ?, ?)
        """,
        (
            Moment(now).to_microseconds(),
            to_json(sorted({session.host for session in stored.values()})),
            salt,
            facts,
            reason,
        ),
    )
    forgetting_id = db.last_insert_rowid()
    whole = messages = 0
    for part in parts:
        if part.session_id not in stored:
            continue
        session = stored[part.session_id]
        keys = ForgottenKeys(salt, session.host)
        ids = _list_ids(db, part)
        if part.message_ids is None or len(ids) == session.message_count:
            before_at = None if part.is_lasting else Moment(now).to_microseconds()
            forgotten = [(keys.of_session(session.native_id), before_at)]
            _delete_session(db, part.session_id)
            whole += 1
        else:
            forgotten = [
                (keys.of_message(session.native_id, native_id), None)
                for native_id in ids.values()
            ]
            _delete_messages(db, part.session_id, ids)
        forgotten += [(key, None) for key in keys.of_titles(ids.values())]
        messages += len(ids)
        _remember(db, forgetting_id, forgotten)
    db.execute(
        "UPDATE forgettings SET sessions = ?, messages = ? WHERE forgetting_id = ?",
        (whole, messages, forgetting_id),
    )
    return get_forgetting(db, forgetting_id)


def _list_ids(db: apsw.Connection, part: ForgottenPart) -> dict[int, str]:
    """The numbers and ids of the messages of a part."""
    rows = db.execute(
        """
        SELECT message_id, native_id FROM messages
         WHERE session_id = ?1
           AND (?2 IS NULL OR message_id IN (SELECT value FROM json_each(?2)))
        """,
        (
            part.session_id,
            None if part.message_ids is None else to_json(part.message_ids),
        ),
    )
    return to_dict(rows)


def _remember(
    db: apsw.Connection,
    forgetting_id: int,
    forgotten: Iterable[tuple[bytes, int | None]],
) -> None:
    db.executemany(
        "INSERT INTO forgotten (forgetting_id, key, before_at) VALUES (?, ?, ?)",
        [(forgetting_id, key, before_at) for key, before_at in forgotten],
    )


def _delete_session(db: apsw.Connection, session_id: int) -> None:
    """Delete a session and everything about it."""
    sessions.empty_session(db, session_id)
    # A problem may quote the line it was found in.
    db.execute(
        """
        DELETE FROM problems
         WHERE path = (SELECT read_from FROM sessions WHERE session_id = ?)
        """,
        (session_id,),
    )
    db.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))
    changes.insert_emptying(db, session_id)


def _delete_messages(db: apsw.Connection, session_id: int, ids: dict[int, str]) -> None:
    """Delete some messages of a session, and whatever quotes them."""
    _move_log_pointer(db, session_id, ids)
    message_titles.delete_titles_of(db, session_id, ids)
    quoted = [text for (text,) in _iter_texts(db, ids)]
    db.execute(
        "DELETE FROM messages WHERE message_id IN (SELECT value FROM json_each(?))",
        (to_json(ids),),
    )
    _close_gaps(db, session_id)
    # Summaries of them wait here until they are in the notes.
    db.execute("DELETE FROM summaries WHERE session_id = ?", (session_id,))
    _drop_quoting_title(db, session_id, quoted)
    message_titles.refresh_titles(db, [session_id])
    sessions.refresh_excerpts(db, session_id, -len(ids), None)
    changes.insert_emptying(db, session_id)
    changes.insert_whole_session(db, session_id)
    changes.insert_session_change(db, session_id)


def _close_gaps(db: apsw.Connection, session_id: int) -> None:
    """Renumber the positions of a session's messages from 0."""
    rows = db.execute(
        "SELECT message_id FROM messages WHERE session_id = ? ORDER BY position",
        (session_id,),
    ).fetchall()
    # In this order, no two of them ever have the same position.
    db.executemany(
        "UPDATE messages SET position = ? WHERE message_id = ?",
        [(position, message_id) for position, (message_id,) in enumerate(rows)],
    )


def _iter_texts(db: apsw.Connection, ids: Iterable[int]) -> apsw.Cursor:
    return db.execute(
        """
        SELECT text FROM messages
         WHERE message_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(ids),),
    )


def _move_log_pointer(db: apsw.Connection, session_id: int, ids: Iterable[int]) -> None:
    """Keep logged messages logged when the last logged one is deleted."""
    db.execute(
        """
        UPDATE sessions
           SET last_logged_message_id = (
               SELECT message_id FROM messages
                WHERE session_id = ?1
                  AND message_id NOT IN (SELECT value FROM json_each(?2))
                  AND position < (SELECT position FROM messages
                                   WHERE message_id = last_logged_message_id)
                ORDER BY position DESC LIMIT 1)
         WHERE session_id = ?1
           AND last_logged_message_id IN (SELECT value FROM json_each(?2))
        """,
        (session_id, to_json(ids)),
    )


def _drop_quoting_title(
    db: apsw.Connection, session_id: int, quoted: Iterable[str]
) -> None:
    """Drop a title that was taken from one of the deleted texts."""
    title: str | None = db.execute(
        "SELECT title FROM sessions WHERE session_id = ?", (session_id,)
    ).get
    beginning = fold((title or "").rstrip("….").strip())
    if beginning and any(beginning in fold(text) for text in quoted):
        db.execute(
            "UPDATE sessions SET title = NULL WHERE session_id = ?", (session_id,)
        )


def list_said_before(
    db: apsw.Connection, at: datetime, *, role: Role | None
) -> list[ForgottenPart]:
    rows = db.execute(
        """
        SELECT session_id, message_id
          FROM messages JOIN sessions USING (session_id)
         WHERE COALESCE(sent_at, started_at) < ?1 AND (?2 IS NULL OR role = ?2)
         ORDER BY session_id, message_id
        """,
        (Moment(at).to_microseconds(), None if role is None else role.value),
    )
    return [
        ForgottenPart(session_id, tuple(message_id for _, message_id in of_session))
        for session_id, of_session in groupby(rows, key=itemgetter(0))
    ]


# -- what was forgotten ---------------------------------------------------------------


def get_forgetting(db: apsw.Connection, forgetting_id: int) -> Forgetting:
    (found,) = [
        each for each in list_forgettings(db) if each.forgetting_id == forgetting_id
    ]
    return found


def list_forgettings(db: apsw.Connection) -> list[Forgetting]:
    rows = db.execute(
        """
        SELECT forgetting_id, forgotten_at, sessions, messages, hosts, facts, reason
          FROM forgettings ORDER BY forgetting_id
        """
    )
    return [
        Forgetting(
            forgetting_id,
            from_microseconds(forgotten_at, None).at,
            session_count,
            message_count,
            _parse_hosts(hosts),
            *rest,
        )
        for (
            forgetting_id,
            forgotten_at,
            session_count,
            message_count,
            hosts,
            *rest,
        ) in rows
    ]


def _parse_hosts(hosts: str) -> tuple[str, ...]:
    """The programs whose sessions were forgotten; none if the row is damaged."""
    return tuple(_parse_list(hosts) or ())


def undo(db: apsw.Connection, forgetting: Forgetting) -> None:
    """Let what was forgotten be read again; must run in a transaction."""
    db.execute(
        "DELETE FROM forgettings WHERE forgetting_id = ?", (forgetting.forgetting_id,)
    )
    # Which sources have it is not known any more, so all of these hosts are read again.
    db.execute(
        """
        UPDATE sources SET signature = '', prefix_hash = ''
         WHERE host IN (SELECT value FROM json_each(?))
        """,
        (to_json(forgetting.hosts),),
    )


# -- repairing ------------------------------------------------------------------------


def is_forgetting(values: Sequence[object]) -> bool:
    """Whether these values from a damaged page can be a row of ``forgettings``."""
    match values:
        case [_, int(at), int(), int(), str(hosts), bytes(salt), *_]:
            return _is_time(at) and _is_list(hosts) and len(salt) == SALT_BYTES
        case _:
            return False


def is_key(values: Sequence[object]) -> bool:
    """Whether these values from a damaged page can be a row of ``forgotten``."""
    match values:
        case [_, int(), bytes(key), int() | None]:
            return len(key) == KEY_BYTES
        case _:
            return False


def _is_time(microseconds: int) -> bool:
    try:
        from_microseconds(microseconds, None)
    except (ValueError, OverflowError):
        return False
    return True


def _is_list(text: str) -> bool:
    return _parse_list(text) is not None


def _parse_list(text: str) -> list[str] | None:
    """The texts of a JSON list; None if it is anything else."""
    # Imported here because it is slow, and in most homes nothing was forgotten.
    import orjson

    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        return found
    return None


def complete_salvaged(db: apsw.Connection) -> None:
    """Make rows that were saved from damaged pages usable; in a transaction.

    Without the salt, the keys are useless and are deleted.
    """
    for statement in (
        # A damaged page may have changed the salt of one row; it is the same in all.
        """
        UPDATE forgettings
           SET salt = (SELECT salt FROM forgettings
                        GROUP BY salt ORDER BY COUNT(*) DESC LIMIT 1)
        """,
        # Keys whose forgetting is lost still keep messages out, and can be undone.
        """
        INSERT INTO forgettings (forgetting_id, forgotten_at, sessions, messages,
                                 hosts, salt)
        SELECT DISTINCT forgotten.forgetting_id, known.forgotten_at, 0, 0,
               (SELECT json_group_array(DISTINCT host) FROM sessions), known.salt
          FROM forgotten JOIN (SELECT forgotten_at, salt FROM forgettings
                                ORDER BY forgetting_id LIMIT 1) AS known
         WHERE forgotten.forgetting_id NOT IN (SELECT forgetting_id FROM forgettings)
        """,
        """
        DELETE FROM forgotten
         WHERE forgetting_id NOT IN (SELECT forgetting_id FROM forgettings)
        """,
    ):
        db.execute(statement)
