"""GitHub Copilot CLI: one event log per session, and a small file that names it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

import yaml

from backstory.ingest.importers.base import (
    Memo,
    Origin,
    ReadBeside,
    Record,
    unknown_record,
)
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
    plain_text,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts

# Records about the program, not the conversation. system.message is the vendor's
# prompt; hooks, notifications and skills are what is put beside the person's words.
_NOT_CONVERSATION = frozenset(
    {
        "assistant.idle",
        "assistant.intent",
        "assistant.message_delta",
        "assistant.message_start",
        "assistant.reasoning",
        "assistant.reasoning_delta",
        "assistant.server_tool_progress",
        "assistant.streaming_delta",
        "assistant.tool_call_delta",
        "assistant.turn_end",
        "assistant.turn_start",
        "assistant.usage",
        "capabilities.changed",
        "commands.changed",
        "factory.run_settled",
        "factory.run_started",
        "factory.run_updated",
        "model.call_failure",
        "model.call_finished",
        "model.model_call_failure",
        "pending_messages.modified",
        "session.auto_mode_resolved",
        "session.autopilot_objective_changed",
        "session.background_tasks_changed",
        "session.binary_asset",
        "session.compaction_start",
        "session.context_changed",
        "session.context_cleared",
        "session.custom_agents_updated",
        "session.custom_notification",
        "session.extensions_loaded",
        "session.idle",
        "session.mode_changed",
        "session.mode_notice_delivered",
        "session.model_change",
        "session.permissions_changed",
        "session.plan_changed",
        "session.remote_steerable_changed",
        "session.session_limits_changed",
        "session.shutdown",
        "session.skills_loaded",
        "session.snapshot_rewind",
        "session.task_complete",
        "session.todos_changed",
        "session.tools_updated",
        "session.truncation",
        "session.usage_checkpoint",
        "session.usage_info",
        "session.usage_record",
        "session.workspace_file_changed",
        "skill.context_delivered_ref",
        "skill.invoked",
        "subagent.completed",
        "subagent.configured",
        "subagent.deselected",
        "subagent.selected",
        "system.message",
        "system.notification",
        "tool.execution_partial_result",
        "tool.execution_progress",
        "tool.search_activated",
    }
)
_NOT_CONVERSATION_FAMILIES = (
    "assistant.fusion_",
    "auto_mode_switch.",
    "command.",
    "elicitation.",
    "exit_plan_mode.",
    "external_tool.",
    "hook.",
    "mcp.",
    "mcp_app.",
    "permission.",
    "sampling.",
    "session.canvas",
    "session.extensions",
    "session.fusion_",
    "session.managed_settings_",
    "session.mcp_",
    "session.schedule_",
    "session_limits_exhausted.",
    "user_input.",
)
# Which field of an event is a text worth keeping, and who says it.
_SAYINGS = {
    "session.compaction_complete": ("summaryContent", Role.SUMMARY),
    "session.error": ("message", Role.ERROR),
    "session.handoff": ("summary", Role.SUMMARY),
    "session.info": ("message", Role.SYSTEM),
    "session.warning": ("message", Role.SYSTEM),
    "subagent.failed": ("error", Role.ERROR),
}

MAX_WORKSPACE_BYTES = 256 * 1024


class CopilotCli:
    """Event logs of Copilot CLI.

    Shape seen in 1.0.102 (2026-11). Compaction, errors, hand-offs, aborts and failed
    tools as https://github.com/github/copilot-sdk describes them in
    ``session-events.ts`` (read 2026-11).
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        first = head.partition(b"\n")[0]
        return (
            path.suffix == ".jsonl"
            and b'"session.start"' in first
            and any(mark in first for mark in (b'"copilotVersion"', b'"copilot-agent"'))
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        line, value = record
        kind = as_text(value.get("type")) or ""
        if kind in ("session.start", "session.resume"):
            yield from _start(value, origin, memo)
        elif kind in _NOT_CONVERSATION or kind.startswith(_NOT_CONVERSATION_FAMILIES):
            return
        else:
            event = _Event(kind, value, line, origin, memo)
            yield from event.items()


def _start(record: JsonObject, origin: Origin, memo: Memo) -> Iterator[Item]:
    data = as_object(record.get("data"))
    context = as_object(data.get("context"))
    session_id = as_text(data.get("sessionId")) or _session_id(origin, memo)
    memo["session"] = session_id
    memo.setdefault("project", as_text(context.get("cwd")))
    memo.setdefault("git_branch", as_text(context.get("branch")))
    _tell(session_id, memo)
    yield SessionFacts(
        session_id,
        project=memo["project"],
        git_branch=memo["git_branch"],
        started=origin.moment(data.get("startTime")),
    )


def _session_id(origin: Origin, memo: Memo) -> str:
    """The id that the log began with, or else the one in its path."""
    place = origin.path
    by_place = place.parent.name if place.name == "events.jsonl" else place.stem
    return memo.get("session") or by_place or "copilot"


def _tell(session_id: str, memo: Memo) -> bool:
    """Note that a session has been named; returns whether that is new."""
    told = memo.setdefault("told", [])
    if session_id in told:
        return False
    told.append(session_id)
    return True


class _Event:
    """One event of a session or of a subagent, which is a session of its own."""

    def __init__(
        self, kind: str, record: JsonObject, line: int, origin: Origin, memo: Memo
    ) -> None:
        self.kind = kind
        self.data = as_object(record.get("data"))
        self.line = line
        self.memo = memo
        self.native_id = as_text(record.get("id"))
        self.sent = origin.moment(record.get("timestamp"))
        self.main_id = _session_id(origin, memo)
        self.agent_id = as_text(record.get("agentId"))
        self.session_id = self.main_id
        if self.agent_id is not None:
            # An agent's id may not be unique beyond its session.
            self.session_id = f"{self.main_id}/{self.agent_id}"

    def items(self) -> Iterator[Item]:
        match self.kind:
            case "subagent.started":
                yield from self._facts()
            case "session.title_changed":
                yield from self._facts()
                yield SessionFacts(
                    self.session_id, title=as_text(self.data.get("title"))
                )
            case "user.message":
                yield from self._user_message()
            case "assistant.message":
                yield from self._assistant_message()
            case "tool.user_requested" | "tool.execution_start":
                yield from self._call(self.data, self.data.get("toolName"))
            case "tool.execution_complete":
                yield from self._result()
            case "abort":
                reason = as_text(self.data.get("reason")) or "no reason given"
                yield from self._say(Role.SYSTEM, f"[aborted: {reason}]")
            case _ if self.kind in _SAYINGS:
                field, role = _SAYINGS[self.kind]
                yield from self._say(role, _message_text(self.data.get(field)))
            case _:
                yield unknown_record(self.kind, self.line)

    def _facts(self) -> Iterator[Item]:
        if not _tell(self.session_id, self.memo):
            return
        is_main = self.agent_id is None
        yield SessionFacts(
            self.session_id,
            title=None
            if is_main
            else as_text(self.data.get("agentDescription"))
            or as_text(self.data.get("agentDisplayName")),
            project=self.memo.get("project"),
            git_branch=self.memo.get("git_branch"),
            parent_id=None if is_main else self.main_id,
        )

    def _say(self, role: Role, text: str | None, part: str = "") -> Iterator[Item]:
        if text is None:
            return
        if self.native_id is None:
            yield Problem(f"an event of type {self.kind} without an id", self.line)
            return
        yield from self._facts()
        yield NewMessage(
            self.session_id, self.native_id + part, role, text, sent=self.sent
        )

    def _user_message(self) -> Iterator[Item]:
        role = self._writer()
        if role is None:
            return
        yield from self._say(role, as_text(self.data.get("content")))
        for index, attachment in enumerate(as_list(self.data.get("attachments"))):
            kind = as_text(as_object(attachment).get("type")) or "attachment"
            yield from self._say(role, f"[{kind}]", f"/{index}")

    def _writer(self) -> Role | None:
        """Who wrote a user message: a person, an agent, the program, or nobody."""
        source = as_text(self.data.get("source")) or ""
        if source.startswith("skill-"):
            return None
        if self.data.get("isAutopilotContinuation") is True or source == "system":
            return Role.SYSTEM
        if source.startswith("agent-") and self.agent_id is None:
            return Role.SYSTEM
        return Role.USER

    def _assistant_message(self) -> Iterator[Item]:
        yield from self._say(Role.ASSISTANT, as_text(self.data.get("content")))
        for request in as_list(self.data.get("toolRequests")):
            if isinstance(request, dict):
                yield from self._call(request, request.get("name"))

    def _call(self, call: JsonObject, name: object) -> Iterator[Item]:
        """A tool call, written when the model asks for it and again when it runs."""
        call_id = as_text(call.get("toolCallId"))
        if call_id is None:
            yield Problem("a tool call without an id", self.line)
            return
        running = self.memo.setdefault("running", {})
        if call_id in running:
            return
        running[call_id] = as_text(name)
        yield from self._facts()
        yield NewMessage(
            self.session_id,
            call_id,
            Role.TOOL_CALL,
            compact_json(call.get("arguments")),
            running[call_id],
            call_id,
            self.sent,
        )

    def _result(self) -> Iterator[Item]:
        call_id = as_text(self.data.get("toolCallId"))
        text = _message_text(self.data.get("error"))
        if text is None:
            text = _result_text(self.data.get("result"))
        if self.native_id is None:
            yield Problem("a tool result without an id", self.line)
            return
        name = self.memo.setdefault("running", {}).pop(call_id or "", None)
        yield from self._facts()
        yield NewMessage(
            self.session_id,
            self.native_id,
            Role.TOOL_RESULT,
            text,
            name,
            call_id,
            self.sent,
        )


def _message_text(value: object) -> str | None:
    """The text of a message that is a string or an object."""
    return as_text(as_object(value).get("message")) or as_text(value)


def _result_text(result: object) -> str:
    match result:
        case {"content": str(text)}:
            return text
        case {"contents": list(blocks)}:
            return plain_text(blocks)
        case None:
            return ""
        case _:
            return compact_json(result)


class CopilotCliWorkspace:
    """The file beside an event log that names the session (seen in 1.0.102, 2026-11).

    Earlier versions had ``summary`` where there is ``name`` now.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.name == "workspace.yaml" and all(
            b"\n" + field + b": " in b"\n" + head
            for field in (b"id", b"cwd", b"summary_count")
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        content = file.read(MAX_WORKSPACE_BYTES + 1)
        if not content.strip():
            return
        if len(content) > MAX_WORKSPACE_BYTES:
            yield Problem(f"a workspace of more than {MAX_WORKSPACE_BYTES:,} bytes")
            return
        try:
            # The base loader reads every value as text: a session may be called "2026"
            # or "yes".
            workspace = as_object(yaml.load(content, Loader=yaml.BaseLoader))
        except (yaml.YAMLError, ValueError, RecursionError) as exc:
            reason = getattr(exc, "problem", None) or "it cannot be understood"
            yield Problem(f"not valid YAML ({reason})")
            return
        session_id = as_text(workspace.get("id"))
        if session_id is None:
            yield Problem("a workspace without an id")
            return
        yield SessionFacts(
            session_id,
            title=as_text(workspace.get("name")) or as_text(workspace.get("summary")),
            project=as_text(workspace.get("cwd")),
            git_branch=as_text(workspace.get("branch")),
            started=origin.moment(workspace.get("created_at")),
        )
