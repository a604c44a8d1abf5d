"""squidbot: one JSONL file per session, later one history for all of them.

Both layouts may exist side by side with the same messages in them. Lines have no ids,
so ids are made from session, time and text; a line has the same session in either
layout.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import orjson

from backstory.ingest.importers.base import (
    Memo,
    Origin,
    ReadBeside,
    Record,
    first_records,
    made_id,
    make_unique,
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

_ROLES = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL_RESULT,
    "tool_call": Role.TOOL_CALL,
    "tool_result": Role.TOOL_RESULT,
}
_NEEDED_KEYS = {"role", "content", "timestamp"}
_KNOWN_KEYS = _NEEDED_KEYS | {
    "tool_calls",
    "tool_call_id",
    "reasoning_content",
    "channel",
    "sender_id",
    "session_id",
}
_HISTORY = "history"
_ROTATED = re.compile(r"\.\d+$")
_CALLED = re.compile(r"\s*([\w.-]+)\(")


class Squidbot:
    """Session files and the global history of squidbot.

    Shape as in ``adapters/persistence/jsonl.py`` and ``core/memory.py`` of
    github.com/Athemis/squidbot (2026, read 2026-11), which went from a file per session
    to one history, and then gave its lines a ``session_id``.
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        is_placed = (
            path.name.startswith(_HISTORY)
            or path.parent.name == "sessions"
            or "__" in path.stem
        )
        keys = _first_keys(head) if is_placed and path.suffix == ".jsonl" else set()
        return _NEEDED_KEYS <= keys <= _KNOWN_KEYS and (
            ".squidbot" in path.parts
            or "__" in path.stem
            or any(map(_has_mark, first_records(head)))
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        # A file that is renamed is still the session it began as.
        if "file" not in memo:
            memo["file"] = _name_of(origin.path)
        given = record.value.get("role")
        role = _ROLES.get(as_text(given) or "")
        if role is None:
            yield unknown_record(given, record.line)
            return
        session_id = _session_id(record.value, memo)
        if memo.get("session") != session_id:
            memo["session"] = session_id
            yield SessionFacts(session_id)
        yield from _messages(session_id, role, record, origin, memo)


def _first_keys(head: bytes) -> set[str]:
    """The keys of the first line that is a JSON object."""
    for line in head.splitlines():
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            return set(value)
    return set()


def _has_mark(record: JsonObject) -> bool:
    """Whether a line has what other programs' lines with the same keys do not have."""
    return {"channel", "sender_id"} <= record.keys() or any(
        isinstance(as_object(call).get("arguments"), dict)
        for call in as_list(record.get("tool_calls"))
    )


# -- sessions -------------------------------------------------------------------------


def _name_of(path: Path) -> str:
    """The session of lines that name none: the file's, or the one of all histories."""
    if path.name.startswith(_HISTORY):
        return _HISTORY
    return _ROTATED.sub("", path.stem)


def _session_id(record: JsonObject, memo: Memo) -> str:
    """The session of a line, spelled like its file in the older layout.

    The program signs its answers "assistant"; they belong to whoever spoke last on the
    same channel, as in squidbot itself.
    """
    named = as_text(record.get("session_id"))
    channel = as_text(record.get("channel"))
    sender = as_text(record.get("sender_id"))
    spoke = memo.setdefault("spoke", {})
    if channel is None:
        return _as_file_name(named) if named else str(memo["file"])
    if named is None and sender in (None, "assistant"):
        return str(spoke.get(channel) or _as_file_name(f"{channel}:unknown"))
    session_id = _as_file_name(named or f"{channel}:{sender}")
    spoke[channel] = session_id
    return session_id


def _as_file_name(session_id: str) -> str:
    return session_id.replace(":", "__")


# -- messages -------------------------------------------------------------------------


def _messages(
    session_id: str, role: Role, record: Record, origin: Origin, memo: Memo
) -> Iterator[Item]:
    line, value = record
    content, calls = value.get("content"), as_list(value.get("tool_calls"))
    if not isinstance(content, str | list) and not calls:
        yield Problem("a message without content", line)
        return
    sent = origin.moment(value.get("timestamp"))
    ordinal = 0
    if sent is None:
        ordinal = memo.setdefault("untimed", {}).get(session_id, 0)
        memo["untimed"][session_id] = ordinal + 1
    text = plain_text(content)
    if text or role is Role.TOOL_RESULT:
        made = made_id(session_id, role, text, sent, ordinal)
        native_id = make_unique(made, sent, memo)
        tool_name, call_id = _tool(role, text, value, native_id, memo)
        yield NewMessage(session_id, native_id, role, text, tool_name, call_id, sent)
    for call in map(as_object, calls):
        tool_name, call_id = as_text(call.get("name")), as_text(call.get("id"))
        arguments = compact_json(call.get("arguments"))
        # Two calls of one line may differ in nothing but their ids.
        identity = f"{call_id} {tool_name} {arguments}"
        made = made_id(session_id, Role.TOOL_CALL, identity, sent, ordinal)
        yield NewMessage(
            session_id,
            make_unique(made, sent, memo),
            Role.TOOL_CALL,
            arguments,
            tool_name,
            call_id,
            sent,
        )


def _tool(
    role: Role, text: str, record: JsonObject, native_id: str, memo: Memo
) -> tuple[str | None, str | None]:
    """Tool name and call id of a message that is a call or a result.

    A line of role ``tool_call`` reads ``shell(cmd='ls')`` and has no id; the result is
    the next line. The call's own id ties them together.
    """
    given = as_text(record.get("tool_call_id"))
    if role is Role.TOOL_CALL:
        called = _CALLED.match(text)
        memo["call"] = given or native_id
        return called and called.group(1), given or native_id
    if role is Role.TOOL_RESULT:
        return None, given or memo.pop("call", None)
    return None, None
