"""OneClaw: an Android app that keeps its conversations in one SQLite database."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import apsw

from backstory.ingest.importers.base import (
    Conversation,
    Origin,
    unknown_record,
)
from backstory.ingest.parsing.databases import list_tables
from backstory.ingest.parsing.rows import (
    decode,
    iter_rows,
    lenient,
    report_long,
)
from backstory.text.json_values import (
    JsonObject,
    as_text,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id

_ROLES = {
    "USER": Role.USER,
    "AI_RESPONSE": Role.ASSISTANT,
    "TOOL_CALL": Role.TOOL_CALL,
    "TOOL_RESULT": Role.TOOL_RESULT,
    "ERROR": Role.ERROR,
    "SYSTEM": Role.SYSTEM,
}
# Tool rows have no content of their own; the input and output are in these columns.
_PAYLOADS = {Role.TOOL_CALL: "tool_input", Role.TOOL_RESULT: "tool_output"}

_SESSION_COLUMNS = (
    "id",
    "title",
    "deleted_at",
    "created_at",
    "updated_at",
    "compacted_summary",
    "compact_boundary_timestamp",
)
_MESSAGE_COLUMNS = (
    "id",
    "type",
    "content",
    "tool_call_id",
    "tool_name",
    "tool_input",
    "tool_output",
    "created_at",
)


class OneClaw:
    """``oneclaw.db`` of OneClaw.

    Tables and columns as in the Room schemas 2 to 12 of github.com/GNHua/oneclaw
    (2026-03). A session that was moved to the app's trash is not read.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"sessions", "messages"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name.startswith("oneclaw")
            and path.suffix == ".db"
            and head.startswith(b"SQLite format 3\0")
        )

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        db.create_scalar_function("backstory_checksum", _checksum, deterministic=True)
        states = _message_states(db)
        attached = _attachment_states(db)
        for session in iter_rows(db, "sessions", _SESSION_COLUMNS):
            session_id = as_text(session["id"])
            if session_id is None:
                continue
            if session["deleted_at"] is not None:
                yield Conversation(session_id, "", is_deleted=True)
                continue
            seen = [str(session[name]) for name in _SESSION_COLUMNS]
            yield Conversation(
                session_id,
                content_id(
                    *seen, states.get(session_id, ""), attached.get(session_id, "")
                ),
            )

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        for session in iter_rows(
            db,
            "sessions",
            _SESSION_COLUMNS,
            rest="WHERE id = ?",
            params=(session_id,),
        ):
            yield SessionFacts(
                session_id,
                title=as_text(session["title"]),
                started=origin.moment(session["created_at"]),
            )
            yield from report_long(session, f"the session {session_id}")
            yield from _messages(db, session_id, session, origin)


def _message_states(db: apsw.Connection) -> dict[str, str]:
    """For each session, text that changes when any of its messages does.

    No column says when a message was changed, so checksums of all columns are added up.
    """
    texts = ("id", "type", "content", "tool_name", "tool_input", "tool_output")
    rows = db.execute(
        f"""
        WITH checked AS MATERIALIZED (
          SELECT session_id, rowid AS place,
                 backstory_checksum({", ".join(map(lenient, texts))}) AS checksum
            FROM messages)
        SELECT {lenient("session_id")}, COUNT(*), MAX(place), SUM(checksum)
          FROM checked
         GROUP BY session_id
        """
    )
    return {str(decode(session_id)): repr(state) for session_id, *state in rows}


def _checksum(*values: object) -> int:
    checksum = 0
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        checksum = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), checksum))
    return checksum


def _attachment_states(db: apsw.Connection) -> dict[str, str]:
    """For each session, text that changes when files are added or renamed."""
    if "attachments" not in list_tables(db):
        return {}
    rows = db.execute(
        f"""
        SELECT {lenient("messages.session_id")}, COUNT(*), MAX(attachments.rowid),
               SUM(backstory_checksum({lenient("attachments.type")},
                                      {lenient("attachments.file_name")}))
          FROM attachments JOIN messages ON messages.id = attachments.message_id
         GROUP BY messages.session_id
        """
    )
    return {str(decode(session_id)): repr(state) for session_id, *state in rows}


def _messages(
    db: apsw.Connection, session_id: str, session: JsonObject, origin: Origin
) -> Iterator[Item]:
    """The messages in order, with the summary of older ones where it was made."""
    marks = _attachment_marks(db, session_id)
    summary = _summary(session_id, session, origin)
    for row in iter_rows(
        db,
        "messages",
        _MESSAGE_COLUMNS,
        rest="WHERE session_id = ? ORDER BY created_at, rowid",
        params=(session_id,),
    ):
        sent = origin.moment(row["created_at"])
        if summary and summary.sent and sent and sent.at > summary.sent.at:
            yield summary
            summary = None
        yield from _message(session_id, row, marks, origin)
    if summary:
        yield summary


def _summary(session_id: str, session: JsonObject, origin: Origin) -> NewMessage | None:
    """A summary, identified by its boundary, so that no summary replaces another."""
    text = as_text(session["compacted_summary"])
    if text is None:
        return None
    boundary = session["compact_boundary_timestamp"]
    return NewMessage(
        session_id,
        f"summary-{boundary}",
        Role.SUMMARY,
        text,
        sent=origin.moment(boundary),
    )


def _message(
    session_id: str, row: JsonObject, marks: dict[str, list[str]], origin: Origin
) -> Iterator[Item]:
    native_id = as_text(row["id"])
    role = _ROLES.get(as_text(row["type"]) or "")
    if native_id is None:
        yield Problem("a message without an id")
        return
    if role is None:
        yield unknown_record(row["type"], None)
        return
    yield from report_long(row, f"the message {native_id}")
    text = as_text(row["content"])
    if text is None and role in _PAYLOADS:
        text = as_text(row[_PAYLOADS[role]]) or ""
    parts = [text] if text is not None else []
    parts += marks.get(native_id, [])
    if not parts:
        return
    yield NewMessage(
        session_id,
        native_id,
        role,
        "\n".join(parts),
        as_text(row["tool_name"]),
        as_text(row["tool_call_id"]),
        origin.moment(row["created_at"]),
    )


def _attachment_marks(db: apsw.Connection, session_id: str) -> dict[str, list[str]]:
    """For each message with files, a mark for every one of them."""
    marks: dict[str, list[str]] = {}
    if "attachments" not in list_tables(db):
        return marks
    for row in iter_rows(
        db,
        "attachments",
        ("message_id", "type", "file_name"),
        rest="""
            WHERE message_id IN (SELECT id FROM messages WHERE session_id = ?)
            ORDER BY created_at, rowid
        """,
        params=(session_id,),
    ):
        kind = (as_text(row["type"]) or "file").lower()
        mark = f"[{kind}: {row['file_name']}]" if row["file_name"] else f"[{kind}]"
        marks.setdefault(str(row["message_id"]), []).append(mark)
    return marks
