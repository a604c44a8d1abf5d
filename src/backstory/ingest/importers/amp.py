"""Amp: one JSON document per thread.

Versions of late 2026 keep threads on Amp's servers only; what older ones have left on a
machine is read.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import Origin, ReadBeside, unknown_record
from backstory.ingest.parsing.file_urls import to_path
from backstory.ingest.parsing.json_documents import read_object
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "info": Role.SYSTEM}
_THREAD = re.compile(rb'"id":\s*"T-')
_NOT_SAID = frozenset({"redacted_thinking", "thinking"})


class Amp:
    """Thread files of Amp.

    Shape learnt from the program of January 2026 (0.0.1767830505), which npm installs,
    and from tools that read its files (2026-11). Not seen with a thread of its own,
    which needs an account.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name.startswith("T-")
            and path.suffix == ".json"
            and b'"messages"' in head
            and _THREAD.search(head[:4000]) is not None
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        thread, problem = read_object(file, with_list="messages")
        if problem is not None:
            yield problem
        if not thread:
            return
        thread_id = as_text(thread.get("id"))
        if thread_id is None:
            yield Problem("a thread without an id")
            return
        yield SessionFacts(
            thread_id,
            title=as_text(thread.get("title")),
            project=_find_project(thread),
            parent_id=as_text(thread.get("mainThreadID")),
            started=origin.moment(thread.get("created")),
        )
        for index, message in enumerate(as_list(thread.get("messages"))):
            yield from _message(as_object(message), index, thread_id, origin)


def _find_project(thread: JsonObject) -> str | None:
    initial = as_object(as_object(thread.get("env")).get("initial"))
    for tree in map(as_object, as_list(initial.get("trees"))):
        folder = as_text(tree.get("uri"))
        if folder is not None:
            return to_path(folder)
    return None


class _Place(FrozenStruct):
    """A block of a message: whose message, its id, and when it was sent."""

    role: Role
    session_id: str
    native_id: str
    sent: Moment | None

    def said(
        self,
        role: Role,
        text: str,
        tool_name: str | None = None,
        call_id: str | None = None,
    ) -> Iterator[Item]:
        if text.strip() or role in (Role.TOOL_CALL, Role.TOOL_RESULT):
            yield NewMessage(
                self.session_id,
                self.native_id,
                role,
                text,
                tool_name,
                call_id,
                self.sent,
            )


def _message(
    message: JsonObject, index: int, thread_id: str, origin: Origin
) -> Iterator[Item]:
    role = _ROLES.get(as_text(message.get("role")) or "")
    if role is None:
        yield unknown_record(message.get("role"), None)
        return
    if role is Role.USER and message.get("source"):
        # The program wrote this to the model in the person's name.
        role = Role.SYSTEM
    # Numbers are never reused, even if messages are taken back.
    number = message.get("messageId")
    own_id = f"{number if isinstance(number, int) else f'at{index}'}"
    time = as_object(message.get("meta")).get("sentAt") or as_object(
        message.get("usage")
    ).get("timestamp")
    for part, block in enumerate(as_list(message.get("content"))):
        native_id = f"{own_id}/{part}" if part else own_id
        place = _Place(role, thread_id, native_id, origin.moment(time))
        yield from _block(as_object(block), place)


def _block(block: JsonObject, place: _Place) -> Iterator[Item]:
    kind = as_text(block.get("type"))
    match kind:
        case "text":
            yield from place.said(place.role, as_text(block.get("text")) or "")
        case "image":
            yield from place.said(place.role, "[image]")
        case "tool_use" | "server_tool_use":
            text = compact_json(block.get("input") or {})
            name, call_id = as_text(block.get("name")), as_text(block.get("id"))
            yield from place.said(Role.TOOL_CALL, text, name, call_id)
        case "tool_result":
            run = as_object(block.get("run"))
            if run.get("status") not in ("queued", "in-progress"):
                call_id = as_text(block.get("toolUseID"))
                yield from place.said(Role.TOOL_RESULT, _result(run), None, call_id)
        case "manual_bash_invocation":
            # A command of the person's own, which the model may see or not.
            command = as_text(as_object(block.get("args")).get("cmd")) or ""
            output = _result(as_object(block.get("toolRun")))
            yield from place.said(Role.SYSTEM, f"$ {command}\n{output}".rstrip())
        case "summary":
            summary = as_object(block.get("summary"))
            yield from place.said(Role.SUMMARY, as_text(summary.get("summary")) or "")
        case _ if kind not in _NOT_SAID:
            yield unknown_record(kind, None)


def _result(run: JsonObject) -> str:
    """What a tool gave back, or why it gave nothing."""
    result = run.get("result")
    output = as_object(result).get("output")
    if isinstance(output, str):
        return output
    if result is not None:
        return compact_json(result)
    error = as_object(run.get("error")).get("message")
    for text in (error, run.get("reason"), run.get("status")):
        if as_text(text):
            return str(text)
    return ""
