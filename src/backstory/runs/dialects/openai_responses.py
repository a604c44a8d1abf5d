"""Items of OpenAI's Responses API: messages, and calls and results as their own items.

A tool that runs on OpenAI's side is one item with both the call and the result. Items
are read by the endings of their types and by the keys that contain words, so that
future tools are read as well.
"""

from collections.abc import Iterator, Sequence

from backstory.runs.dialects.base import Dialect, Part, Piece
from backstory.runs.dialects.content import (
    WordsOrMark,
    block_type,
    block_types,
    iter_value,
    iter_words,
)
from backstory.runs.dialects.pieces import (
    find_role,
    first_of,
    is_api_item,
    iter_said,
    make_call,
    make_result,
)
from backstory.text.json_values import JsonObject, as_text, compact_json
from backstory.values.history import Role

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
}
_BLOCKS = {
    "text",
    "input_text",
    "output_text",
    "refusal",
    "input_image",
    "input_file",
    "input_audio",
}
_KEYS = {"type", "role", "content", "id", "phase", "status"}
_CALL_IDS = ("call_id", "id")
# What a call asks for, in the terms of any tool.
_ASKED = (
    "arguments",
    "input",
    "action",
    "actions",
    "operation",
    "code",
    "queries",
    "query",
    "prompt",
    "revised_prompt",
)
_RETURNED = ("output", "outputs", "results", "result", "tools", "error")
# Results that are plain text: (type, key).
_OPEN_RESULTS = {
    ("function_call_output", "output"),
    ("custom_tool_call_output", "output"),
    ("local_shell_call_output", "output"),
    ("shell_call_output", "output"),
    ("apply_patch_call_output", "output"),
    ("mcp_call", "output"),
    ("code_interpreter_call", "outputs"),
}
# Words that the model reads outside the conversation.
_TOLD = ("name", "arguments", "reason", "tools", "error")
_NAMELESS = ("function", "custom_tool")


class OpenAiResponses(Dialect):
    """Items as in ``types/responses/response_input_item_param.py`` of openai 3.49.

    Read 2026-11.
    """

    name = "openai-responses"
    text_type = "input_text"

    def recognizes(self, message: JsonObject) -> bool:
        kind = block_type(message)
        if "type" in message and kind != "message":
            return is_api_item(message)
        content = message.get("content")
        return (
            find_role(message, _ROLES) is not None
            and isinstance(content, str | list)
            and message.keys() <= _KEYS
            and block_types(content) <= _BLOCKS
        )

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        kind = block_type(message)
        if kind in ("", "message"):
            role = find_role(message, _ROLES) or Role.SYSTEM
            yield from iter_said(message.get("content"), role)
        elif kind == "reasoning":
            yield from iter_said(message.get("summary"), Role.SYSTEM)
            yield from iter_said(message.get("content"), Role.SYSTEM)
        elif kind.endswith("_output"):
            yield _result(message, kind, _returned_key(message) or "output")
        elif kind.endswith("_call") or kind == "program":
            yield from _iter_call(message, kind)
        else:
            yield from _iter_told(message)

    def find_said(self, reply: JsonObject) -> Sequence[JsonObject] | None:
        items = reply.get("output")
        if reply.get("object") != "response" or not isinstance(items, list):
            return None
        return [item for item in items if isinstance(item, dict)]


def _iter_call(item: JsonObject, kind: str) -> Iterator[Piece]:
    """A call, and its result if that is in the same item."""
    name, call_id = _tool_name(item, kind), first_of(item, _CALL_IDS)
    yield make_call(name, call_id, first_of(item, _ASKED))
    key = _returned_key(item)
    if key is not None:
        yield _result(item, kind, key)


def _result(item: JsonObject, kind: str, key: str) -> Piece:
    # If code printed nothing, there is no block in which text could be replaced.
    is_silent = key == "outputs" and "logs" not in block_types(item.get(key))
    is_open = (kind, key) in _OPEN_RESULTS and not is_silent
    return make_result(
        _iter_returned(kind, item.get(key), is_open=is_open),
        _tool_name(item, kind),
        first_of(item, _CALL_IDS),
        place=(key,) if is_open else (),
    )


def _iter_returned(kind: str, value: object, *, is_open: bool) -> Iterator[WordsOrMark]:
    if kind == "image_generation_call" and isinstance(value, str):
        yield WordsOrMark("[image]", is_mark=True)
    elif kind == "tool_search_output":
        yield WordsOrMark(compact_json(value))
    else:
        yield from iter_value(value) if is_open else iter_words(value)


def _returned_key(item: JsonObject) -> str | None:
    return next((key for key in _RETURNED if item.get(key) is not None), None)


def _tool_name(item: JsonObject, kind: str) -> str | None:
    """The tool that an item names, or its type, as in ``web_search_call``."""
    of_type = kind.removesuffix("_output").removesuffix("_call")
    return as_text(item.get("name")) or (None if of_type in _NAMELESS else of_type)


def _iter_told(item: JsonObject) -> Iterator[Piece]:
    for key in _TOLD:
        value = item.get(key)
        if value is not None:
            yield Piece(Part(Role.SYSTEM, compact_json(value)))
