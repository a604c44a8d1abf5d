"""Messages of LangChain and LangGraph, which have a type where APIs have a role."""

from collections.abc import Iterator

from backstory.runs.dialects.base import Dialect, Piece
from backstory.runs.dialects.chat_messages import iter_chat_pieces
from backstory.runs.dialects.content import block_type
from backstory.runs.dialects.pieces import is_call_block
from backstory.text.json_values import JsonObject, as_text
from backstory.values.history import Role

# Chunks of a stream that were added up are messages, too.
_ROLES = {
    "human": Role.USER,
    "HumanMessageChunk": Role.USER,
    "ai": Role.ASSISTANT,
    "AIMessageChunk": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "SystemMessageChunk": Role.SYSTEM,
    "tool": Role.TOOL_RESULT,
    "ToolMessageChunk": Role.TOOL_RESULT,
    "function": Role.TOOL_RESULT,
    "FunctionMessageChunk": Role.TOOL_RESULT,
}
_CALL_BLOCKS = ("function_call", "tool_call", "tool_call_chunk", "invalid_tool_call")


class LangChain(Dialect):
    """Messages as in ``langchain_core/messages`` of langchain-core 1.7 (read 2026-11).

    The calls in ``tool_calls`` are also blocks of the content if that is where the
    provider has them; they are read only once.
    """

    name = "langchain"

    def recognizes(self, message: JsonObject) -> bool:
        return (
            _find_role(message) is not None
            and "content" in message
            and "role" not in message
        )

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        role = _find_role(message) or Role.SYSTEM
        content = message.get("content")
        if isinstance(content, list) and message.get("tool_calls"):
            words = [block for block in content if not _is_call(block)]
            message = {**message, "content": words}
        yield from iter_chat_pieces(message, role)


def _find_role(message: JsonObject) -> Role | None:
    return _ROLES.get(as_text(message.get("type")) or "")


def _is_call(block: object) -> bool:
    return is_call_block(block) or block_type(block) in _CALL_BLOCKS
