"""What the user wrote, verbatim, with code set apart and long texts folded."""

import re
from collections.abc import Sequence

from markupsafe import Markup

from backstory.render.people.prose import code_to_html
from backstory.values.structs import FrozenStruct

# A message of the user with more lines than ``_MAX_LINES`` is folded. A line that is
# too long for one row counts as several, except in code, which scrolls in its box.
_MAX_LINES = 40
_FOLDED_LINES = 30
_LINE_CHARS = 100
_MAX_CODE_LINES = 25
# A line that opens or closes a block of code, and the language it names.
_FENCE = re.compile(r" {0,3}+(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]{0,20}+)[^`\n]*+")


class TextPiece(FrozenStruct):
    """A piece of a text; ``language`` is set for a block of code, and may be empty."""

    text: str
    language: str | None = None


class ShownPiece(FrozenStruct):
    """A piece of the user's text; ``html`` is set if it is code that was coloured."""

    piece: TextPiece
    html: Markup | None = None

    @property
    def is_code(self) -> bool:
        return self.piece.language is not None


def has_fences(text: str) -> bool:
    """Whether a text may have code in it."""
    return "```" in text or "~~~" in text


def split_fences(text: str) -> list[TextPiece]:
    """Split a text into pieces: fenced code without its fences, and the text between.

    A fence that is never closed is no block: what follows is part of the text.
    """
    pieces: list[TextPiece] = []
    lines = text.split("\n")
    # By character, the length of a fence that is never closed: nothing closes a later
    # one of that length or more either, and searching again would take long.
    unclosed: dict[str, int] = {}
    start = at = 0
    while at < len(lines):
        opened = _FENCE.fullmatch(lines[at])
        fence = opened[1] if opened else ""
        if not opened or len(fence) >= unclosed.get(fence[0], len(text) + 1):
            at += 1
            continue
        end = _find_end(lines, at + 1, fence)
        if end is None:
            unclosed[fence[0]] = len(fence)
            continue
        if at > start:
            pieces.append(TextPiece("\n".join(lines[start:at])))
        pieces.append(TextPiece("\n".join(lines[at + 1 : end]), opened[2]))
        start = at = end + 1
    if start < len(lines):
        pieces.append(TextPiece("\n".join(lines[start:])))
    return pieces


def _find_end(lines: list[str], start: int, fence: str) -> int | None:
    """The line where a block of code ends; None if it never does."""
    for number in range(start, len(lines)):
        closing = lines[number].strip()
        if len(closing) >= len(fence) and not closing.strip(fence[0]):
            return number
    return None


def fold_pieces(pieces: Sequence[TextPiece]) -> tuple[list[TextPiece], list[TextPiece]]:
    """The pieces that are shown at first, and those that are folded, if any."""
    if sum(map(_count_lines, pieces)) <= _MAX_LINES:
        return list(pieces), []
    shown: list[TextPiece] = []
    left = _FOLDED_LINES
    for number, piece in enumerate(pieces):
        height = _count_lines(piece)
        if height <= left or (piece.language is not None and not shown):
            shown.append(piece)
            left -= height
            continue
        begin, rest = _split_lines(piece, left)
        return [*shown, *begin], [*rest, *pieces[number + 1 :]]
    return shown, []


def _split_lines(
    piece: TextPiece, left: int
) -> tuple[list[TextPiece], list[TextPiece]]:
    """As many lines as there is room for, and the rest; code is not split."""
    if piece.language is not None:
        return [], [piece]
    lines = piece.text.split("\n")
    taken = 0
    while taken < len(lines) and (left := left - _count_rows(lines[taken])) >= 0:
        taken += 1
    begin = [TextPiece("\n".join(lines[:taken]))] if taken else []
    return begin, [TextPiece("\n".join(lines[taken:]))]


def _count_lines(piece: TextPiece) -> int:
    """Roughly how many lines a piece takes on the screen."""
    if piece.language is not None:
        return min(piece.text.count("\n") + 1, _MAX_CODE_LINES)
    return sum(map(_count_rows, piece.text.split("\n")))


def _count_rows(line: str) -> int:
    return 1 + len(line) // _LINE_CHARS


def show_piece(piece: TextPiece, *, is_coloured: bool) -> ShownPiece:
    """A piece as it is shown; only code is ever coloured."""
    if not (is_coloured and piece.language):
        return ShownPiece(piece)
    return ShownPiece(piece, code_to_html(piece.text, piece.language))
