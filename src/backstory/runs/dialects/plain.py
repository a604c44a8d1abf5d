"""Plain messages of people's own loops, as ``Memory.record`` takes them, too."""

from collections.abc import Iterator

from backstory.runs.dialects.base import Dialect, Piece
from backstory.runs.dialects.chat_messages import iter_chat_pieces
from backstory.runs.dialects.pieces import find_role, has_tool_blocks, is_api_item
from backstory.text.json_values import JsonObject
from backstory.values.history import Role

_ROLES = {
    **{role.value: role for role in Role},
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "agent": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "developer": Role.SYSTEM,
    "tool": Role.TOOL_RESULT,
    "function": Role.TOOL_RESULT,
}
_NEEDED = {"content", "text", "tool_calls", "function_call", "arguments", "input"}


class Plain(Dialect):
    """A role and text or any JSON, with the tool's name and the call's id.

    squidbot's shape is one of these: its ``tool_calls`` have a name and arguments that
    are not wrapped in anything (github.com/Athemis/squidbot, 2026).
    """

    name = "plain"

    def recognizes(self, message: JsonObject) -> bool:
        is_anthropic = has_tool_blocks(message.get("content"))
        return (
            find_role(message, _ROLES) is not None
            and bool(message.keys() & _NEEDED)
            and (not is_anthropic or "tool_calls" in message)
            and not is_api_item(message)
        )

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        role = find_role(message, _ROLES) or Role.SYSTEM
        yield from iter_chat_pieces(message, role)
