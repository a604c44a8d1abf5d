"""Write the messages of one session: those that are new, and those that changed."""

from collections.abc import Collection, Sequence
from typing import Any

import apsw

from backstory.store.base.history import KeptMessage
from backstory.store.sqlite.rows import to_json
from backstory.text.private import PRIVATE
from backstory.values.history import NewMessage
from backstory.values.identity import content_id
from backstory.values.structs import FrozenStruct, field

# Everything about a message that may change, in the order of the columns below.
Content = tuple[str, str, str | None, str | None, int | None, int | None, int | None]


class SessionMessages(FrozenStruct):
    """Messages that a batch has for one session, at least one.

    ``replaces`` and ``reread`` are those of ``Batch``.
    """

    session_id: int
    kept: Sequence[KeptMessage]
    is_new_session: bool = False
    replaces: bool = False
    reread: set[int] | None = None


class MessageChanges(FrozenStruct):
    """What writing the messages of one session changed.

    ``written`` are the numbers of the messages, first and last of each run of them.
    """

    inserted: int
    updated: int
    written: tuple[tuple[int, int], ...]
    given_twice: tuple[KeptMessage, ...]
    last_message_id: int


class _Resolved(FrozenStruct):
    """Messages by id: the number and content they have, and the content they get."""

    stored: dict[str, tuple[int, Content]]
    wanted: dict[str, Content] = field(default_factory=dict)
    given_twice: list[KeptMessage] = field(default_factory=list)


def write_messages(db: apsw.Connection, new: SessionMessages) -> MessageChanges:
    """Insert the messages that are new, update those that changed, leave the rest."""
    resolved = _resolve_ids(db, new)
    inserted = _insert_new(db, new.session_id, resolved)
    updated = _update_changed(db, resolved)
    if new.reread is not None:
        new.reread.update(inserted)
        new.reread.update(message_id for message_id, _ in resolved.stored.values())
    written = [(message_id, message_id) for message_id in updated]
    if inserted:
        written.append((inserted[0], inserted[-1]))
    last_id = next(reversed(resolved.wanted))
    is_stored = last_id in resolved.stored
    return MessageChanges(
        inserted=len(inserted),
        updated=len(updated),
        written=tuple(written),
        given_twice=tuple(resolved.given_twice),
        last_message_id=resolved.stored[last_id][0] if is_stored else inserted[-1],
    )


def hide_message(db: apsw.Connection, session_id: int, native_id: str) -> int | None:
    """Put a mark in place of the text of a stored message; returns its number."""
    hidden: int | None = db.execute(
        """
        UPDATE messages SET text = ?, full_bytes = NULL
         WHERE session_id = ? AND native_id = ? AND text <> ?
        RETURNING message_id
        """,
        (PRIVATE, session_id, native_id, PRIVATE),
    ).get
    return hidden


# -- under which id -------------------------------------------------------------------


def _resolve_ids(db: apsw.Connection, new: SessionMessages) -> _Resolved:
    """Decide the id and content of each message, in the order in which they came.

    A message whose id is taken by another gets an id of its own.
    """
    native_ids = [item.message.native_id for item in new.kept]
    resolved = _Resolved(
        {} if new.is_new_session else _find_stored(db, new.session_id, native_ids)
    )
    stored, wanted = resolved.stored, resolved.wanted
    for item in new.kept:
        native_id, content = item.message.native_id, _to_content(item)
        if not new.replaces and _is_taken(native_id, content, resolved, new.reread):
            native_id = id_by_content(item.message)
            if native_id not in wanted:
                resolved.given_twice.append(item)
                stored.update(_find_stored(db, new.session_id, [native_id]))
        before = wanted.get(native_id) or stored.get(native_id, (0, None))[1]
        wanted[native_id] = _with_first_time(content, before)
    return resolved


def _is_taken(
    native_id: str, content: Content, resolved: _Resolved, reread: set[int] | None
) -> bool:
    """Whether the id was given to another message by the same source."""
    if native_id in resolved.wanted:
        return resolved.wanted[native_id] != content
    if native_id not in resolved.stored:
        return False
    message_id, stored = resolved.stored[native_id]
    return stored != content and (reread is None or message_id in reread)


def id_by_content(message: NewMessage) -> str:
    """The id under which a message is stored if its own is taken."""
    return f"{message.native_id}~{content_id(message.role, message.text)[3:]}"


def _find_stored(
    db: apsw.Connection, session_id: int, native_ids: Collection[str]
) -> dict[str, tuple[int, Content]]:
    """The stored messages with these ids: number and content of each."""
    rows = db.execute(
        """
        SELECT native_id, message_id, role, text, tool_name, call_id, sent_at,
               utc_offset_min, full_bytes
          FROM messages
         WHERE session_id = ?
           AND native_id IN (SELECT value FROM json_each(?))
        """,
        (session_id, to_json(native_ids)),
    )
    return {
        native_id: (message_id, tuple(rest)) for native_id, message_id, *rest in rows
    }


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
    """The content, with the time at which the message was first sent.

    Programs that write a message again, or resume a session, give it a later time.
    """
    if before is None:
        return content
    role, text, tool_name, call_id, sent_at, _, full_bytes = content
    *_, first_sent_at, first_offset, _ = before
    if first_sent_at is None or (sent_at is not None and sent_at <= first_sent_at):
        return content
    return role, text, tool_name, call_id, first_sent_at, first_offset, full_bytes


# -- rows -----------------------------------------------------------------------------


def _insert_new(
    db: apsw.Connection, session_id: int, resolved: _Resolved
) -> Sequence[int]:
    """Insert new messages after the session's last one; returns their numbers."""
    position = _next_position(db, session_id)
    # Any: whatever SQLite may bind.
    new: list[tuple[Any, ...]] = []
    for native_id, content in resolved.wanted.items():
        if native_id not in resolved.stored:
            new.append((session_id, native_id, position + len(new), *content))
    if not new:
        return ()
    db.executemany(
        """
        INSERT INTO messages (session_id, native_id, position, role, text, tool_name,
                              call_id, sent_at, utc_offset_min, full_bytes)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        new,
    )
    # Rows inserted by one statement have consecutive numbers.
    last = db.last_insert_rowid()
    return range(last - len(new) + 1, last + 1)


def _update_changed(db: apsw.Connection, resolved: _Resolved) -> list[int]:
    """Update stored messages whose content changed; returns their numbers."""
    # Any: whatever SQLite may bind.
    changed: list[tuple[Any, ...]] = [
        (*content, resolved.stored[native_id][0])
        for native_id, content in resolved.wanted.items()
        if native_id in resolved.stored and resolved.stored[native_id][1] != content
    ]
    if changed:
        db.executemany(
            """
            UPDATE messages
               SET role = ?, text = ?, tool_name = ?, call_id = ?, sent_at = ?,
                   utc_offset_min = ?, full_bytes = ?
             WHERE message_id = ?
            """,
            changed,
        )
    return [row[-1] for row in changed]


def _next_position(db: apsw.Connection, session_id: int) -> int:
    last = db.execute(
        "SELECT MAX(position) FROM messages WHERE session_id = ?", (session_id,)
    ).get
    return 0 if last is None else last + 1
