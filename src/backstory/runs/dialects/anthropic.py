"""Messages of Anthropic's API: calls and results are blocks among the words."""

from collections.abc import Iterator, Sequence

from backstory.runs.dialects.base import Dialect, Piece
from backstory.runs.dialects.content import block_types, iter_value, iter_words
from backstory.runs.dialects.pieces import (
    find_role,
    has_tool_blocks,
    is_call_block,
    is_result_block,
    iter_said,
    make_call,
    make_result,
)
from backstory.text.json_values import JsonObject, as_list, as_object
from backstory.values.history import Role

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
}
_BLOCKS = {
    "text",
    "image",
    "document",
    "search_result",
    "container_upload",
    "thinking",
    "redacted_thinking",
    "compaction",
}
# The keys of a message, and those that only a reply has.
_KEYS = {
    "role",
    "content",
    "id",
    "type",
    "model",
    "container",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "usage",
}
# Results that a loop writes, or that are plain text. Other results of server tools are
# partly encrypted, and the API refuses them if they have been changed.
_OPEN_RESULTS = ("tool_result", "mcp_tool_result")


class Anthropic(Dialect):
    """Messages as in ``types/message_param.py`` and ``types/beta`` of anthropic 2.8.

    Read 2026-11. Blocks of later versions are recognized by the endings of their types.
    """

    name = "anthropic"

    def recognizes(self, message: JsonObject) -> bool:
        content = message.get("content")
        if "tool_calls" in message or message.get("type", "message") != "message":
            return False
        return has_tool_blocks(content) or (
            isinstance(content, str | list)
            and find_role(message, _ROLES) is not None
            and message.keys() <= _KEYS
            and block_types(content) <= _BLOCKS
        )

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        role = find_role(message, _ROLES) or Role.SYSTEM
        content = message.get("content")
        for number, block in enumerate(as_list(content)):
            if is_call_block(block):
                yield make_call(block.get("name"), block.get("id"), block.get("input"))
            elif is_result_block(block):
                yield _result(block, number)
            else:
                yield from iter_said([block], role)
        if not isinstance(content, list):
            yield from iter_said(content, role)

    def find_said(self, reply: JsonObject) -> Sequence[JsonObject] | None:
        content = reply.get("content")
        # A message item of another API names no model.
        if reply.get("type") != "message" or "model" not in reply:
            return None
        if not isinstance(content, list):
            return None
        return [{"role": "assistant", "content": content}]


def _result(block: JsonObject, number: int) -> Piece:
    content = block.get("content")
    is_open = block["type"] in _OPEN_RESULTS
    has_output = "stdout" in as_object(content)
    return make_result(
        iter_value(content) if is_open else iter_words(content),
        _server_tool(block["type"]),
        block.get("tool_use_id"),
        place=("content", number, "content") if is_open or has_output else (),
    )


def _server_tool(kind: str) -> str | None:
    """The tool that the type of a result names, as in ``web_search_tool_result``."""
    return None if kind in _OPEN_RESULTS else kind.removesuffix("_tool_result")
