"""Shelley: a coding agent that keeps its conversations in one SQLite database."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Literal

import apsw

from backstory.ingest.importers.base import (
    Conversation,
    Origin,
    unknown_record,
)
from backstory.ingest.parsing.json_documents import parse_json
from backstory.ingest.parsing.rows import (
    decode,
    iter_rows,
    lenient,
    report_long,
)
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id
from backstory.values.moments import Moment, parse_moment

_ROLES = {
    "user": Role.USER,
    "agent": Role.ASSISTANT,
    "tool": Role.TOOL_RESULT,
    "error": Role.ERROR,
}
# The system prompt is the program's own text; the others are notices about it.
_NOT_CONVERSATION = frozenset({"system", "gitinfo", "warning", "modelchange", "slug"})


class _Type(IntEnum):
    """What the number in ``Type`` of a content item means."""

    TEXT = 2
    THINKING = 3
    REDACTED_THINKING = 4
    TOOL_USE = 5
    TOOL_RESULT = 6
    SERVER_TOOL_USE = 7
    SEARCH_RESULTS = 8
    SEARCH_RESULT = 9


_CONVERSATION_COLUMNS = (
    "conversation_id",
    "slug",
    "created_at",
    "updated_at",
    "cwd",
    "parent_conversation_id",
)
_MESSAGE_COLUMNS = (
    "message_id",
    "type",
    "llm_data",
    "user_data",
    "created_at",
    "forked_from_message_id",
)


class Shelley:
    """``shelley.db`` of Shelley.

    Tables, columns and content items as in github.com/boldsoftware/shelley: ``db/``,
    ``llm/llm.go``, ``server/distill_pi.go`` (read 2026-11). Rows that were copied from
    another conversation, or carried over when this one was compacted, are not read
    a second time.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"conversations", "messages"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name.startswith("shelley")
            and path.suffix == ".db"
            and head.startswith(b"SQLite format 3\0")
        )

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        sizes = _sizes(db)
        for row in iter_rows(db, "conversations", _CONVERSATION_COLUMNS):
            conversation_id = as_text(row["conversation_id"])
            if conversation_id is not None:
                seen = [str(row[name]) for name in _CONVERSATION_COLUMNS]
                size = sizes.get(conversation_id, "")
                yield Conversation(conversation_id, content_id(*seen, size))

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        for row in iter_rows(
            db,
            "conversations",
            _CONVERSATION_COLUMNS,
            rest="WHERE conversation_id = ?",
            params=(session_id,),
        ):
            yield SessionFacts(
                session_id,
                title=as_text(row["slug"]),
                project=as_text(row["cwd"]),
                parent_id=as_text(row["parent_conversation_id"]),
                started=_moment(row["created_at"]),
            )
        for row in iter_rows(
            db,
            "messages",
            _MESSAGE_COLUMNS,
            rest="WHERE conversation_id = ? ORDER BY sequence_id, rowid",
            params=(session_id,),
        ):
            yield from _row(session_id, row)


def _sizes(db: apsw.Connection) -> dict[str, str]:
    """For each conversation, text that changes when any of its messages does."""
    rows = db.execute(
        f"""
        WITH sizes AS MATERIALIZED (
          SELECT conversation_id, sequence_id, rowid AS place,
                 COALESCE(octet_length(llm_data), 0)
                 + COALESCE(octet_length(user_data), 0) AS size
            FROM messages)
        SELECT {lenient("conversation_id")}, COUNT(*), MAX(place),
               {lenient("MAX(sequence_id)")}, SUM(size)
          FROM sizes
         GROUP BY conversation_id
        """
    )
    return {str(decode(conversation_id)): repr(size) for conversation_id, *size in rows}


def _moment(value: object) -> Moment | None:
    """Read a time of SQLite's CURRENT_TIMESTAMP, which is UTC and has no zone."""
    return parse_moment(value, _as_utc)


def _as_utc(naive: datetime) -> datetime:
    return naive.replace(tzinfo=UTC)


# -- rows -----------------------------------------------------------------------------


def _row(session_id: str, row: JsonObject) -> Iterator[Item]:
    native_id, kind = as_text(row["message_id"]), as_text(row["type"])
    if kind in _NOT_CONVERSATION or row["forked_from_message_id"] is not None:
        return
    if kind not in _ROLES:
        yield unknown_record(row["type"], None)
        return
    yield from report_long(row, f"the message {native_id}")
    user_data = _load(row["user_data"])
    notes = as_object(user_data)
    if notes.get("distill_status") or notes.get("compaction_carried"):
        return
    llm_data = as_object(_load(row["llm_data"]))
    sent = _moment(row["created_at"])
    if native_id is None:
        yield Problem("a message without an id")
        return
    if notes.get("distilled"):
        text = as_text(notes.get("distillation_content"))
        if text is not None:
            yield NewMessage(session_id, native_id, Role.SUMMARY, text, sent=sent)
            return
    role = Role.ERROR if llm_data.get("ErrorType") else _ROLES[kind]
    content = llm_data.get("Content")
    if not isinstance(content, list):
        text = as_text(user_data) or as_text(notes.get("text"))
        if text is None:
            yield Problem(f"the message {native_id} has no content that can be read")
        else:
            yield NewMessage(session_id, native_id, role, text, sent=sent)
        return
    for index, item in enumerate(content):
        found = _content(as_object(item), role)
        if isinstance(found, Problem):
            yield found
        elif found is not None:
            part_role, text, tool_name, call_id = found
            # The first part keeps the row's own id, so that it can be looked up by it.
            part_id = native_id if index == 0 else f"{native_id}/{index}"
            yield NewMessage(
                session_id, part_id, part_role, text, tool_name, call_id, sent
            )


def _load(value: object) -> object:
    """The JSON in a column; None if there is none, or it cannot be read."""
    try:
        loaded: object = parse_json(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return loaded


# -- content items --------------------------------------------------------------------


def _content(
    item: JsonObject, role: Role
) -> tuple[Role, str, str | None, str | None] | Problem | None:
    """Role, text, tool name and call id of a content item; None for thinking."""
    match item.get("Type"):
        case _Type.TEXT:
            text = _text(item)
            return (role, text, None, None) if text else None
        case _Type.THINKING | _Type.REDACTED_THINKING:
            return None
        case _Type.TOOL_USE | _Type.SERVER_TOOL_USE:
            text = compact_json(item.get("ToolInput"))
            tool_name, call_id = as_text(item.get("ToolName")), as_text(item.get("ID"))
            return Role.TOOL_CALL, text, tool_name, call_id
        case _Type.TOOL_RESULT | _Type.SEARCH_RESULTS:
            parts = [_text(as_object(part)) for part in as_list(item.get("ToolResult"))]
            text = "\n".join(part for part in parts if part)
            return Role.TOOL_RESULT, text, None, as_text(item.get("ToolUseID"))
        case _Type.SEARCH_RESULT:
            return Role.TOOL_RESULT, _text(item), None, None
        case kind:
            return unknown_record(kind, None)


def _text(item: JsonObject) -> str:
    """The words of an item: its text, a page it found, or a mark for a picture."""
    if item.get("Type") == _Type.SEARCH_RESULT:
        found = (as_text(item.get("Title")), as_text(item.get("URL")))
        return "\n".join(part for part in found if part)
    text = as_text(item.get("Text"))
    media = as_text(item.get("MediaType"))
    mark = f"[{media.partition('/')[0]}]" if media else None
    return "\n".join(part for part in (text, mark) if part)
