"""Write the new and changed messages of one session."""

from collections.abc import Collection, Sequence
from typing import Any

import apsw

from backstory.store.base.history import KeptMessage
from backstory.store.base.message_ids import (
    Content,
    ResolvedMessages,
    SessionMessages,
    resolve_ids,
)
from backstory.store.sqlite.rows import to_json
from backstory.text.private import PRIVATE
from backstory.values.structs import FrozenStruct


class MessageChanges(FrozenStruct):
    """What writing the messages of one session changed.

    ``written`` are runs of messages, each by the numbers of the first and the last.
    """

    inserted: int
    updated: int
    written: tuple[tuple[int, int], ...]
    given_twice: tuple[KeptMessage, ...]
    last_message_id: int


def write_messages(db: apsw.Connection, new: SessionMessages) -> MessageChanges:
    """Insert the messages that are new, update those that changed, leave the rest."""
    resolved = resolve_ids(new, lambda ids: _find_stored(db, new.session_id, ids))
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


# -- rows -----------------------------------------------------------------------------


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


def _insert_new(
    db: apsw.Connection, session_id: int, resolved: ResolvedMessages
) -> Sequence[int]:
    """Insert new messages after the session's last one; returns their numbers."""
    position = _next_position(db, session_id)
    # Any: whatever SQLite may bind.
    new: list[tuple[Any, ...]] = [
        (session_id, native_id, position + number, *content)
        for number, (native_id, content) in enumerate(resolved.new)
    ]
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


def _update_changed(db: apsw.Connection, resolved: ResolvedMessages) -> list[int]:
    """Update stored messages whose content changed; returns their numbers."""
    # Any: whatever SQLite may bind.
    changed: list[tuple[Any, ...]] = [
        (*content, message_id) for message_id, content in resolved.changed
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
