"""The tables ``forgettings`` and ``forgotten``: what is never stored again."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from backstory.store.base.forgotten_keys import SALT_BYTES, ForgottenKeys
from backstory.store.base.history import Batch, ForgottenPart
from backstory.store.postgres import changes, message_titles, sessions, sources
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import take_numbers
from backstory.store.postgres.rows import to_columns
from backstory.store.postgres.sessions import StoredSession
from backstory.text.words import fold
from backstory.values.forgetting import Forgetting
from backstory.values.history import Role
from backstory.values.moments import Moment, from_microseconds

# Messages of a session: their ids by number.
_Ids = dict[int, str]


def _find_salt(db: Connection) -> bytes | None:
    row = db.execute("SELECT salt FROM forgettings LIMIT 1").fetchone()
    return None if row is None else bytes(row[0])


# -- leaving out ----------------------------------------------------------------------


def leave_out_forgotten(db: Connection, batch: Batch) -> Batch:
    """The batch without what was forgotten."""
    salt = _find_salt(db)
    if salt is None:
        return batch
    keys = ForgottenKeys(salt, batch.host)
    known = _find_known(db, keys.of_batch(batch))
    return keys.leave_out(batch, known) if known else batch


def _find_known(db: Connection, keys: Iterable[bytes]) -> dict[bytes, int | None]:
    """Those of the keys that are remembered, and what their times are.

    None, for all time, outranks every time.
    """
    rows = db.execute(
        """
        SELECT key, CASE WHEN COUNT(*) = COUNT(before_at) THEN MAX(before_at) END
          FROM forgotten WHERE key = ANY(%s::bytea[]) GROUP BY key
        """,
        (list(keys),),
    )
    return {bytes(key): before_at for key, before_at in rows}


# -- forgetting -----------------------------------------------------------------------


def forget(
    db: Connection,
    parts: Sequence[ForgottenPart],
    *,
    now: datetime,
    facts: int,
    reason: str,
) -> Forgetting:
    """Delete parts of sessions and remember their ids; must run in a transaction."""
    salt = _find_salt(db) or os.urandom(SALT_BYTES)
    stored = sessions.get_stored(db, {part.session_id for part in parts})
    ids_of = _list_ids(db, parts)
    whole: dict[int, _Ids] = {}
    some: dict[int, _Ids] = {}
    keys: dict[bytes, int | None] = {}
    for part in parts:
        number = part.session_id
        if number not in stored or number in whole:
            continue
        session, ids = stored[number], ids_of[number]
        of_host = ForgottenKeys(salt, session.host)
        if part.message_ids is not None:
            ids = {each: ids[each] for each in part.message_ids if each in ids}
        if part.message_ids is None or len(ids) == session.message_count:
            before_at = None if part.is_lasting else Moment(now).to_microseconds()
            keys[of_host.of_session(session.native_id)] = before_at
            whole[number] = ids
            some.pop(number, None)
        else:
            for native_id in ids.values():
                keys[of_host.of_message(session.native_id, native_id)] = None
            some.setdefault(number, {}).update(ids)
        keys.update(dict.fromkeys(of_host.of_titles(ids.values())))
    forgetting = Forgetting(
        take_numbers(db, "last_forgetting_id", 1),
        from_microseconds(Moment(now).to_microseconds(), None).at,
        len(whole),
        sum(map(len, [*whole.values(), *some.values()])),
        tuple(sorted({session.host for session in stored.values()})),
        facts,
        reason,
    )
    _insert(db, forgetting, salt, keys)
    _delete_sessions(db, {number: stored[number] for number in whole}, whole)
    _delete_messages(db, {number: stored[number] for number in some}, some)
    _tell_indexes(db, [part.session_id for part in parts], whole, some)
    return forgetting


def _list_ids(db: Connection, parts: Sequence[ForgottenPart]) -> dict[int, _Ids]:
    """The messages of the sessions that are concerned, or those that are named."""
    whole = [part.session_id for part in parts if part.message_ids is None]
    named = [number for part in parts for number in part.message_ids or ()]
    rows = db.execute(
        """
        SELECT session_id, message_id, native_id FROM messages
         WHERE session_id = ANY(%s::bigint[])
            OR (message_id = ANY(%s::bigint[]) AND session_id = ANY(%s::bigint[]))
        """,
        (whole, named, [part.session_id for part in parts]),
    )
    found: dict[int, _Ids] = {part.session_id: {} for part in parts}
    for session_id, message_id, native_id in rows:
        found[session_id][message_id] = native_id
    return found


def _insert(
    db: Connection,
    forgetting: Forgetting,
    salt: bytes,
    keys: Mapping[bytes, int | None],
) -> None:
    db.execute(
        """
        INSERT INTO forgettings (forgetting_id, forgotten_at, sessions, messages, hosts,
                                 salt, facts, reason)
        VALUES (%s, %s, %s, %s, %s::text[], %s, %s, %s)
        """,
        (
            forgetting.forgetting_id,
            Moment(forgetting.forgotten_at).to_microseconds(),
            forgetting.sessions,
            forgetting.messages,
            list(forgetting.hosts),
            salt,
            forgetting.facts,
            forgetting.reason,
        ),
    )
    db.execute(
        """
        INSERT INTO forgotten (forgetting_id, key, before_at)
        SELECT %s, * FROM unnest(%s::bytea[], %s::bigint[])
        """,
        (forgetting.forgetting_id, *to_columns(keys.items(), 2)),
    )


def _delete_sessions(
    db: Connection, gone: Mapping[int, StoredSession], ids: Mapping[int, _Ids]
) -> None:
    """Delete sessions and everything about them."""
    if not gone:
        return
    message_titles.delete_titles(db, _name_messages(gone, ids))
    # A problem may quote the line it was found in.
    files = [each.read_from for each in gone.values() if each.read_from is not None]
    sources.delete_problems_in(db, files)
    db.execute(
        "DELETE FROM sessions WHERE session_id = ANY(%s::bigint[])", (list(gone),)
    )


def _name_messages(
    stored: Mapping[int, StoredSession], ids: Mapping[int, _Ids]
) -> list[tuple[str, str]]:
    """Hosts and ids of messages."""
    return [
        (stored[number].host, native_id)
        for number, of_session in ids.items()
        for native_id in of_session.values()
    ]


def _delete_messages(
    db: Connection, kept: Mapping[int, StoredSession], ids: Mapping[int, _Ids]
) -> None:
    """Delete some messages of sessions, and whatever quotes them."""
    if not kept:
        return
    gone = [number for of_session in ids.values() for number in of_session]
    _move_log_pointers(db, kept, gone)
    message_titles.delete_titles(db, _name_messages(kept, ids))
    _drop_quoting_titles(db, kept, gone)
    db.execute("DELETE FROM messages WHERE message_id = ANY(%s::bigint[])", (gone,))
    _close_gaps(db, list(kept))
    # What a model made of them waits here until it is in the notes.
    db.execute(
        "DELETE FROM summaries WHERE session_id = ANY(%s::bigint[])", (list(kept),)
    )
    titles = message_titles.find_titles(db, list(kept))
    for number, session in kept.items():
        session.message_title = titles.get(number)
        session.message_count -= len(ids[number])
    sessions.refresh_excerpts(db, list(kept.values()))
    sessions.replace_sessions(db, kept.values())


def _close_gaps(db: Connection, session_ids: list[int]) -> None:
    """Number the messages of sessions from 0 on again."""
    db.execute(
        """
        UPDATE messages SET position = counted.position
          FROM (SELECT message_id,
                       row_number() OVER (PARTITION BY session_id
                                              ORDER BY position) - 1 AS position
                  FROM messages WHERE session_id = ANY(%s::bigint[])) AS counted
         WHERE messages.message_id = counted.message_id
           AND messages.position <> counted.position
        """,
        (session_ids,),
    )


def _move_log_pointers(
    db: Connection, kept: Mapping[int, StoredSession], gone: list[int]
) -> None:
    """Keep what is logged up to now as logged, if the last of it is deleted."""
    moved = [
        each.session_id
        for each in kept.values()
        if each.last_logged_message_id in set(gone)
    ]
    if not moved:
        return
    rows = db.execute(
        """
        SELECT sessions.session_id,
               (SELECT earlier.message_id FROM messages AS earlier
                 WHERE earlier.session_id = sessions.session_id
                   AND earlier.position < logged.position
                   AND earlier.message_id <> ALL(%s::bigint[])
                 ORDER BY earlier.position DESC LIMIT 1)
          FROM sessions JOIN messages AS logged
            ON logged.tenant_id = sessions.tenant_id
           AND logged.message_id = last_logged_message_id
         WHERE sessions.session_id = ANY(%s::bigint[])
        """,
        (gone, moved),
    )
    for session_id, message_id in rows:
        kept[session_id].last_logged_message_id = message_id


def _drop_quoting_titles(
    db: Connection, kept: Mapping[int, StoredSession], gone: list[int]
) -> None:
    """Drop titles that are taken from one of the texts to be deleted."""
    beginnings = {
        number: fold((session.title or "").rstrip("….").strip())
        for number, session in kept.items()
    }
    titled = [number for number, beginning in beginnings.items() if beginning]
    rows = db.execute(
        """
        SELECT session_id, text FROM messages
         WHERE message_id = ANY(%s::bigint[]) AND session_id = ANY(%s::bigint[])
        """,
        (gone, titled),
    )
    for session_id, text in rows:
        if beginnings[session_id] in fold(text):
            kept[session_id].title = None


def _tell_indexes(
    db: Connection,
    order: Iterable[int],
    whole: Mapping[int, _Ids],
    some: Mapping[int, _Ids],
) -> None:
    spans = changes.find_spans(db, list(some))
    new: list[changes.NewChange] = []
    for number in dict.fromkeys(order):
        if number in whole or number in some:
            new.append(changes.of_emptying(number))
        if number in some:
            new += [spans[number]] if number in spans else []
            new.append(changes.of_session(number))
    changes.insert_changes(db, new)


def list_said_before(
    db: Connection, at: datetime, *, role: Role | None
) -> list[ForgottenPart]:
    rows = db.execute(
        """
        SELECT session_id, message_id
          FROM messages JOIN sessions USING (tenant_id, session_id)
         WHERE COALESCE(sent_at, started_at) < %(at)s
           AND (%(role)s::text IS NULL OR role = %(role)s)
         ORDER BY session_id, message_id
        """,
        {
            "at": Moment(at).to_microseconds(),
            "role": None if role is None else role.value,
        },
    )
    return [
        ForgottenPart(session_id, tuple(message_id for _, message_id in of_session))
        for session_id, of_session in groupby(rows, key=itemgetter(0))
    ]


# -- what was forgotten ---------------------------------------------------------------


def list_forgettings(db: Connection) -> list[Forgetting]:
    rows = db.execute(
        """
        SELECT forgetting_id, forgotten_at, sessions, messages, hosts, facts, reason
          FROM forgettings ORDER BY forgetting_id
        """
    )
    return [
        Forgetting(
            number,
            from_microseconds(at, None).at,
            session_count,
            message_count,
            tuple(hosts),
            facts,
            reason,
        )
        for number, at, session_count, message_count, hosts, facts, reason in rows
    ]


def undo(db: Connection, forgetting: Forgetting) -> None:
    """Let what was forgotten be read again; must run in a transaction."""
    db.execute(
        "DELETE FROM forgettings WHERE forgetting_id = %s", (forgetting.forgetting_id,)
    )
    # Which of them have it is not known any more.
    db.execute(
        """
        UPDATE sources SET signature = '', prefix_hash = ''
         WHERE host = ANY(%s::text[])
        """,
        (list(forgetting.hosts),),
    )
