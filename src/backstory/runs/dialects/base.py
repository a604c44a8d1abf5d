"""What a dialect promises: to take an agent loop's messages apart, and change them.

Loops keep their conversation in the shape that their model's API requires. A dialect
reads one message of that shape as parts, and can replace the text of a tool's result.
It never raises on bad content, and never changes the message that it was given.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from backstory.runs.dialects.content import write_text
from backstory.text.json_values import JsonObject
from backstory.values.history import Role
from backstory.values.structs import FrozenStruct, replace

_TOOL_ROLES = (Role.TOOL_CALL, Role.TOOL_RESULT)


class Part(FrozenStruct):
    """One thing that a message contains: something said, a tool call or a tool result.

    Anything that the model reads but nobody said (a system prompt, thinking that is
    sent back) has the role ``system``. ``media`` counts images, sounds and files: in
    the text, each of them is a mark such as ``[image]``; in a result, the marks come
    last. ``is_fixed``: the API requires this result to come back unchanged.
    """

    role: Role
    text: str
    tool_name: str | None = None
    call_id: str | None = None
    media: int = 0
    is_fixed: bool = False


class Piece(FrozenStruct):
    """A part as it was found, and, for a result, the place of its content.

    ``place`` is the path to it, keys and indexes; without one, the result is fixed.
    """

    part: Part
    place: tuple[str | int, ...] = ()


class Dialect(Protocol):
    """One message format."""

    name: str
    # The type of the block that contains the text of a tool's result beside its images.
    text_type: str = "text"

    def recognizes(self, message: JsonObject) -> bool:
        """Whether a message is in this format."""
        ...

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        """What the message contains, in order, in the smallest pieces."""
        ...

    def find_said(self, reply: JsonObject) -> Sequence[JsonObject] | None:
        """The messages in a reply that a loop adds; None if it is not from this API."""
        return None

    def parts(self, message: JsonObject) -> list[Part]:
        """What the message contains, in order; parts without words are left out.

        Calls and results are kept even if they are empty.
        """
        return [piece.part for piece in _merge(self.iter_pieces(message))]

    def replace_results(
        self, message: JsonObject, texts: Mapping[int, str]
    ) -> JsonObject:
        """A copy in which some tool results have a new text; nothing else changes.

        ``texts`` are keyed by the position of the result among the message's parts.
        Images beside a text stay, and so do fixed results. The copy shares everything
        that did not change with the message.
        """
        changed = dict(message)
        for number, piece in enumerate(_merge(self.iter_pieces(message))):
            text = texts.get(number, piece.part.text)
            if piece.place and text != piece.part.text:
                changed = _put(changed, piece.place, text, self.text_type)
        return changed


def _merge(pieces: Iterable[Piece]) -> list[Piece]:
    """Join consecutive pieces with the same role, and drop empty ones."""
    merged: list[Piece] = []
    for piece in pieces:
        part = piece.part
        last = merged[-1].part if merged else None
        if part.role in _TOOL_ROLES:
            merged.append(piece)
        elif part.text and last is not None and last.role is part.role:
            text, media = f"{last.text}\n{part.text}", last.media + part.media
            merged[-1] = Piece(replace(last, text=text, media=media))
        elif part.text:
            merged.append(piece)
    return merged


# Any: a message is JSON, and the path leads through anything in it.
def _put(value: Any, place: tuple[str | int, ...], text: str, text_type: str) -> Any:
    """A copy of a value with a different text in the content at ``place``."""
    if not place:
        return write_text(value, text, text_type=text_type)
    key, *rest = place
    copy = value.copy()
    inner = value.get(key) if isinstance(value, dict) else value[key]
    copy[key] = _put(inner, tuple(rest), text, text_type)
    return copy
