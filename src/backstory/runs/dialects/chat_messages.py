"""What all chat messages have in common: content, thoughts, and calls beside them.

The format is OpenAI's; servers that speak its protocol and people's own loops omit
things, rename them, or add to them. All of these variants are read.
"""

from collections.abc import Iterator

from backstory.runs.dialects.base import Part, Piece
from backstory.runs.dialects.content import iter_value
from backstory.runs.dialects.pieces import first_of, iter_said, make_call, make_result
from backstory.text.json_values import JsonObject, as_object
from backstory.values.history import Role

_CONTENTS = ("content", "text")
_NAMES = ("tool_name", "name")
_CALL_IDS = ("tool_call_id", "call_id", "id")
_ARGUMENTS = ("arguments", "input", "args")
# The names that DeepSeek, vLLM and Ollama use (2026-11).
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_CALL_SHAPES = ("function", "custom")


def iter_chat_pieces(message: JsonObject, role: Role) -> Iterator[Piece]:
    """What a message with a known role contains."""
    name, call_id = first_of(message, _NAMES), first_of(message, _CALL_IDS)
    key = _content_key(message)
    if role is Role.TOOL_CALL:
        yield make_call(name, call_id, first_of(message, (key, *_ARGUMENTS)))
    elif role is Role.TOOL_RESULT:
        words = iter_value(message.get(key))
        yield make_result(words, name, call_id, place=(key,))
    else:
        yield from iter_said(first_of(message, _THOUGHTS), Role.SYSTEM)
        yield from _iter_media(message, role)
        yield from iter_said(message.get(key), role)
        yield from iter_said(message.get("refusal"), role)
    yield from _iter_calls(message)


def _content_key(message: JsonObject) -> str:
    """The key of the content: the first one that has any."""
    filled = (key for key in _CONTENTS if message.get(key) not in (None, "", []))
    there = (key for key in _CONTENTS if key in message)
    return next(filled, next(there, _CONTENTS[0]))


def _iter_media(message: JsonObject, role: Role) -> Iterator[Piece]:
    """Images as Ollama has them, beside the content, and a model's voice."""
    for _ in _as_items(message.get("images")):
        yield Piece(Part(role, "[image]", media=1))
    audio = as_object(message.get("audio"))
    if audio:
        yield Piece(Part(role, "[audio]", media=1))
        yield from iter_said(audio.get("transcript"), role)


def _iter_calls(message: JsonObject) -> Iterator[Piece]:
    for call in [
        *_as_items(message.get("tool_calls")),
        *_as_items(message.get("function_call")),
    ]:
        given = as_object(call)
        shape = as_object(first_of(given, _CALL_SHAPES)) or given
        yield make_call(
            shape.get("name"),
            first_of(given, ("id", "call_id")),
            first_of(shape, _ARGUMENTS) if shape else call,
        )


def _as_items(value: object) -> list[object]:
    """A list as it is, anything else as a list of one; no items for an empty value."""
    return value if isinstance(value, list) else [value] if value else []
