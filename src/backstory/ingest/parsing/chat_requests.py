"""The requests of a chat in Visual Studio Code, and what was answered to them.

A request is what the person wrote, and a list of parts that the answer is made of:
text, references in the text, and calls of tools. The input and output of a tool are
either with its part, or in the metadata that Copilot's extension adds to the request.
"""

from collections.abc import Iterator
from typing import Any

from backstory.ingest.importers.base import Origin, unknown_record
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Role
from backstory.values.moments import Moment
from backstory.values.structs import Struct, field

_SESSION_KEYS = frozenset(
    {"creationDate", "customTitle", "requests", "sessionId", "workingDirectory"}
)
_REQUEST_KEYS = frozenset(
    {
        "isSystemInitiated",
        "message",
        "requestId",
        "response",
        "result",
        "timestamp",
        "variableData",
    }
)
_METADATA_KEYS = frozenset(
    {"summaries", "summary", "toolCallResults", "toolCallRounds"}
)
# Thinking, and what is only shown while the answer is written.
_NOT_SAID = frozenset(
    {
        "clearToPreviousToolInvocation",
        "codeCitation",
        "codeblockUri",
        "command",
        "commandButton",
        "confirmation",
        "disabledClaudeHooks",
        "elicitation",
        "elicitation2",
        "elicitationSerialized",
        "extensions",
        "hook",
        "mcpServersStarting",
        "multiDiffData",
        "notebookEditGroup",
        "planReview",
        "prepareToolInvocation",
        "progressMessage",
        "progressTask",
        "progressTaskSerialized",
        "pullRequest",
        "questionCarousel",
        "references",
        "textEditGroup",
        "thinking",
        "treeData",
        "undoStop",
        "usedContext",
        "warning",
        "workspaceEdit",
    }
)
# Metadata can be nested arbitrarily deep.
_MAX_DEPTH = 40


def prune_session(session: JsonObject) -> JsonObject:
    """The session without data that nobody said, which is most of it."""
    return {
        key: prune_value([key], value)
        for key, value in session.items()
        if key in _SESSION_KEYS
    }


def is_needed(path: list[object]) -> bool:
    """Whether anything at that place in a session was said by anyone."""
    if len(path) > 2 and path[0] == "requests":
        return path[2] in _REQUEST_KEYS
    return bool(path) and path[0] in _SESSION_KEYS


# Any: whatever the JSON holds.
def prune_value(path: list[Any], value: Any) -> Any:
    """A value for that place in a session, without data that nobody said."""
    match path:
        case ["requests"]:
            return [_prune_request(each) for each in as_list(value)]
        case ["requests", _]:
            return _prune_request(value)
        case ["requests", _, "result"]:
            return _prune_result(value)
        case _:
            return value


def _prune_request(request: object) -> JsonObject:
    kept = {k: v for k, v in as_object(request).items() if k in _REQUEST_KEYS}
    if "result" in kept:
        kept["result"] = _prune_result(kept["result"])
    return kept


def _prune_result(result: object) -> JsonObject:
    fields = as_object(result)
    metadata = as_object(fields.get("metadata"))
    return {
        "errorDetails": fields.get("errorDetails"),
        "metadata": {k: v for k, v in metadata.items() if k in _METADATA_KEYS},
    }


def read_requests(
    requests: list[object], session_id: str, origin: Origin
) -> Iterator[Item]:
    """What was said in a session."""
    reported: set[str] = set()
    for index, fields in enumerate(map(as_object, requests)):
        request_id = as_text(fields.get("requestId")) or f"request_{index}"
        sent = origin.moment(fields.get("timestamp"))
        request = _Request(session_id, request_id, sent, fields, reported)
        yield from request.read()


class _Request(Struct):
    """One request; an unknown kind of part is reported once for a session."""

    session_id: str
    request_id: str
    sent: Moment | None
    fields: JsonObject
    reported: set[str]
    texts: list[str] = field(default_factory=list)
    text_count: int = 0

    def read(self) -> Iterator[Item]:
        words = self._words()
        if words.strip():
            is_program = self.fields.get("isSystemInitiated") is True
            role = Role.SYSTEM if is_program else Role.USER
            yield self._said("", role, words)
        result = as_object(self.fields.get("result"))
        metadata = as_object(result.get("metadata"))
        for part in as_list(self.fields.get("response")):
            yield from self._part(as_object(part), metadata)
        yield from self._end_text()
        summaries = [metadata.get("summary"), *as_list(metadata.get("summaries"))]
        for index, summary in enumerate(map(as_object, summaries)):
            text = as_text(summary.get("text"))
            if text is not None:
                yield self._said(f"/summary{index}", Role.SUMMARY, text)
        error = as_text(as_object(result.get("errorDetails")).get("message"))
        if error is not None:
            yield self._said("/error", Role.ERROR, error)

    def _said(
        self,
        suffix: str,
        role: Role,
        text: str,
        tool_name: str | None = None,
        call_id: str | None = None,
    ) -> NewMessage:
        return NewMessage(
            self.session_id,
            f"{self.request_id}{suffix}",
            role,
            text,
            tool_name,
            call_id,
            self.sent,
        )

    def _words(self) -> str:
        """What the person wrote, and marks for what they attached to it."""
        message = self.fields.get("message")
        text = message if isinstance(message, str) else as_object(message).get("text")
        marks: list[str] = []
        variables = as_object(self.fields.get("variableData")).get("variables")
        for variable in map(as_object, as_list(variables)):
            match variable.get("kind"):
                case "image":
                    marks.append("[image]")
                case "file" | "directory":
                    marks.append(f"[file: {as_text(variable.get('name')) or '?'}]")
        return "\n".join(filter(None, [as_text(text), *marks]))

    # -- the answer -------------------------------------------------------------------

    def _part(self, part: JsonObject, metadata: JsonObject) -> Iterator[Item]:
        kind = as_text(part.get("kind"))
        match kind:
            case None:
                self.texts.append(_markdown(part))
            case "markdownContent" | "markdownVuln":
                self.texts.append(_markdown(part.get("content") or part.get("value")))
            case "inlineReference":
                self.texts.append(_reference(part))
            case "toolInvocationSerialized" | "toolInvocation":
                yield from self._end_text()
                yield from self._tool(part, metadata)
            case _ if kind not in _NOT_SAID and kind not in self.reported:
                self.reported.add(kind)
                yield unknown_record(kind, None)

    def _end_text(self) -> Iterator[Item]:
        """The text so far, whose parts are joined without a gap."""
        text = "".join(self.texts)
        self.texts = []
        if text.strip():
            self.text_count += 1
            yield self._said(f"/text{self.text_count}", Role.ASSISTANT, text)

    def _tool(self, part: JsonObject, metadata: JsonObject) -> Iterator[Item]:
        call_id = as_text(part.get("toolCallId"))
        name = as_text(part.get("toolId"))
        call = _find_call(metadata, call_id)
        text = as_text(call.get("arguments")) or _given(part)
        suffix = f"/{call_id or f'tool{self.text_count}'}"
        yield self._said(suffix, Role.TOOL_CALL, text, name, call_id)
        results = as_object(metadata.get("toolCallResults"))
        contents = as_list(as_object(results.get(call_id or "")).get("content"))
        # Joined without a gap, because a text may be cut into many nodes.
        result = "".join(_iter_texts(contents, _MAX_DEPTH)) or _returned(part)
        if result.strip():
            yield self._said(
                f"{suffix}/result", Role.TOOL_RESULT, result, name, call_id
            )


def _find_call(metadata: JsonObject, call_id: str | None) -> JsonObject:
    for step in map(as_object, as_list(metadata.get("toolCallRounds"))):
        for call in map(as_object, as_list(step.get("toolCalls"))):
            if call_id is not None and call.get("id") == call_id:
                return call
    return {}


def _markdown(value: object) -> str:
    """The text of a Markdown string, which may be an object around it."""
    if isinstance(value, str):
        return value
    inner = as_object(value).get("value")
    return inner if isinstance(inner, str) else ""


def _reference(part: JsonObject) -> str:
    """A file or symbol that the answer names, in the middle of its text."""
    name = as_text(part.get("name"))
    found = as_object(part.get("inlineReference"))
    place = as_object(found.get("uri")) or as_object(
        as_object(found.get("location")).get("uri")
    )
    path = as_text((place or found).get("path")) or ""
    return f"`{name or as_text(found.get('name')) or path.rpartition('/')[2]}`"


def _given(part: JsonObject) -> str:
    """What a tool was given, as far as its part says."""
    data = as_object(part.get("toolSpecificData"))
    command = as_object(data.get("commandLine"))
    for text in (
        as_text(command.get("userEdited")),
        as_text(command.get("toolEdited")),
        as_text(command.get("original")),
        as_text(data.get("command")),
        as_text(data.get("prompt")),
        as_text(data.get("input")),
        as_text(as_object(part.get("resultDetails")).get("input")),
    ):
        if text is not None:
            return text
    if data.get("rawInput") is not None:
        return compact_json(data["rawInput"])
    return _markdown(part.get("invocationMessage"))


def _returned(part: JsonObject) -> str:
    """What a tool gave back, as far as its part says."""
    data = as_object(part.get("toolSpecificData"))
    details = as_object(part.get("resultDetails"))
    output = as_list(details.get("output"))
    texts = [
        _markdown(as_object(each).get("value"))
        for each in output
        if as_object(each).get("isText") is not False
    ]
    shown = as_object(data.get("terminalCommandOutput")).get("text")
    for text in ("\n".join(filter(None, texts)), as_text(shown)):
        if text:
            return text
    return as_text(data.get("result")) or as_text(data.get("output")) or ""


def _iter_texts(value: object, depth: int) -> Iterator[str]:
    """The texts in what a tool gave back: strings, or trees of elements of a prompt."""
    if depth == 0:
        return
    match value:
        case list():
            for each in value:
                yield from _iter_texts(each, depth - 1)
        case {"text": str(text)}:
            yield text
        case {"value": str(text)}:
            yield text
        case dict():
            for key in ("value", "node", "children"):
                yield from _iter_texts(value.get(key), depth - 1)
