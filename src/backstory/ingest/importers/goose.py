"""Goose: all sessions in one SQLite database; in older versions, one JSONL file each.

Goose gives its messages new ids when it moves them from a file into its database, and
when the database gets a newer schema. So a message is identified by its time and its
text, or by its time and the id of a tool call, which stay the same.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import apsw

from backstory.ingest.importers.base import (
    Conversation,
    Memo,
    Origin,
    ReadBeside,
    Record,
    first_records,
    made_id,
    make_unique,
    unknown_record,
)
from backstory.ingest.parsing.databases import list_columns
from backstory.ingest.parsing.json_documents import parse_json
from backstory.ingest.parsing.rows import decode, iter_rows, lenient, report_long
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
    plain_text,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id
from backstory.values.moments import Moment
from backstory.values.structs import Struct, field

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
# Thinking, requests for permission, and what the program tells the person.
_NOT_SAID = frozenset(
    {
        "actionRequired",
        "contextLengthExceeded",
        "conversationCompacted",
        "reasoning",
        "redactedThinking",
        "summarizationRequested",
        "systemNotification",
        "thinking",
        "toolConfirmationRequest",
    }
)
# What a session is called until it has a name.
_NO_NAME = re.compile(r"CLI Session|Delegated task|New Chat|New session( \d+)?")
# What Goose tells the model, in the model's name, after it has compacted a session.
_AFTER_SUMMARY = "The previous message contains a summary"


class Goose:
    """The database of Goose.

    Tables, tools, subagents and compaction seen in 1.52.0 (2026-11); the other kinds of
    content as https://github.com/block/goose has them in ``conversation/message.rs``
    (read 2026-11).
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"sessions", "messages", "schema_version"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        is_database = head.startswith(b"SQLite format 3\0")
        return path.name == "sessions.db" and is_database

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        known = list_columns(db, "sessions")
        about = ("name", "description", "working_dir", "parent_session_id")
        chosen = [lenient(f"sessions.{each}") for each in about if each in known]
        is_hidden = "session_type = 'hidden'" if "session_type" in known else "FALSE"
        rows = db.execute(
            f"""
            SELECT {lenient("sessions.id")}, {is_hidden}, {", ".join(chosen)},
                   written.count, written.newest, written.size
              FROM sessions
              LEFT JOIN (SELECT session_id, COUNT(*) AS count, MAX(id) AS newest,
                                SUM(octet_length(content_json)) AS size
                           FROM messages GROUP BY session_id) AS written
                     ON written.session_id = sessions.id
             ORDER BY sessions.created_at, sessions.id
            """
        )
        for found, hidden, *state in rows:
            session_id = as_text(decode(found))
            if session_id is not None and not hidden:
                version = content_id(*(str(decode(each)) for each in state))
                yield Conversation(session_id, version)

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        yield from _facts(db, session_id)
        session = _Session(session_id, origin)
        for row in iter_rows(
            db,
            "messages",
            ("id", "role", "content_json", "created_timestamp", "metadata_json"),
            rest="WHERE session_id = ? ORDER BY created_timestamp, id",
            params=(session_id,),
        ):
            yield from report_long(row, f"the message {row['id']}")
            content = _decode(row["content_json"])
            if not isinstance(content, list):
                yield Problem(f"the message {row['id']} has no list of contents")
                continue
            message = {
                "role": row["role"],
                "created": row["created_timestamp"],
                "content": content,
                "metadata": _decode(row["metadata_json"]),
            }
            yield from session.take(message)


class GooseFile:
    """Sessions of Goose from before its database (1.10), one JSONL file each.

    As ``session/legacy.rs`` of https://github.com/block/goose reads them (2025, read
    2026-11), and as 1.52.0 moved one made by hand into its database.
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        first = next(first_records(head, 1), {})
        return path.suffix == ".jsonl" and _is_header(first)

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        line, value = record
        session_id = origin.path.stem
        if _is_header(value):
            memo["told"] = True
            yield SessionFacts(
                session_id,
                title=as_text(value.get("description")),
                project=as_text(value.get("working_dir")),
            )
            return
        if as_text(value.get("role")) not in _ROLES:
            yield unknown_record(value.get("role") or value.get("type"), line)
            return
        if "told" not in memo:
            memo["told"] = True
            yield SessionFacts(session_id)
        yield from _Session(session_id, origin, memo).take(value)


def _is_header(value: JsonObject) -> bool:
    return "working_dir" in value and "description" in value and "role" not in value


def _decode(text: object) -> object:
    try:
        return parse_json(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _facts(db: apsw.Connection, session_id: str) -> Iterator[Item]:
    for row in iter_rows(
        db,
        "sessions",
        ("name", "description", "working_dir", "parent_session_id"),
        rest="WHERE id = ?",
        params=(session_id,),
    ):
        name = as_text(row["name"]) or as_text(row["description"])
        yield SessionFacts(
            session_id,
            title=None if name and _NO_NAME.fullmatch(name) else name,
            project=as_text(row["working_dir"]),
            parent_id=as_text(row["parent_session_id"]),
        )


# -- messages -------------------------------------------------------------------------


class _Session(Struct):
    """One pass over messages of a session; ``memo`` may be kept for the next one."""

    session_id: str
    origin: Origin
    memo: Memo = field(default_factory=dict)
    # The last text that the person does not see, and when it was written.
    unseen: tuple[str, Moment | None] = ("", None)

    def take(self, message: JsonObject) -> Iterator[Item]:
        role = _ROLES.get(as_text(message.get("role")) or "")
        if role is None:
            yield unknown_record(message.get("role"), None)
            return
        sent = self.origin.moment(message.get("created"))
        content = as_list(message.get("content"))
        about = as_object(message.get("metadata"))
        if about.get("userVisible") is False:
            yield from self._take_unseen(content, role, sent)
            return
        for block in content:
            yield from self._block(as_object(block), role, sent)

    def _take_unseen(
        self, content: list[object], role: Role, sent: Moment | None
    ) -> Iterator[Item]:
        """Context for the model alone, which is left out unless it is a summary."""
        text = plain_text(content)
        if role is Role.USER:
            self.unseen = text, sent
        elif _AFTER_SUMMARY in text and self.unseen[0]:
            summary, sent = self.unseen
            yield self._said(Role.SUMMARY, summary, sent)

    def _block(
        self, block: JsonObject, role: Role, sent: Moment | None
    ) -> Iterator[Item]:
        kind = as_text(block.get("type"))
        call_id = as_text(block.get("id"))
        match kind:
            case "text":
                text = as_text(block.get("text"))
                if text is not None:
                    head = f"Subagent ID: {self.session_id}\n\n"
                    yield self._said(role, text.removeprefix(head), sent)
            case "image":
                yield self._said(role, "[image]", sent)
            case "toolRequest" | "frontendToolRequest":
                call = as_object(as_object(block.get("toolCall")).get("value"))
                text = compact_json(call.get("arguments") or {})
                name = as_text(call.get("name"))
                yield self._said(Role.TOOL_CALL, text, sent, name, call_id)
            case "toolResponse":
                text = _result_text(as_object(block.get("toolResult")))
                yield self._said(Role.TOOL_RESULT, text, sent, None, call_id)
            case _ if kind not in _NOT_SAID:
                yield unknown_record(kind, None)

    def _said(
        self,
        role: Role,
        text: str,
        sent: Moment | None,
        tool_name: str | None = None,
        call_id: str | None = None,
    ) -> NewMessage:
        ordinal = self.memo["ordinal"] = self.memo.get("ordinal", 0) + 1
        native_id = made_id(self.session_id, role, call_id or text, sent, ordinal)
        native_id = make_unique(native_id, sent, self.memo)
        return NewMessage(
            self.session_id, native_id, role, text, tool_name, call_id, sent
        )


def _result_text(result: JsonObject) -> str:
    """What a tool gave back; older versions have its contents without an envelope."""
    value = result.get("value")
    if isinstance(value, list):
        return plain_text(value)
    if isinstance(value, dict):
        return plain_text(value.get("content"))
    return as_text(result.get("error")) or compact_json(value or "")
