"""Codex: one JSONL rollout per thread, and a database with the threads' titles.

A rollout says everything twice: ``response_item`` records are what model and person
exchanged, ``event_msg`` records are the same turns as the screen showed them. Only
``response_item`` records are read.
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
    made_id,
    make_unique,
    unknown_record,
)
from backstory.ingest.parsing.rows import iter_rows
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.text.own_calls import is_own_tool_call
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct

# Records about the program: settings of a turn, its view of the machine, its costs.
_NOT_CONVERSATION = frozenset(
    {
        "inter_agent_communication_metadata",
        "realtime_item",
        "security_risk_score",
        "token_usage_record",
        "world_state",
    }
)
# Items without a text: thinking, encrypted summaries, the program's list of tools.
_SILENT_ITEMS = frozenset(
    {
        "additional_tools",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "configuration_update",
        "context_compaction",
        "ghost_snapshot",
        "other",
        "reasoning",
        "tool_search_call",
        "tool_search_output",
    }
)
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "image_generation_call": "revised_prompt",
}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})

# Rollouts from before content_item_kinds: what the program put into user messages is
# recognized by the tags around it. A person may write a tag too, so both ends must be
# there.
_INJECTED = re.compile(
    r"""\s*(?:
        <(environment_context|user_instructions|recommended_plugins|skill|turn_aborted
         |subagent_notification|hook_context|INSTRUCTIONS)\b[^>]*>.*</\1>
      | \#\ AGENTS\.md\ instructions\b.*</INSTRUCTIONS>
    )\s*""",
    re.DOTALL | re.VERBOSE,
)
_TAG = re.compile(r"<(\w+)")
_FOLDER = re.compile(r"<cwd>([^<]+)</cwd>")
_COMMAND_OUTPUT = "<user_shell_command>"
_STATE_NAME = re.compile(r"state_\d+\.sqlite")
_THREAD_IN_NAME = re.compile(r"rollout-[\dT-]+?-([0-9a-f]{8}(?:-[0-9a-f]{4,12}){4})")


class Codex:
    """Rollout files of Codex, compressed (``.jsonl.zst``) or not.

    Shape seen in 0.166.0 (2026-11). The other kinds of item, and the first rollouts of
    2025, which had no envelope, are as described by ``codex-rs/protocol`` in
    https://github.com/openai/codex and tools that read them.
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        if not path.name.endswith((".jsonl", ".jsonl.zst")):
            return False
        if b'"session_meta"' in head and b'"payload"' in head:
            return True
        first_line = head.partition(b"\n")[0]
        return (
            path.name.startswith("rollout-")
            and b'"instructions"' in first_line
            and b'"timestamp"' in first_line
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        line, value = record
        kind = as_text(value.get("type"))
        payload = as_object(value.get("payload"))
        place = _Place(line, origin.moment(value.get("timestamp")), origin, memo)
        if kind == "session_meta":
            yield from _session_facts(payload, origin, memo)
        elif kind == "turn_context":
            yield from _folder(payload, origin, memo)
        elif kind == "response_item":
            if not as_object(value.get("metadata")).get("compaction_output"):
                yield from _item(payload, place)
        elif kind == "compacted":
            yield from _told(Role.SUMMARY, payload.get("message"), place)
        elif kind == "inter_agent_communication":
            role = _role_between_agents(payload)
            yield from _told(role, payload.get("content"), place)
        elif kind == "event_msg":
            yield from _event(payload, place)
        elif kind in _NOT_CONVERSATION or "record_type" in value:
            return
        elif kind is None and "instructions" in value:
            yield from _session_facts(value, origin, memo)
        elif "payload" not in value:
            yield from _item(value, place)
        else:
            yield unknown_record(kind, line)


class _Place(FrozenStruct):
    """Where and when a record was written, and what is known from those before it."""

    line: int
    sent: Moment | None
    origin: Origin
    memo: Memo


# -- sessions -------------------------------------------------------------------------


def _session_facts(meta: JsonObject, origin: Origin, memo: Memo) -> Iterator[Item]:
    """Take the first record about the session; a fork also has those of its origin."""
    if "session" in memo:
        return
    session_id = as_text(meta.get("id")) or as_text(meta.get("session_id"))
    memo["session"] = session_id or _id_in_name(origin.path)
    memo["has_folder"] = as_text(meta.get("cwd")) is not None
    yield SessionFacts(
        memo["session"],
        project=as_text(meta.get("cwd")),
        git_branch=as_text(as_object(meta.get("git")).get("branch")),
        parent_id=_parent_id(meta),
        started=origin.moment(meta.get("timestamp")),
    )


def _folder_facts(item: JsonObject, origin: Origin, memo: Memo) -> Iterator[Item]:
    """The folder of an old rollout, which only a message to the model mentions."""
    if memo.get("has_folder", "session" in memo) or item.get("role") != "user":
        return
    for part in as_list(item.get("content")):
        text = _text([part])
        folder = _FOLDER.search(text) if _is_injected(text) else None
        if folder is not None:
            yield from _session_facts({}, origin, memo)
            memo["has_folder"] = True
            yield SessionFacts(memo["session"], project=folder[1].strip())
            return


def _folder(context: JsonObject, origin: Origin, memo: Memo) -> Iterator[Item]:
    """The folder that a turn ran in, if it is not the same as before."""
    folder = as_text(context.get("cwd"))
    if folder is not None and folder != memo.get("folder"):
        memo["folder"] = folder
        yield from _session_facts({}, origin, memo)
        yield SessionFacts(memo["session"], project=folder)


def _parent_id(meta: JsonObject) -> str | None:
    subagent = as_object(as_object(meta.get("source")).get("subagent"))
    spawned = as_object(subagent.get("thread_spawn"))
    return as_text(spawned.get("parent_thread_id")) or as_text(
        meta.get("parent_thread_id")
    )


def _id_in_name(path: Path) -> str:
    found = _THREAD_IN_NAME.match(path.name)
    return found.group(1) if found else path.name.partition(".jsonl")[0]


# -- messages -------------------------------------------------------------------------


def _item(item: JsonObject, place: _Place) -> Iterator[Item]:
    sent, memo = place.sent, place.memo
    yield from _folder_facts(item, place.origin, memo)
    found = _read_item(item, place.line)
    if found is None:
        return
    if isinstance(found, Problem):
        yield found
        return
    role, text, tool_name = found
    call_id = as_text(item.get("call_id"))
    if role is Role.TOOL_CALL:
        call_id = call_id or as_text(item.get("id"))
    yield from _session_facts({}, place.origin, memo)
    session_id = memo["session"]
    # Two calls may say the same at the same instant; their call ids differ.
    own_id = as_text(item.get("id")) or make_unique(
        made_id(session_id, role, f"{call_id or ''}{text}", sent, place.line),
        sent,
        memo,
    )
    yield NewMessage(session_id, own_id, role, text, tool_name, call_id, sent)


def _read_item(
    item: JsonObject, line: int
) -> tuple[Role, str, str | None] | Problem | None:
    """Role, text and tool name of an item; None if nobody says anything in it."""
    kind = as_text(item.get("type"))
    if kind == "message":
        return _message(item, line)
    if kind == "agent_message":
        text = _text(item.get("content"))
        return (_role_between_agents(item), text, None) if text else None
    if kind in _CALLS:
        text = compact_json(item.get(_CALLS[kind]) or {})
        name = as_text(item.get("name")) or kind.removesuffix("_call")
        # The server of an MCP tool, since 0.160: mcp__backstory.
        server = as_text(item.get("namespace"))
        return Role.TOOL_CALL, text, f"{server}__{name}" if server else name
    if kind in _OUTPUTS:
        return Role.TOOL_RESULT, _output(item.get("output")), None
    return None if kind in _SILENT_ITEMS else unknown_record(kind, line)


def _message(
    item: JsonObject, line: int
) -> tuple[Role, str, str | None] | Problem | None:
    role = as_text(item.get("role"))
    if role in ("developer", "system"):
        return None
    content = item.get("content")
    if role not in ("user", "assistant") or not isinstance(content, str | list):
        return Problem("a message without a known role or without content", line)
    if role == "assistant":
        text = _text(content)
        return (Role.ASSISTANT, text, None) if text else None
    passthrough = as_object(item.get("internal_chat_message_metadata_passthrough"))
    kinds = as_list(passthrough.get("content_item_kinds"))
    text = _text(_without_injected(content, kinds))
    is_command = text.lstrip().startswith(_COMMAND_OUTPUT)
    if is_command and is_own_tool_call(None, _command(text)):
        return None
    return (Role.SYSTEM if is_command else Role.USER, text, None) if text else None


def _command(text: str) -> str:
    """The command whose output a text is."""
    return text.partition("<command>")[2].partition("</command>")[0].strip()


def _role_between_agents(item: JsonObject) -> Role:
    """The role of what one agent tells another: a task counts as a person's prompt.

    Agents are named like paths: ``/root`` starts ``/root/counter``.
    """
    author, recipient = as_text(item.get("author")), as_text(item.get("recipient"))
    is_task = author and recipient and recipient.startswith(f"{author}/")
    return Role.USER if is_task else Role.SYSTEM


def _without_injected(content: str | list[object], kinds: list[object]) -> list[object]:
    """The parts of a user message that the person wrote.

    The kind of each part is at the same place in a separate list: ``user.text``,
    ``hooks.additional_context``, ``environments.environment_context`` …
    """
    parts = [content] if isinstance(content, str) else content
    kept: list[object] = []
    for index, part in enumerate(parts):
        kind = as_text(kinds[index]) if index < len(kinds) else None
        if kind is None or kind.startswith("unknown"):
            is_own = not _is_injected(_text([part]))
        else:
            is_own = kind.startswith("user.")
        if is_own:
            kept.append(part)
    return kept


def _is_injected(text: str) -> bool:
    """Whether a text without a kind is nothing but what the program put there."""
    found = _INJECTED.fullmatch(text)
    return found is not None and (
        found[1] is None or _TAG.findall(text).count(found[1]) == 1
    )


def _text(content: object) -> str:
    """The text of content parts, with marks for parts that are not text."""
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for part in as_list(content):
        if isinstance(part, str):
            parts.append(part)
            continue
        text = as_object(part).get("text")
        kind = as_text(as_object(part).get("type")) or "attachment"
        mark = kind.removeprefix("input_").removeprefix("output_")
        parts.append(text if isinstance(text, str) else f"[{mark}]")
    return "\n".join(parts)


def _output(output: object) -> str:
    """What a tool gave back: text, parts, or in old rollouts an object around them."""
    if isinstance(output, dict):
        content = output.get("content")
        return _text(content) if content is not None else compact_json(output)
    return _text(output)


def _told(role: Role, content: object, place: _Place) -> Iterator[Item]:
    """A message that is just a text; none if that is empty."""
    text = as_text(_text(content))
    if text is None:
        return
    sent, memo = place.sent, place.memo
    yield from _session_facts({}, place.origin, memo)
    session_id = memo["session"]
    yield NewMessage(
        session_id,
        make_unique(made_id(session_id, role, text, sent, place.line), sent, memo),
        role,
        text,
        sent=sent,
    )


def _event(event: JsonObject, place: _Place) -> Iterator[Item]:
    """The two events with something new: an error, and a name the person gave."""
    kind = as_text(event.get("type"))
    if kind == "error":
        yield from _told(Role.ERROR, event.get("message"), place)
    elif kind == "thread_name_updated" and as_text(event.get("thread_name")):
        yield from _session_facts({}, place.origin, place.memo)
        yield SessionFacts(
            place.memo["session"], title=as_text(event.get("thread_name"))
        )


# -- titles ---------------------------------------------------------------------------


_THREAD_COLUMNS = ("id", "title", "name", "first_user_message", "cwd", "git_branch")


class CodexThreads:
    """The threads in ``state_5.sqlite``: their titles; what was said is in rollouts.

    Shape seen in 0.166.0 (2026-11). ``name`` is what the person called the thread, a
    column that was added late; ``title`` begins as a copy of the first prompt, which is
    no title yet.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"threads"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return _STATE_NAME.fullmatch(path.name) is not None and head.startswith(
            b"SQLite format 3\0"
        )

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        for thread in iter_rows(db, "threads", _THREAD_COLUMNS):
            if as_text(thread["id"]):
                yield Conversation(thread["id"], content_id(*map(str, thread.values())))

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        threads = iter_rows(
            db,
            "threads",
            _THREAD_COLUMNS,
            rest="WHERE id = ?",
            params=(session_id,),
        )
        for thread in threads:
            title = as_text(thread["title"])
            is_prompt = title == thread["first_user_message"]
            yield SessionFacts(
                session_id,
                title=as_text(thread["name"]) or (None if is_prompt else title),
                project=as_text(thread["cwd"]),
                git_branch=as_text(thread["git_branch"]),
            )
