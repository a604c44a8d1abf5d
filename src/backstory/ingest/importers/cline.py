"""Cline: one JSON document per session; in older versions, a list of shown messages."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Origin,
    ReadBeside,
    made_id,
    unknown_record,
)
from backstory.ingest.parsing.json_documents import parse_json, read_object
from backstory.ingest.parsing.task_messages import (
    begins_with_task,
    is_task_list,
    parse_task,
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

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "error": Role.ERROR}
_SUFFIX = ".messages.json"
# What the program tells the model in the person's name.
_NOTICES = frozenset(
    {
        "auto_compaction",
        "compaction_budget_emergency",
        "completion_reminder",
        "loop_detection_notice",
        "manual_compaction",
        "mistake_stop_notice",
        "recovery_notice",
    }
)
_NOTICE_TAGS = ("mode_notice", "environment_notice")
_INPUT = re.compile(
    r"\s*<user_(?:input|command)(?P<attributes>(?: [^<>]*)?)>(?P<words>.*)"
    r"</user_(?:input|command)>\s*",
    flags=re.DOTALL,
)
_SLASH = re.compile(r'slash="([^"]+)"')
# In a session, what follows this was said after a task of an older version was resumed;
# what comes before it is a copy of that task.
_RESUMED = "Warning: this is a legacy conversation, which means tool names may have"


class Cline:
    """Sessions of Cline's command line, and of the editor's extension since 4.0.

    Shape seen in the command line 3.0.65 (2026-11); notices, compaction and resumed
    tasks as https://github.com/cline/cline has them in ``sdk/packages/core`` and
    ``apps/vscode/src/sdk`` (read 2026-11). ``*.compaction.json`` beside a session is a
    shortened copy of it, and not read.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.name.endswith(_SUFFIX) and all(
            mark in head[:4000] for mark in (b'"version"', b'"agent"', b'"messages"')
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        """The session's own file: its folder, its title, and when it began.

        A subagent's file is beside its parent's, which names the folder.
        """
        if not path.is_absolute():
            return {}
        manifest = _parse_object(read(path.with_name(f"{path.parent.name}.json")))
        found = {"project": as_text(manifest.get("cwd"))}
        if path.name.removesuffix(_SUFFIX) == path.parent.name:
            about = as_object(manifest.get("metadata"))
            found["title"] = as_text(about.get("title"))
            found["started"] = as_text(manifest.get("started_at"))
        return {key: text for key, text in found.items() if text is not None}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        document, problem = read_object(file, with_list="messages")
        if problem is not None:
            yield problem
        if not document:
            return
        session_id = as_text(
            document.get("sessionId")
        ) or origin.path.name.removesuffix(_SUFFIX)
        about = as_object(document.get("origin"))
        yield SessionFacts(
            session_id,
            title=origin.beside.get("title"),
            project=origin.beside.get("project"),
            parent_id=as_text(about.get("parentThreadId")),
            started=origin.moment(origin.beside.get("started")),
        )
        messages = [as_object(each) for each in as_list(document.get("messages"))]
        for ordinal, message in enumerate(messages[_after_copy(messages) :]):
            yield from _message(message, session_id, origin, ordinal)


class ClineTask:
    """Tasks of Cline from before it kept sessions: ``ui_messages.json``.

    Shape seen in the command line 2.18.0 (2026-11); the other kinds of message as
    https://github.com/cline/cline has them in ``ExtensionMessage.ts`` (versions of 2024
    to 2026, read 2026-11). Once a task is resumed as a session, the session is appended
    to the list again and again; ``sdk_writeback.json`` tells where that begins.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name in ("ui_messages.json", "claude_messages.json")
            and is_task_list(head)
            and begins_with_task(head)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        if not path.is_absolute():
            return {}
        found = {}
        count = _parse_object(read(path.with_name("sdk_writeback.json"))).get(
            "baseUiMessageCount"
        )
        if isinstance(count, int):
            found["count"] = str(count)
        try:
            tasks = parse_json(read(path.parents[2] / "state" / "taskHistory.json"))
        except (ValueError, IndexError):
            tasks = []
        for task in map(as_object, as_list(tasks)):
            folder = as_text(task.get("cwdOnTaskInitialization"))
            if folder and task.get("id") == path.parent.name:
                found["project"] = folder
        return found

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        count = origin.beside.get("count")
        return parse_task(
            file,
            origin,
            session_id=origin.path.parent.name or origin.path.stem,
            most=None if count is None else int(count),
        )


def _parse_object(content: bytes) -> JsonObject:
    try:
        return as_object(parse_json(content))
    except ValueError:
        return {}


# -- messages -------------------------------------------------------------------------


def _after_copy(messages: list[JsonObject]) -> int:
    """Where new messages begin, after the copy of a task that was resumed."""
    for index, message in enumerate(messages):
        if plain_text(message.get("content")).startswith(_RESUMED):
            return index + 1
    return 0


def _message(
    message: JsonObject, session_id: str, origin: Origin, ordinal: int
) -> Iterator[Item]:
    role = _ROLES.get(as_text(message.get("role")) or "")
    if role is None:
        yield unknown_record(message.get("role"), None)
        return
    about = as_object(message.get("metadata"))
    if as_text(about.get("kind")) in _NOTICES:
        return
    content = message.get("content")
    if about.get("kind") == "compaction_summary":
        role, content = Role.SUMMARY, about.get("summary") or content
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    sent = origin.moment(message.get("ts"))
    own_id = as_text(message.get("id")) or made_id(
        session_id, role, compact_json(content), sent, ordinal
    )
    for index, block in enumerate(as_list(blocks)):
        said = _read_block(block, role)
        if isinstance(said, Problem):
            yield said
        elif said is not None:
            block_role, text, tool_name, call_id = said
            native_id = f"{own_id}/{index}" if index else own_id
            yield NewMessage(
                session_id, native_id, block_role, text, tool_name, call_id, sent
            )


def _read_block(
    block: object, role: Role
) -> tuple[Role, str, str | None, str | None] | Problem | None:
    """Role, text, tool name and call id of a block; None if nobody says anything."""
    match block:
        case {"type": "text", "text": str(text)}:
            text = _own_words(text) if role is Role.USER else text
            return (role, text, None, None) if text.strip() else None
        case {"type": "tool_use", **call}:
            text = compact_json(call.get("input") or {})
            name, call_id = as_text(call.get("name")), call.get("id")
            return Role.TOOL_CALL, text, name, as_text(call_id)
        case {"type": "tool_result", **result}:
            text = _result_text(result.get("content"))
            name, call_id = as_text(result.get("name")), result.get("tool_use_id")
            return Role.TOOL_RESULT, text, name, as_text(call_id)
        case {"type": "file", "path": str(path)}:
            return role, f"[file: {path}]", None, None
        case {"type": "image" | "file" as kind}:
            return role, f"[{kind}]", None, None
        case {"type": "thinking" | "redacted_thinking"}:
            return None
        case _:
            return unknown_record(as_object(block).get("type"), None)


def _own_words(text: str) -> str:
    """The person's own words, without the tags that Cline puts around them."""
    for tag in _NOTICE_TAGS:
        text = _without(text, f"<{tag}>", f"</{tag}>")
    slash = ""
    # A command may be inside the tag that is around every prompt.
    for _ in range(2):
        found = _INPUT.fullmatch(text)
        if found is None:
            break
        named = _SLASH.search(found["attributes"])
        slash = f"/{named[1]} " if named else slash
        text = found["words"]
    return (slash + text).rstrip() if slash else text


def _without(text: str, opening: str, closing: str) -> str:
    """The text without passages between these marks, and the line ends after them."""
    kept: list[str] = []
    while True:
        before, begun, rest = text.partition(opening)
        _, ended, after = rest.partition(closing)
        if not begun or not ended:
            return "".join(kept) + text
        kept.append(before)
        text = after.lstrip("\n")


def _result_text(content: object) -> str:
    """What a tool gave back: text, blocks of text, or an answer to each query."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in as_list(content):
        match part:
            case {"result": result, **rest}:
                texts += filter(
                    None, (compact_json(result), as_text(rest.get("error")))
                )
            case _:
                texts.append(plain_text([part]))
    return "\n".join(texts)
