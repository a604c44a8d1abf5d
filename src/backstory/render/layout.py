"""Columns and lines that fit a terminal."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

from backstory.text.escape import neutralize

_MIN_TEXT_WIDTH = 10


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
    while cell_len(line) > width:
        fits = chop_cells(line, width)[0]
        space = fits.rfind(" ", len(fits) // 2)
        at = len(fits) if space < 0 or line[len(fits)] == " " else space
        yield line[:at].rstrip()
        line = line[at:].lstrip(" ")
    yield line


def to_cell(text: str) -> str:
    """Make text from history safe to print, on one line."""
    return neutralize(text).replace("\n", " ").replace("\t", " ")
