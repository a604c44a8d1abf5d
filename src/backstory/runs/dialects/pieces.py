"""The pieces that messages of every dialect are made of: said, called and returned."""

from collections.abc import Iterable, Iterator, Mapping

from backstory.runs.dialects.base import Part, Piece
from backstory.runs.dialects.content import (
    WordsOrMark,
    block_type,
    iter_words,
    join_in_order,
    join_marks_last,
)
from backstory.text.json_values import JsonObject, as_list, as_text, compact_json
from backstory.values.history import Role

# Parts of its own output that the model gets back, though nobody said them.
_ROLES_OF_BLOCKS = {
    "thinking": Role.SYSTEM,
    "redacted_thinking": Role.SYSTEM,
    "reasoning": Role.SYSTEM,
    "compaction": Role.SUMMARY,
}
# Items of OpenAI's Responses API, besides messages and those whose type ends in _call
# or _call_output.
_OTHER_ITEMS = {
    "reasoning",
    "item_reference",
    "compaction",
    "compaction_trigger",
    "configuration_update",
    "additional_tools",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "program",
    "program_output",
    "tool_search_output",
}
# The keys in which messages with a role contain what was said or called.
_SPOKEN_KEYS = ("content", "text", "tool_calls", "function_call")


def find_role(message: JsonObject, roles: Mapping[str, Role]) -> Role | None:
    """Our role for the role of a message; None if the dialect does not know it."""
    role = message.get("role")
    return roles.get(role) if isinstance(role, str) else None


def iter_said(content: object, role: Role) -> Iterator[Piece]:
    """What somebody says, block by block; thinking has a role of its own."""
    for block in content if isinstance(content, list) else [content]:
        text, media = join_in_order(iter_words(block))
        own = _ROLES_OF_BLOCKS.get(block_type(block), role)
        yield Piece(Part(own, text, media=media))


def make_call(name: object, call_id: object, arguments: object) -> Piece:
    """A tool call; arguments that are text stay as they are."""
    text = "" if arguments is None else compact_json(arguments)
    return Piece(Part(Role.TOOL_CALL, text, as_text(name), as_id(call_id)))


def make_result(
    words: Iterable[WordsOrMark],
    name: object,
    call_id: object,
    *,
    place: tuple[str | int, ...] = (),
) -> Piece:
    """A tool result; without a place, it is fixed."""
    text, media = join_marks_last(words)
    part = Part(
        Role.TOOL_RESULT,
        text,
        as_text(name),
        as_id(call_id),
        media=media,
        is_fixed=not place,
    )
    return Piece(part, place)


def as_id(value: object) -> str | None:
    """The value if it can be an id: text, or a number, which some loops use."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return as_text(value)


def first_of(message: JsonObject, keys: Iterable[str]) -> object:
    """The value of the first key that has one."""
    return next((message[key] for key in keys if message.get(key) is not None), None)


def has_tool_blocks(content: object) -> bool:
    """Whether calls and results are among the blocks, as in Anthropic's API."""
    return any(
        is_call_block(item) or is_result_block(item) for item in as_list(content)
    )


def is_call_block(block: object) -> bool:
    """Whether a block is a tool call, for any kind of tool."""
    return block_type(block).endswith("tool_use")


def is_result_block(block: object) -> bool:
    """Whether a block is a tool's result, for any kind of tool."""
    return block_type(block).endswith("tool_result")


def is_api_item(message: JsonObject) -> bool:
    """Whether a message is an item of the Responses API other than a message.

    Such an item is recognized by its type. Some loops add a role to it; but if it has
    both a role and words where messages have them, it is a message with a type.
    """
    kind = block_type(message)
    if kind not in _OTHER_ITEMS and not kind.endswith(("_call", "_call_output")):
        return False
    is_message = "role" in message and first_of(message, _SPOKEN_KEYS) is not None
    return kind == "reasoning" or not is_message
