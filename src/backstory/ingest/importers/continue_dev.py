"""Continue: one JSON document per session, from the command line and from editors.

A session has no time but that of its beginning, and the command line gives its messages
no ids.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Origin,
    ReadBeside,
    made_id,
    unknown_record,
)
from backstory.ingest.parsing.file_urls import to_path
from backstory.ingest.parsing.json_documents import parse_json, read_object
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.structs import Struct, field

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL_RESULT}
_NOT_SAID = frozenset({"system", "thinking"})
# What a session is called until it has a title.
_NO_TITLE = frozenset({"Chat", "New Session", "Untitled Session"})


class Continue:
    """Session files of Continue.

    Shape seen in the command line 1.5.47 (2026-11), compaction included; sessions of
    the editors' extensions as https://github.com/continuedev/continue describes them in
    ``core/index.d.ts`` (read 2026-11).
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        marks = (b'"sessionId"', b'"workspaceDirectory"', b'"history"')
        return (
            path.suffix == ".json"
            and head.lstrip().startswith(b"{")
            and all(mark in head for mark in marks)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        """When the session began, which only the list of all sessions says."""
        if not path.is_absolute():
            return {}
        try:
            sessions = parse_json(read(path.with_name("sessions.json")))
        except ValueError:
            return {}
        for each in map(as_object, as_list(sessions)):
            began = as_text(each.get("dateCreated"))
            if began is not None and each.get("sessionId") == path.stem:
                return {"started": began}
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        session, problem = read_object(file, with_list="history")
        if problem is not None:
            yield problem
        if not session:
            return
        session_id = as_text(session.get("sessionId"))
        if session_id is None:
            yield Problem("a document without a session id")
            return
        title = as_text(session.get("title"))
        folder = as_text(session.get("workspaceDirectory"))
        yield SessionFacts(
            session_id,
            title=None if title in _NO_TITLE else title,
            project=folder and to_path(folder),
            started=origin.moment(origin.beside.get("started")),
            saved=origin.modified,
        )
        reading = _Reading(session_id)
        for item in as_list(session.get("history")):
            yield from reading.take(as_object(item))


class _Reading(Struct):
    """One pass over the messages of a session."""

    session_id: str
    # Compaction removes what came before it: a message without an id is identified by
    # its place after the last summary.
    summary: str = ""
    ordinal: int = 0
    answered: set[str] = field(default_factory=set)

    def take(self, item: JsonObject) -> Iterator[Item]:
        message = as_object(item.get("message"))
        kind = as_text(message.get("role"))
        role = _ROLES.get(kind or "")
        if role is None:
            if kind not in _NOT_SAID:
                yield unknown_record(kind, None)
            return
        text = _text(message.get("content"))
        summary = as_text(item.get("conversationSummary"))
        if summary is not None:
            self.summary, self.ordinal = summary, 0
        self.ordinal += 1
        place = f"{self.session_id} {self.summary}".rstrip()
        own_id = as_text(message.get("id")) or made_id(
            place, role, text, None, self.ordinal
        )
        if role is Role.TOOL_RESULT:
            call_id = as_text(message.get("toolCallId"))
            yield from self._result(own_id, text, None, call_id)
            return
        if text.strip() and text != summary:
            yield NewMessage(self.session_id, own_id, role, text)
        yield from self._tools(item, message, own_id)
        if summary is not None:
            yield NewMessage(
                self.session_id, f"{own_id}/summary", Role.SUMMARY, summary
            )

    def _tools(
        self, item: JsonObject, message: JsonObject, own_id: str
    ) -> Iterator[Item]:
        """The calls of a message, and their results where they are kept with them."""
        states = [as_object(each) for each in as_list(item.get("toolCallStates"))]
        # Up to 2025 there was one at most.
        states += filter(None, [as_object(item.get("toolCallState"))])
        by_id = {as_text(each.get("toolCallId")): each for each in states}
        calls = [as_object(each) for each in as_list(message.get("toolCalls"))]
        calls = calls or [as_object(each.get("toolCall")) for each in states]
        for index, call in enumerate(calls):
            call_id = as_text(call.get("id"))
            function = as_object(call.get("function"))
            name = as_text(function.get("name"))
            yield NewMessage(
                self.session_id,
                f"{own_id}/call{index}",
                Role.TOOL_CALL,
                compact_json(function.get("arguments") or {}),
                name,
                call_id,
            )
            output = by_id.get(call_id, {}).get("output")
            if isinstance(output, list):
                contents = (as_text(as_object(each).get("content")) for each in output)
                text = "\n".join(filter(None, contents))
                yield from self._result(f"{own_id}/result{index}", text, name, call_id)

    def _result(
        self, native_id: str, text: str, name: str | None, call_id: str | None
    ) -> Iterator[Item]:
        """A result, unless it was also kept with its call."""
        if call_id is not None and call_id in self.answered:
            return
        self.answered.add(call_id or native_id)
        yield NewMessage(
            self.session_id, native_id, Role.TOOL_RESULT, text, name, call_id
        )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in as_list(content):
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "imageUrl"}:
                texts.append("[image]")
    return "\n".join(texts)
