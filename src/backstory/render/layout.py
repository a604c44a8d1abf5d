"""Columns and lines that fit a terminal."""

from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

from backstory.text.escape import neutralize

# Stands before every line of a text from history, so that none passes for one of ours.
GUTTER = "│ "
# Terminals jump further, to places that are not counted here.
_TAB_WIDTH = 4
_MIN_TEXT_WIDTH = 10
# Nobody reads a longer name or path; as JSON it is whole.
_MAX_CELL_CHARS = 1_000
# Marks take no room of their own: the characters of one line are at most so many times
# its width.
_CHARS_PER_CELL = 8


def render_columns(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: set[int] | frozenset[int] = frozenset(),
    width: int | None,
) -> Iterator[str]:
    """Aligned columns; with a ``width``, the last column is cut to fit a terminal."""
    rows = [[to_cell(cell) for cell in row] for row in rows]
    widths = [
        max(cell_len(row[index]) for row in (heads, *rows))
        for index in range(len(heads))
    ]
    for row in (heads, *rows):
        cells = [
            " " * (widths[index] - cell_len(cell)) + cell
            if index in right
            else cell + " " * (widths[index] - cell_len(cell))
            for index, cell in enumerate(row[:-1])
        ]
        line = "  ".join([*cells, row[-1]]).rstrip()
        yield line if width is None else cut_to_width(line, width)


def cut_to_width(line: str, width: int) -> str:
    """As much of a line as fits a terminal of this width, with an ellipsis."""
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, width - 1).rstrip() + "…"


def wrap_to_width(line: str, width: int) -> Iterator[str]:
    """Break a line into several that fit a terminal, between words if possible."""
    width = max(width, _MIN_TEXT_WIDTH)
    start, most = 0, _CHARS_PER_CELL * width
    while (rest := line[start : start + most]) and (
        start + len(rest) < len(line) or cell_len(rest) > width
    ):
        # Marks without a letter are no cells at all.
        fits = next(iter(chop_cells(rest, width)), rest)
        space = fits.rfind(" ", len(fits) // 2)
        is_between_words = line[start + len(fits)] == " "
        at = len(fits) if space < 0 or is_between_words else space
        yield rest[:at].rstrip()
        start += at
        while line.startswith(" ", start):
            start += 1
    yield rest


def quote_lines(
    text: str,
    width: int | None,
    *,
    indent: str = "",
    speaker: str = "",
    mark: Callable[[str], str] = str,
) -> Iterator[str]:
    """A text from history behind a gutter, made safe to print.

    On a terminal its lines are wrapped here, because a terminal would continue them
    before the gutter. The speaker stands left of it, where no text can name another.
    ``mark`` highlights what was found in a line.
    """
    before = f"{speaker} " if speaker else ""
    room = None if width is None else width - cell_len(indent + before + GUTTER)
    for line in neutralize(text).split("\n"):
        pieces = (
            [line] if room is None else wrap_to_width(line.expandtabs(_TAB_WIDTH), room)
        )
        for piece in pieces:
            shown = GUTTER + mark(piece) if piece else GUTTER.rstrip()
            yield indent + before + shown
            before = " " * cell_len(before)


def to_cell(text: str) -> str:
    """Make text from history safe to print, on one line of a readable length."""
    if len(text) > _MAX_CELL_CHARS:
        text = text[: _MAX_CELL_CHARS - 1] + "…"
    return neutralize(text).replace("\n", " ").replace("\t", " ")
