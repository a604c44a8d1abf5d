"""What a dialect promises: the messages of an agent loop, taken apart and put together.

Loops hold their conversation in the shape that their model's API wants. A dialect reads
one message of that shape as parts and can put another text in place of a tool's result.
It never raises on bad content and never changes the message it was given.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from backstory.runs.dialects.content import write_text
from backstory.text.json_values import JsonObject
from backstory.values.history import Role

_TOOL_ROLES = (Role.TOOL_CALL, Role.TOOL_RESULT)


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a message holds: something said, a tool call or a tool result.

    What the model reads but nobody said (a system prompt, thinking that is sent back)
    has the role ``system``. ``media`` counts images, sounds and files: in the text each
    of them is a mark such as ``[image]``, which for a result stands at the end.
    ``is_fixed`` is for a result that its API wants back as it was.
    """

    role: Role
    text: str
    tool_name: str | None = None
    call_id: str | None = None
    media: int = 0
    is_fixed: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A part as it was found, and for a result the way to its content.

    The way is keys and numbers, from the message inwards; without one the result stays.
    """

    part: Part
    place: tuple[str | int, ...] = ()


class Dialect(Protocol):
    """One shape of messages, known by what its messages look like."""

    name: str
    # The type of the block in which a tool's result has text beside its images.
    text_type: str = "text"

    def recognises(self, message: JsonObject) -> bool:
        """Whether a message is in this shape."""
        ...

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        """What the message holds, in order, as small as it comes."""
        ...

    def find_said(self, reply: JsonObject) -> Sequence[JsonObject] | None:
        """The messages in what the API answered; None if it is no answer of this API.

        They are what a loop adds to its messages.
        """
        return None

    def parts(self, message: JsonObject) -> list[Part]:
        """What the message holds, in order; nothing for what has no words.

        Calls and results are there even when they are empty.
        """
        return [piece.part for piece in _merge(self.iter_pieces(message))]

    def replace_results(
        self, message: JsonObject, texts: Mapping[int, str]
    ) -> JsonObject:
        """A copy in which some tool results have another text; nothing else changes.

        ``texts`` are keyed by the place of the result among the message's parts. Images
        beside a text stay; so does a result that is fixed. The copy shares with the
        message what did not change.
        """
        changed = dict(message)
        for number, piece in enumerate(_merge(self.iter_pieces(message))):
            text = texts.get(number, piece.part.text)
            if piece.place and text != piece.part.text:
                changed = _put(changed, piece.place, text, self.text_type)
        return changed


def _merge(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces, with what one role says in a row as one, and without empty ones."""
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


# Any: a message is JSON, and the way leads through anything in it.
def _put(value: Any, place: tuple[str | int, ...], text: str, text_type: str) -> Any:
    """A copy of a value with another text in the content that the way leads to."""
    if not place:
        return write_text(value, text, text_type=text_type)
    key, *rest = place
    copy = value.copy()
    inner = value.get(key) if isinstance(value, dict) else value[key]
    copy[key] = _put(inner, tuple(rest), text, text_type)
    return copy
