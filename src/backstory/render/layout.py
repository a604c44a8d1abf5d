"""Columns and lines that fit a terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from backstory.text.escape import neutralize

# Stands before every line of a text from history, so that none passes for one of ours.
GUTTER = "│ "
# Terminals jump further, to places that are not counted here.
_TAB_WIDTH = 4
_MIN_TEXT_WIDTH = 10
_INDENT = "  "
_BETWEEN = " · "
# A sentence in a narrower column is hard to read.
_MIN_COLUMN_WIDTH = 40
# Nobody reads a longer name or path; as JSON it is whole.
_MAX_CELL_CHARS = 1_000
# Marks take no room of their own: the characters of one line are at most so many times
# its width.
_CHARS_PER_CELL = 8
# Signs that we print ourselves, and that take one column.
_NARROW_SIGNS = dict.fromkeys(map(ord, "│↳…—–·"), " ")


# Styles a kind of text (such as bold, dim) for a terminal; elsewhere, changes nothing.
Style = Callable[[str, str], str]


def plain_style(text: str, _kind: str) -> str:
    return text


def render_columns(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: set[int] | frozenset[int] = frozenset(),
    width: int | None,
    most: Mapping[int, int] | None = None,
    is_whole: bool = False,
) -> Iterator[str]:
    """Aligned columns; with a ``width``, the last column is cut to fit a terminal.

    ``most`` is how wide some columns can be; a longer cell does not widen its column,
    and moves its own row only.
    With ``is_whole``, nothing is cut: the last column is wrapped, and stands below the
    others where it has little room.
    """
    rows = [[to_cell(cell) for cell in row] for row in rows]
    lengths = [
        [cell_len(row[index]) for row in (heads, *rows)] for index in range(len(heads))
    ]
    for index, widest in (most or {}).items():
        lengths[index] = [each for each in lengths[index] if each <= widest]
    widths = [max(column) for column in lengths]
    for row in (heads, *rows):
        cells = [
            " " * (widths[index] - cell_len(cell)) + cell
            if index in right
            else cell + " " * (widths[index] - cell_len(cell))
            for index, cell in enumerate(row[:-1])
        ]
        line = "  ".join([*cells, row[-1]]).rstrip()
        if width is None:
            yield line
        elif is_whole:
            yield from _wrap_row(cells, row, width, longest=widths[-1])
        else:
            yield cut_to_width(line, width)


def _wrap_row(
    cells: Sequence[str], row: Sequence[str], width: int, *, longest: int
) -> Iterator[str]:
    """A row whose last cell goes on in further lines, or stands below the others."""
    before = "".join(f"{cell}  " for cell in cells)
    room = width - cell_len(before)
    if room >= min(longest, _MIN_COLUMN_WIDTH):
        for piece in wrap_to_width(row[-1], room):
            yield (before + piece).rstrip()
            before = " " * cell_len(before)
        return
    if cell_len(before) - len("  ") <= width:
        yield before.rstrip()
    else:
        yield from wrap_indented("  ".join(row[:-1]), width)
    for piece in wrap_to_width(row[-1], width - len(_INDENT)):
        yield (_INDENT + piece).rstrip()


def cell_len(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if _is_narrow(text):
        return len(text)
    # Slow to import, and many texts do without.
    from rich import cells

    return cells.cell_len(text)


def _is_narrow(text: str) -> bool:
    """Whether every character takes one column, as far as that is easily seen."""
    return text.isascii() or text.translate(_NARROW_SIGNS).isascii()


def cut_to_width(line: str, width: int) -> str:
    """As much of a line as fits a terminal of this width, with an ellipsis."""
    if cell_len(line) <= width:
        return line
    return _fit(line, width - 1).rstrip() + "…"


def _fit(text: str, width: int) -> str:
    """The beginning of a text that takes at most so many columns, but something."""
    if _is_narrow(text):
        return text[:width]
    # Slow to import, and many texts do without.
    from rich import cells

    # Marks without a letter are no cells at all.
    return next(iter(cells.chop_cells(text, width)), text)


def wrap_to_width(line: str, width: int) -> Iterator[str]:
    """Break a line into several that fit a terminal, between words if possible."""
    width = max(width, _MIN_TEXT_WIDTH)
    start, most = 0, _CHARS_PER_CELL * width
    while (rest := line[start : start + most]) and (
        start + len(rest) < len(line) or cell_len(rest) > width
    ):
        fits = _fit(rest, width)
        space = fits.rfind(" ", len(fits) // 2)
        is_between_words = line[start + len(fits)] == " "
        at = len(fits) if space < 0 or is_between_words else space
        yield rest[:at].rstrip()
        start += at
        while line.startswith(" ", start):
            start += 1
    yield rest


def wrap_indented(line: str, width: int | None) -> Iterator[str]:
    """A line of ours with names in it: what does not fit goes on indented."""
    if width is None:
        yield line
        return
    first, *others = wrap_to_width(line, width - len(_INDENT))
    yield first
    yield from (_INDENT + piece for piece in others)


def wrap_facts(
    facts: Sequence[str], width: int | None, *, indent: str = _INDENT
) -> Iterator[str]:
    """Facts with dots between them: where they do not fit, a line ends with one.

    The lines after the first begin with ``indent``.
    """
    if width is None:
        yield _BETWEEN.join(facts)
        return
    lines = [""]
    for fact in facts:
        longer = f"{lines[-1]}{_BETWEEN}{fact}" if lines[-1] else fact
        if not lines[-1] or cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(indent + fact)
    for line in lines:
        # One fact alone may be too long.
        yield from [line] if cell_len(line) <= width else wrap_indented(line, width)


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
