"""Qwen Code: one JSONL file per session or subagent; in older versions, a document."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Memo,
    Origin,
    ReadBeside,
    Record,
    first_records,
    unknown_record,
)
from backstory.ingest.parsing.gemini_messages import (
    is_by_qwen,
    is_document,
    parse_document,
    parts_text,
    result_text,
)
from backstory.ingest.parsing.json_documents import read_object
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Role, SessionFacts

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool_result": Role.TOOL_RESULT,
}
# The program's records about itself. What was rewound or branched off was said, too.
_NOT_SAID = frozenset(
    {
        "agent_bootstrap",
        "agent_retry",
        "agent_session_ready",
        "at_command",
        "attribution_snapshot",
        "branch_checkpoint",
        "file_history_snapshot",
        "goal_state",
        "goal_turn_end",
        "omni_recall",
        "parent_session",
        "rewind",
        "session_approval_mode",
        "session_artifact_event",
        "session_artifact_snapshot",
        "session_execution_engine",
        "session_model",
        "session_notes",
        "session_source",
        "session_sources_snapshot",
        "turn_result",
        "user_text_elements",
    }
)
# What the program says in the person's name.
_BY_PROGRAM = frozenset({"system", "goal_control", "goal_runtime"})
# Between these two are the contents of files that the person named.
_FILES_BEGIN = "\n--- Content from referenced files ---"
_FILES_END = "\n--- End of content ---"
_REMINDER = re.compile(r"\s*<system-reminder>.*</system-reminder>\s*", re.DOTALL)
_SNAPSHOT = "<state_snapshot>"


class QwenCode:
    """Session files of Qwen Code.

    Shape seen in 0.5.0, 0.15.10 and 0.24.4 (2026-11); titles, compression, commands and
    branches as https://github.com/QwenLM/qwen-code has them in
    ``chatRecordingService.ts`` (read 2026-11).
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".jsonl" and any(
            "sessionId" in record
            and "uuid" in record
            and ("systemPayload" in record or "parts" in as_object(record["message"]))
            for record in first_records(head)
            if "systemPayload" in record or "message" in record
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        line, value = record
        kind = as_text(value.get("type"))
        if (
            as_text(value.get("sessionId")) is None
            or as_text(value.get("uuid")) is None
        ):
            yield unknown_record(kind, line)
        elif "forkedFrom" in value:
            # A copy: the message is in the session that this one was branched from.
            yield from _facts(value, origin, memo)
        elif kind == "system":
            yield from _event(value, line, origin, memo)
        elif kind in _ROLES:
            yield from _facts(value, origin, memo)
            yield from _messages(value, _ROLES[kind], origin)
        else:
            yield unknown_record(kind, line)


class QwenCodeAgentMeta:
    """What a subagent of Qwen Code was asked to do, in a few words.

    Shape seen in 0.24.4 (2026-11).
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name.startswith("agent-")
            and path.name.endswith(".meta.json")
            and b'"parentSessionId"' in head
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        meta, problem = read_object(file)
        if problem is not None:
            yield problem
        session_id, agent_id = meta.get("parentSessionId"), meta.get("agentId")
        if as_text(session_id) and as_text(agent_id):
            yield SessionFacts(
                f"{session_id}/{agent_id}", title=as_text(meta.get("description"))
            )


class QwenCodeDocument:
    """Sessions of Qwen Code up to 0.1, written as Gemini CLI wrote them then.

    Shape seen in 0.1.4 (2026-11). Their folder is only known by its hash.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".json" and is_document(head) and is_by_qwen(head)

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        return parse_document(file, origin)


# -- records --------------------------------------------------------------------------


def _session_id(value: JsonObject) -> str:
    """The id of a session, or of a subagent within it."""
    agent_id = as_text(value.get("agentId"))
    if value.get("isSidechain") and agent_id:
        return f"{value['sessionId']}/{agent_id}"
    return str(value["sessionId"])


def _facts(value: JsonObject, origin: Origin, memo: Memo) -> Iterator[Item]:
    """What a record says about its session, before the first message of it."""
    session_id = _session_id(value)
    if memo.get("told") == session_id:
        return
    memo["told"] = session_id
    is_subagent = session_id != value["sessionId"]
    yield SessionFacts(
        session_id,
        project=as_text(value.get("cwd")),
        git_branch=as_text(value.get("gitBranch")),
        parent_id=value["sessionId"] if is_subagent else None,
        started=origin.moment(value.get("timestamp")),
    )


def _event(value: JsonObject, line: int, origin: Origin, memo: Memo) -> Iterator[Item]:
    """What the program recorded besides the messages."""
    kind = as_text(value.get("subtype"))
    payload = as_object(value.get("systemPayload"))
    session_id = _session_id(value)
    role, text = Role.SYSTEM, None
    match kind:
        case "custom_title":
            yield from _facts(value, origin, memo)
            yield SessionFacts(session_id, title=as_text(payload.get("customTitle")))
        case "chat_compression":
            role, text = Role.SUMMARY, _summary(payload.get("compressedHistory"))
        case "slash_command":
            is_hidden = payload.get("sentToModel") or payload.get("hiddenInvocation")
            if payload.get("phase") == "invocation" and not is_hidden:
                text = as_text(payload.get("rawCommand"))
        case "ui_telemetry":
            role, text = Role.ERROR, _failure(as_object(payload.get("uiEvent")))
        case _ if kind not in _NOT_SAID:
            yield unknown_record(kind, line)
    if text is not None:
        yield from _facts(value, origin, memo)
        sent = origin.moment(value.get("timestamp"))
        yield NewMessage(session_id, value["uuid"], role, text, sent=sent)


def _summary(history: object) -> str | None:
    """The summary in the messages that replace a history; the rest are copies."""
    texts = [
        parts_text(as_object(content).get("parts"), Role.SUMMARY)
        for content in as_list(history)
    ]
    marked = (text for text in texts if _SNAPSHOT in text)
    return next(marked, texts[0] if texts else None) or None


def _failure(event: JsonObject) -> str | None:
    """Why a request of the session itself failed."""
    is_failure = event.get("event.name") == "qwen-code.api_error"
    if not is_failure or event.get("subagent_name"):
        return None
    return as_text(event.get("error_message")) or as_text(event.get("error"))


# -- messages -------------------------------------------------------------------------


def _messages(value: JsonObject, role: Role, origin: Origin) -> Iterator[Item]:
    """The text of a message, then its calls or results."""
    session_id, uuid = _session_id(value), value["uuid"]
    sent = origin.moment(value.get("timestamp"))
    parts = as_list(as_object(value.get("message")).get("parts"))
    if role is not Role.TOOL_RESULT:
        if role is Role.USER and as_text(value.get("provenance")) in _BY_PROGRAM:
            role = Role.SYSTEM
        text = _text(value, parts, role)
        if text.strip():
            yield NewMessage(session_id, uuid, role, text, sent=sent)
    for index, part in enumerate(parts):
        match part:
            case {"functionCall": dict(call)}:
                found, said = Role.TOOL_CALL, compact_json(call.get("args") or {})
            case {"functionResponse": dict(call)}:
                found, said = Role.TOOL_RESULT, result_text([part]) or ""
            case _:
                continue
        call_id, name = as_text(call.get("id")), as_text(call.get("name"))
        native_id = f"{uuid}/{index}"
        yield NewMessage(session_id, native_id, found, said, name, call_id, sent)


def _text(value: JsonObject, parts: list[object], role: Role) -> str:
    """The text of a message: what was typed, if the record says so."""
    shown = as_text(as_object(value.get("systemPayload")).get("displayText"))
    if shown is not None and role in (Role.USER, Role.SYSTEM):
        return shown
    return parts_text(list(_said(parts)) if role is Role.USER else parts, role)


def _said(parts: list[object]) -> Iterator[object]:
    """The parts of a prompt, without reminders and files that were named in it."""
    is_file = False
    for part in parts:
        text = as_object(part).get("text")
        if text == _FILES_BEGIN:
            is_file = True
        elif text == _FILES_END:
            is_file = False
        elif not is_file and not _REMINDER.fullmatch(as_text(text) or ""):
            yield part
