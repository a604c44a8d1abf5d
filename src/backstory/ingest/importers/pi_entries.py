"""The entries of Pi's sessions, which OpenClaw writes as well.

Every entry is kept, including those on abandoned branches: they were said, too.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from backstory.ingest.importers.base import (
    Memo,
    Origin,
    Record,
    made_id,
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
from backstory.values.moments import Moment

# Settings, bookmarks and the state of extensions. A custom message is what an extension
# injected into the context, such as memories.
_NOT_CONVERSATION = frozenset(
    {
        "active_tools_change",
        "context_edit",
        "context_transform",
        "custom",
        "custom_message",
        "ephemeral",
        "label",
        "leaf",
        "mode_change",
        "model_change",
        "reset",
        "service_tier_change",
        "thinking_level_change",
        "usage",
    }
)
_INJECTED_ROLES = frozenset({"custom", "developer", "hookMessage", "system"})
_SUMMARIES = frozenset({"branch_summary", "compaction"})
_SUMMARY_ROLES = frozenset({"branchSummary", "compactionSummary"})

# Role, text, tool name and call id of one part of an entry.
Part = tuple[Role, str, str | None, str | None]


def is_session_header(head: bytes) -> bool:
    """Whether a file begins with the line that opens a session."""
    try:
        header = as_object(orjson.loads(head.partition(b"\n")[0]))
    except orjson.JSONDecodeError:
        return False
    return (
        header.get("type") == "session"
        and as_text(header.get("id")) is not None
        and as_text(header.get("timestamp")) is not None
        and "cwd" in header
    )


def is_in_agent_folder(path: Path) -> bool:
    """Whether a file lies where only OpenClaw puts them: agents/<agent>/sessions."""
    return path.parent.name == "sessions" and path.parent.parent.parent.name == "agents"


def parse_line(record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
    """What one line of a session file says; the first one opens the session."""
    line, value = record
    if value.get("type") == "session" or "session" not in memo:
        header = value if value.get("type") == "session" else {}
        facts = parse_header(header, origin)
        memo["session"] = facts.native_id
        yield facts
    yield from parse_entry(
        value,
        session_id=memo["session"],
        origin=origin,
        ordinal=line,
        line=line,
    )


def parse_header(header: JsonObject, origin: Origin) -> SessionFacts:
    """What the first line says; without one, the file's name is the session's id."""
    return SessionFacts(
        as_text(header.get("id")) or _id_in_name(origin.path.name),
        title=as_text(header.get("title")),
        project=as_text(header.get("cwd")),
        started=origin.moment(header.get("timestamp")),
    )


def parse_entry(
    entry: JsonObject,
    *,
    session_id: str,
    origin: Origin,
    ordinal: int,
    line: int | None,
) -> Iterator[Item]:
    """What one entry says; ``ordinal`` is its place, for entries without an id."""
    kind = as_text(entry.get("type"))
    message = as_object(entry.get("message"))
    sent = origin.moment(entry.get("timestamp")) or origin.moment(
        message.get("timestamp")
    )
    if kind == "session_info":
        yield SessionFacts(session_id, title=as_text(entry.get("name")))
    elif kind in _SUMMARIES:
        text = as_text(entry.get("summary"))
        parts = [(Role.SUMMARY, text, None, None)] if text else []
        yield from _messages(parts, entry, session_id, sent, ordinal)
    elif kind == "message":
        found = _read_message(message)
        if isinstance(found, Problem):
            yield Problem(found.reason, line)
        else:
            yield from _messages(found, entry, session_id, sent, ordinal)
    elif kind not in _NOT_CONVERSATION and kind != "session":
        yield unknown_record(kind, line)


# -- pieces ---------------------------------------------------------------------------


def _id_in_name(name: str) -> str:
    """The id in ``<time>_<id>.jsonl``."""
    stem = name.removesuffix(".jsonl")
    return stem.partition("_")[2] or stem


def _messages(
    parts: Iterable[Part],
    entry: JsonObject,
    session_id: str,
    sent: Moment | None,
    ordinal: int,
) -> Iterator[Item]:
    # Entries have ids since version 2; before, a made id stands for the whole entry.
    own_id: str | None = as_text(entry.get("id"))
    for index, (role, text, tool_name, call_id) in enumerate(parts):
        if own_id is None:
            own_id = made_id(session_id, role, compact_json(entry), sent, ordinal)
        native_id = f"{own_id}/{index}" if index else own_id
        yield NewMessage(session_id, native_id, role, text, tool_name, call_id, sent)


def _read_message(message: JsonObject) -> list[Part] | Problem:
    role = as_text(message.get("role"))
    content = message.get("content")
    if role == "user":
        text = plain_text(content)
        return [(Role.USER, text, None, None)] if text else []
    if role == "assistant":
        return _read_assistant(message)
    if role == "toolResult":
        return [
            (
                Role.TOOL_RESULT,
                plain_text(content),
                as_text(message.get("toolName")),
                as_text(message.get("toolCallId")),
            )
        ]
    if role == "bashExecution":
        return _read_command(message)
    if role in _SUMMARY_ROLES:
        summary = as_text(message.get("summary"))
        return [(Role.SUMMARY, summary, None, None)] if summary else []
    if role in _INJECTED_ROLES:
        return []
    return Problem(f"a message of the role {role!r:.80}, which is unknown")


def _read_assistant(message: JsonObject) -> list[Part]:
    content = message.get("content")
    blocks = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else as_list(content)
    )
    parts: list[Part] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)} if text:
                parts.append((Role.ASSISTANT, text, None, None))
            case {"type": "toolCall"}:
                parts.append(
                    (
                        Role.TOOL_CALL,
                        compact_json(block.get("arguments")),
                        as_text(block.get("name")),
                        as_text(block.get("id")),
                    )
                )
            case {"type": "text" | "thinking" | "redactedThinking"}:
                pass
            case {"type": str(kind)}:
                parts.append((Role.ASSISTANT, f"[{kind}]", None, None))
    error = as_text(message.get("errorMessage"))
    if error is not None:
        parts.append((Role.ERROR, error, None, None))
    return parts


def _read_command(message: JsonObject) -> list[Part]:
    """A command that the person ran, unless they kept it from the model."""
    if message.get("excludeFromContext"):
        return []
    command, output = as_text(message.get("command")), message.get("output")
    return [
        (Role.TOOL_CALL, command or "", "bash", None),
        (Role.TOOL_RESULT, plain_text(output), "bash", None),
    ]
