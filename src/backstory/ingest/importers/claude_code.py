"""Claude Code: one JSONL file per session, subagents in files of their own."""

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
from backstory.ingest.parsing.json_documents import read_object
from backstory.text.json_values import (
    JsonObject,
    as_object,
    as_text,
    compact_json,
    plain_text,
)
from backstory.text.own_calls import is_own_tool_call
from backstory.text.private import drop_private
from backstory.values.history import (
    Item,
    MessageTitle,
    NewMessage,
    Problem,
    Role,
    SessionFacts,
)
from backstory.values.structs import Struct

# Records about the program, not the conversation. The api-request family and
# last-prompt repeat messages; attachments are what hooks and the program injected.
_NOT_CONVERSATION = frozenset(
    {
        "agent-color",
        "agent-setting",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "atis-latch",
        "attachment",
        "bridge-session",
        "cost-state",
        "file-history-delta",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "relocated",
        "started",
        "tag",
        "tools-used",
        "worktree-state",
    }
)
_PROGRAM_OUTPUT = ("<local-command-stdout>", "<local-command-stderr>")
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
# A title given by the person outranks one made by the program.
_TITLES = {
    "summary": ("summary", 1),
    "ai-title": ("aiTitle", 2),
    "agent-name": ("agentName", 3),
    "custom-title": ("customTitle", 4),
}
_KNOWN = {"user", "assistant", "system"} | _NOT_CONVERSATION | _TITLES.keys()


class ClaudeCode:
    """Session files of Claude Code (shape seen in 2.1.325, 2026-11)."""

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".jsonl" and any(
            as_text(record.get("type")) in _KNOWN
            and ("sessionId" in record or "leafUuid" in record)
            and not _is_by_qwen(record)
            for record in first_records(head)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        reading = _Reading(origin, memo)
        line, value = record
        kind = as_text(value.get("type"))
        if kind in ("user", "assistant"):
            yield from reading.message(value, line)
        elif kind == "system":
            yield from reading.system(value)
        elif kind in _TITLES:
            yield from reading.title(kind, value)
        elif kind not in _NOT_CONVERSATION:
            yield unknown_record(kind, line)


class _Reading(Struct):
    """One record, and what is known from those before it."""

    origin: Origin
    memo: Memo

    def message(self, record: JsonObject, line: int) -> Iterator[Item]:
        session_id = self._session_id(record)
        yield from self._facts(record, session_id)
        if record.get("isMeta"):
            return
        content = as_object(record.get("message")).get("content")
        uuid = as_text(record.get("uuid"))
        if uuid is None or not isinstance(content, str | list):
            yield Problem("a message without an id or without content", line)
            return
        sent = self.origin.moment(record.get("timestamp"))
        role = _role(record)
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for index, block in enumerate(content):
            found = _block(block, role)
            if found is None:
                continue
            block_role, text, tool_name, call_id = found
            if self._is_from_own_tool(block_role, text):
                continue
            # The first block keeps the record's own id, to be looked up by it.
            native_id = uuid if index == 0 else f"{uuid}/{index}"
            yield NewMessage(
                session_id, native_id, block_role, text, tool_name, call_id, sent
            )

    def system(self, record: JsonObject) -> Iterator[Item]:
        """What the program told the person; records for bookkeeping have no text."""
        session_id = self._session_id(record)
        yield from self._facts(record, session_id)
        text = as_text(record.get("content"))
        uuid = as_text(record.get("uuid"))
        if text is None or uuid is None or record.get("isMeta"):
            return
        is_error = record.get("level") == "error"
        role = Role.ERROR if is_error else Role.SYSTEM
        sent = self.origin.moment(record.get("timestamp"))
        yield NewMessage(session_id, uuid, role, text, sent=sent)

    def _is_from_own_tool(self, role: Role, text: str) -> bool:
        """Whether a text is what Backstory printed for a command of the person."""
        if role is not Role.USER:
            return False
        if text.lstrip().startswith("<bash-std"):
            return bool(self.memo.pop("recalls", False))
        command = text.removeprefix("<bash-input>")
        if command != text and is_own_tool_call(None, command):
            self.memo["recalls"] = True
        return False

    def title(self, kind: str, record: JsonObject) -> Iterator[Item]:
        field, rank = _TITLES[kind]
        title = as_text(record.get(field))
        leaf = as_text(record.get("leafUuid"))
        # The memo is stored on disk, too, so nothing private may be in it.
        title = drop_private(title) if title is not None else None
        if title is not None and leaf is not None:
            # It is the title of the session that ends with this record, which may be in
            # another file. Thinking comes first in a record, and is not a message.
            yield MessageTitle(leaf, title)
            yield MessageTitle(f"{leaf}/1", title)
            return
        if title is None or rank < self.memo.get("title_rank", 0):
            return
        self.memo["title_rank"] = rank
        if "session" in self.memo:
            yield SessionFacts(self._session_id(record), title=title)
        else:
            # Yielded with the other facts, once the folder is known.
            self.memo["title"] = title

    def _session_id(self, record: JsonObject) -> str:
        """A subagent's records carry its parent's id; its own is its agent id."""
        session_id = as_text(record.get("sessionId")) or self.origin.path.stem
        if record.get("isSidechain") and as_text(record.get("agentId")):
            return f"agent-{record['agentId']}"
        if self.origin.path.name.startswith("agent-"):
            return self.origin.path.stem
        # Before subagents had files, they were among their parent's lines.
        return f"{session_id}/sidechain" if record.get("isSidechain") else session_id

    def _facts(self, record: JsonObject, session_id: str) -> Iterator[Item]:
        """What is known of a session before its first message; new folders later on."""
        folder = as_text(record.get("cwd"))
        told = [session_id, folder or self.memo.get("session", [None, None])[1]]
        if self.memo.get("session") == told:
            return
        self.memo["session"] = told
        parent_id = as_text(record.get("sessionId"))
        yield SessionFacts(
            session_id,
            title=self.memo.pop("title", None),
            project=folder,
            git_branch=as_text(record.get("gitBranch")),
            parent_id=parent_id if parent_id != session_id else None,
        )


def _role(record: JsonObject) -> Role:
    if record.get("isCompactSummary"):
        return Role.SUMMARY
    if record.get("isApiErrorMessage"):
        return Role.ERROR
    return Role.USER if record["type"] == "user" else Role.ASSISTANT


def _without_reminders(text: str) -> str:
    """A text of a user record without what the program and its hooks added to it."""
    kept: list[str] = []
    rest = text
    while (start := rest.find(_REMINDER)) >= 0:
        end = rest.find(_REMINDER_END, start)
        if end < 0:
            break
        kept.append(rest[:start])
        rest = rest[end + len(_REMINDER_END) :]
    return "".join([*kept, rest]) if kept else text


def _without_last_reminders(text: str) -> str:
    """A tool's result without what the program appended to it.

    Only at the end, and on lines of its own: a file that was read may have the mark,
    too.
    """
    kept = len(text)
    end = _end_of_text(text, kept)
    while text.endswith(_REMINDER_END, 0, end):
        start = text.rfind(_REMINDER, 0, end)
        if start < 0 or text[start - 1 : start] not in ("", "\n"):
            break
        kept = end = _end_of_text(text, start)
    return text[:kept]


def _end_of_text(text: str, end: int) -> int:
    """Where the blanks before ``end`` begin."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


def _block(
    block: object, role: Role
) -> tuple[Role, str, str | None, str | None] | None:
    """Role, text, tool name and call id of a content block; None for thinking."""
    fields = as_object(block)
    match fields.get("type"):
        case "text":
            text = fields.get("text")
            if not isinstance(text, str):
                return None
            if role is Role.USER:
                text = _without_reminders(text)
                # Output of the program's own commands is in user records, too.
                if text.lstrip().startswith(_PROGRAM_OUTPUT):
                    role = Role.SYSTEM
            return (role, text, None, None) if text.strip() else None
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            text = compact_json(fields.get("input"))
            tool_name, call_id = as_text(fields.get("name")), as_text(fields.get("id"))
            return Role.TOOL_CALL, text, tool_name, call_id
        case "tool_result" | "mcp_tool_result":
            text = _without_last_reminders(plain_text(fields.get("content")))
            return Role.TOOL_RESULT, text, None, as_text(fields.get("tool_use_id"))
        case "web_search_tool_result" | "web_fetch_tool_result":
            text = compact_json(fields.get("content"))
            return Role.TOOL_RESULT, text, None, as_text(fields.get("tool_use_id"))
        case "thinking" | "redacted_thinking" | None:
            return None
        case kind:
            return role, f"[{kind}]", None, None


def _is_by_qwen(record: JsonObject) -> bool:
    """Whether a record is Qwen Code's, which has records of the same types."""
    return "parts" in as_object(record.get("message")) or "systemPayload" in record


class ClaudeCodeAgentMeta:
    """The file beside a subagent's session that says what it was asked to do."""

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name.startswith("agent-")
            and path.name.endswith(".meta.json")
            # Qwen Code, whose files have the same names, says more in them.
            and b'"parentSessionId"' not in head
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        meta, problem = read_object(file)
        if problem is not None:
            yield problem
        if not meta:
            return
        yield SessionFacts(
            origin.path.name.removesuffix(".meta.json"),
            title=as_text(meta.get("description")),
        )
