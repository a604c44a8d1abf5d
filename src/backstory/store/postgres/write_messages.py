"""Write the messages of many sessions at once: those that are new, and that changed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from backstory.store.base.history import KeptMessage
from backstory.store.base.message_ids import (
    Content,
    ResolvedMessages,
    SessionMessages,
    id_by_content,
    resolve_ids,
    to_content,
)
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import take_numbers
from backstory.store.postgres.rows import (
    changed_by_place,
    in_places,
    key_of,
    to_columns,
)
from backstory.text.private import PRIVATE
from backstory.values.structs import FrozenStruct

# A session and the id of a message.
MessageName = tuple[int, str]
_Stored = dict[MessageName, tuple[int, Content]]


class WrittenMessages(FrozenStruct):
    """What writing the messages of one session changed.

    ``new_ids`` are the ids of new messages, ``first_new`` is the number of the first
    one; the others follow it. ``updated`` are the numbers of those that changed.
    """

    new_ids: tuple[str, ...]
    first_new: int
    updated: tuple[int, ...]
    given_twice: tuple[KeptMessage, ...]
    last_message_id: int

    @property
    def runs(self) -> list[tuple[int, int]]:
        """The numbers of the messages, first and last of each run of them."""
        runs = [(message_id, message_id) for message_id in self.updated]
        if self.new_ids:
            runs.append((self.first_new, self.first_new + len(self.new_ids) - 1))
        return runs


def write_messages(
    db: Connection, new: Sequence[SessionMessages]
) -> list[WrittenMessages]:
    """Insert the messages that are new, update those that changed, leave the rest."""
    resolved = _resolve(db, new)
    first = _insert_new(db, new, resolved)
    _update_changed(db, [row for each in resolved for row in each.changed])
    written = []
    for of_session, each in zip(new, resolved, strict=True):
        new_ids = tuple(native_id for native_id, _ in each.new)
        numbers = {native_id: number for native_id, (number, _) in each.stored.items()}
        numbers.update((id_, first + at) for at, id_ in enumerate(new_ids))
        if of_session.reread is not None:
            of_session.reread.update(numbers.values())
        written.append(
            WrittenMessages(
                new_ids=new_ids,
                first_new=first,
                updated=tuple(number for number, _ in each.changed),
                given_twice=tuple(each.given_twice),
                last_message_id=numbers[next(reversed(each.wanted))],
            )
        )
        first += len(new_ids)
    return written


def hide_messages(
    db: Connection, named: Collection[MessageName]
) -> dict[MessageName, int]:
    """Put a mark in place of the texts of stored messages; returns their numbers."""
    keys = {(session_id, key_of(native)): native for session_id, native in named}
    rows = db.execute(
        """
        UPDATE messages SET text = %s, full_bytes = NULL
          FROM unnest(%s::bigint[], %s::bytea[]) AS named (session_id, native_key)
         WHERE messages.session_id = named.session_id
           AND messages.native_key = named.native_key AND text <> %s
        RETURNING messages.session_id, messages.native_key, message_id
        """,
        (PRIVATE, *to_columns(keys, 2), PRIVATE),
    )
    return {
        (session_id, keys[session_id, bytes(key)]): message_id
        for session_id, key, message_id in rows
    }


def find_places(
    db: Connection, named: Collection[MessageName]
) -> dict[MessageName, tuple[int, int]]:
    """The numbers and positions of messages."""
    keys = {(session_id, key_of(native)): native for session_id, native in named}
    rows = db.execute(
        """
        SELECT of_session, its_key, message_id, position
          FROM unnest(%s::bigint[], %s::bytea[]) AS named (of_session, its_key)
         CROSS JOIN LATERAL (
               SELECT message_id, position FROM messages
                WHERE session_id = of_session AND native_key BETWEEN its_key AND its_key
                ORDER BY native_key LIMIT 1) AS messages
        """,
        to_columns(keys, 2),
    )
    return {
        (session_id, keys[session_id, bytes(key)]): (message_id, position)
        for session_id, key, message_id, position in rows
    }


# -- what is stored -------------------------------------------------------------------


def _resolve(db: Connection, new: Sequence[SessionMessages]) -> list[ResolvedMessages]:
    old = [each for each in new if not each.is_new_session]
    stored = _find_stored(
        db,
        [
            (each.session_id, kept.message.native_id)
            for each in old
            for kept in each.kept
        ],
    )
    # Which ids are taken is seen later; here, those are found that may be.
    stored |= _find_stored(db, [name for each in old for name in _other(each, stored)])

    def resolve(each: SessionMessages) -> ResolvedMessages:
        def find(ids: Collection[str]) -> Mapping[str, tuple[int, Content]]:
            names = {native_id: (each.session_id, native_id) for native_id in ids}
            return {id_: stored[name] for id_, name in names.items() if name in stored}

        return resolve_ids(each, find)

    return [resolve(each) for each in new]


def _other(new: SessionMessages, stored: _Stored) -> Iterable[MessageName]:
    """The names under which messages may be stored because their ids are taken."""
    met: dict[str, Content] = {}
    for kept in new.kept:
        native_id, content = kept.message.native_id, to_content(kept)
        found = stored.get((new.session_id, native_id))
        before = met.setdefault(native_id, content if found is None else found[1])
        if before != content and not new.replaces:
            yield new.session_id, id_by_content(kept.message)


def _find_stored(db: Connection, names: Collection[MessageName]) -> _Stored:
    """The stored messages with these names: number and content of each."""
    if not names:
        return {}
    keys = {(session_id, key_of(native)) for session_id, native in names}
    rows = db.execute(
        """
        SELECT session_id, native_id, message_id, role, text, tool_name, call_id,
               sent_at, utc_offset_min, full_bytes
          FROM unnest(%s::bigint[], %s::bytea[]) AS named (of_session, its_key)
         CROSS JOIN LATERAL (
               SELECT session_id, native_id, message_id, role, text, tool_name, call_id,
                      sent_at, utc_offset_min, full_bytes
                 FROM messages
                WHERE session_id = of_session AND native_key BETWEEN its_key AND its_key
                ORDER BY native_key LIMIT 1) AS messages
        """,
        to_columns(keys, 2),
    )
    return {
        (session_id, native_id): (message_id, tuple(content))
        for session_id, native_id, message_id, *content in rows
    }


# -- rows -----------------------------------------------------------------------------


def _insert_new(
    db: Connection,
    new: Sequence[SessionMessages],
    resolved: Sequence[ResolvedMessages],
) -> int:
    """Insert new messages after the last ones of their sessions.

    Returns the number of the first. The others have the numbers after it.
    """
    count = sum(len(each.new) for each in resolved)
    if not count:
        return 0
    first = number = take_numbers(db, "last_message_id", count)
    next_positions = _find_next_positions(
        db, [each.session_id for each in new if not each.is_new_session]
    )
    # Any: whatever may be bound.
    rows: list[tuple[Any, ...]] = []
    for of_session, each in zip(new, resolved, strict=True):
        session_id = of_session.session_id
        position = next_positions.get(session_id, 0)
        for native_id, content in each.new:
            key = key_of(native_id)
            rows.append((number, session_id, key, native_id, position, *content))
            number += 1
            position += 1
    db.execute(
        """
        INSERT INTO messages (message_id, session_id, native_key, native_id, position,
                              role, text, tool_name, call_id, sent_at, utc_offset_min,
                              full_bytes)
        SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[], %s::text[],
                             %s::integer[], %s::text[], %s::text[], %s::text[],
                             %s::text[], %s::bigint[], %s::integer[], %s::bigint[])
        """,
        to_columns(rows, 12),
    )
    return first


def _find_next_positions(db: Connection, session_ids: Sequence[int]) -> dict[int, int]:
    rows = db.execute(
        """
        SELECT wanted.session_id, last.position + 1
          FROM unnest(%s::bigint[]) AS wanted (session_id)
         CROSS JOIN LATERAL (
               SELECT position FROM messages
                WHERE messages.session_id = wanted.session_id
                ORDER BY position DESC LIMIT 1) AS last
        """,
        (list(session_ids),),
    )
    return dict(rows.fetchall())


def _update_changed(db: Connection, changed: Sequence[tuple[int, Content]]) -> None:
    if not changed:
        return
    rows = [(message_id, *content) for message_id, content in changed]
    place = in_places("messages", key="message_id", within="")
    with changed_by_place(db):
        db.execute(
            f"""
            UPDATE messages
               SET role = new.role, text = new.text, tool_name = new.tool_name,
                   call_id = new.call_id, sent_at = new.sent_at,
                   utc_offset_min = new.utc_offset_min, full_bytes = new.full_bytes
              FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[],
                          %s::bigint[], %s::integer[], %s::bigint[])
                   AS new (message_id, role, text, tool_name, call_id, sent_at,
                           utc_offset_min, full_bytes)
             WHERE messages.message_id = new.message_id AND {place}
            """.encode(),
            (*to_columns(rows, 8), [message_id for message_id, _ in changed]),
        )
