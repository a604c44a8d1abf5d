"""The outline of a Markdown text by its lines: headings, list items, other blocks.

Nothing is lost: the lines together are the text, byte for byte, and an outline only
says what each of them is. So a text can be changed in one place and stay as a person
wrote it everywhere else. Reading takes time in proportion to the length of the text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from enum import StrEnum
from itertools import accumulate

from backstory.text.markdown.lines import (
    MAX_HEADING_CHARS,
    UNDERLINES,
    closes_fence,
    fence_of,
    front_matter_end,
    heading_of,
    indent_of,
    is_blank,
    is_rule,
    is_underline,
    marker_of,
    split_lines,
)
from backstory.values.lazy import lazy_property
from backstory.values.structs import FrozenStruct, Struct, field

# Nobody can read lists that are nested deeper.
_MAX_DEPTH = 20

_BLANK = " \t\r\n"
# How HTML begins, and what the line that ends it contains; None for a blank line.
_HTML = (
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (
        re.compile(r"<(?:script|pre|style|textarea)(?:[\s>]|$)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    (re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s|/?>|$)"), None),
)


class BlockKind(StrEnum):
    """What a block is; a quote or a table is a ``TEXT``."""

    ITEM = "item"
    TEXT = "text"
    CODE = "code"
    HTML = "html"
    FRONT_MATTER = "front_matter"


class Heading(FrozenStruct):
    """A heading and the lines it takes: one, or two if it is underlined."""

    first: int
    end: int
    level: int
    name: str


class Block(Struct):
    """Something on its own below a heading; ``end`` is the line after it.

    ``is_open``: it only ends with the text, because it is a fence or a comment that was
    never closed.
    """

    kind: BlockKind
    first: int
    end: int
    is_open: bool = False


class Item(Struct):
    """An item of a list, with everything in it.

    ``offset`` is where its text begins in its first line, ``column`` where the lines
    that belong to it begin. ``head_end`` is the line after its own text, before the
    first item inside it.
    """

    first: int
    end: int
    head_end: int
    offset: int
    column: int
    marker: str
    depth: int


class Outline(Struct, dict=True):
    """The lines of a text with their ends, and what they are, each in order."""

    lines: Sequence[str]
    headings: list[Heading] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    rules: list[int] = field(default_factory=list)

    @lazy_property
    def _heading_lines(self) -> list[int]:
        return [heading.first for heading in self.headings]

    @lazy_property
    def _block_lines(self) -> list[int]:
        return [block.first for block in self.blocks]

    @lazy_property
    def _item_lines(self) -> list[int]:
        return [item.first for item in self.items]

    @lazy_property
    def paths(self) -> list[tuple[Heading, ...]]:
        """For each heading, the headings above it, outermost first, and itself."""
        paths: list[tuple[Heading, ...]] = []
        path: tuple[Heading, ...] = ()
        for heading in self.headings:
            outer = (each for each in path if each.level < heading.level)
            path = (*outer, heading)
            paths.append(path)
        return paths

    def path_at(self, line: int) -> tuple[Heading, ...]:
        """The headings above a line, outermost first."""
        above = bisect_right(self._heading_lines, line)
        return self.paths[above - 1] if above else ()

    def section_end(self, heading: Heading) -> int:
        """The line of the next heading of any level, or the one after the last line."""
        after = bisect_right(self._heading_lines, heading.first)
        return self._next_heading(after)

    def subtree_end(self, heading: Heading) -> int:
        """The line after the heading and everything below it."""
        after = bisect_right(self._heading_lines, heading.first)
        while after < len(self.headings) and (
            self.headings[after].level > heading.level
        ):
            after += 1
        return self._next_heading(after)

    def _next_heading(self, number: int) -> int:
        is_last = number >= len(self.headings)
        return len(self.lines) if is_last else self.headings[number].first

    def blocks_between(self, first: int, end: int) -> list[Block]:
        """The blocks that begin in these lines."""
        low = bisect_left(self._block_lines, first)
        return self.blocks[low : bisect_left(self._block_lines, end)]

    def block_at(self, line: int) -> Block | None:
        """The block that a line is in."""
        before = bisect_right(self._block_lines, line)
        if not before or line >= self.blocks[before - 1].end:
            return None
        return self.blocks[before - 1]

    def items_between(self, first: int, end: int) -> list[Item]:
        """The items that begin in these lines, however deep."""
        low = bisect_left(self._item_lines, first)
        return self.items[low : bisect_left(self._item_lines, end)]

    def item_at(self, line: int) -> Item | None:
        """The innermost item that a line is in."""
        block = self.block_at(line)
        if block is None:
            return None
        around = self.items_between(block.first, line + 1)
        return next((item for item in reversed(around) if line < item.end), None)

    def has_breaks(self, first: int, end: int) -> bool:
        """Whether a heading or a rule begins in these lines."""
        lines = (*self._heading_lines, *self.rules)
        return any(first <= line < end for line in lines)

    def is_same_around(self, after: "Outline", first: int, end: int) -> bool:
        """Whether a change to these lines leaves all others as what they were."""
        added = len(after.lines) - len(self.lines)

        def place_before(line: int) -> int | None:
            if first <= line < end:
                return None
            return line + added if line >= end else line

        def place_after(line: int) -> int | None:
            return None if first <= line < end + added else line

        return self._shape(place_before) == after._shape(place_after)

    def is_same_without(self, after: "Outline", removed: Set[int]) -> bool:
        """Whether all lines but these are in the changed text, as what they were."""
        kept = [number not in removed for number in range(len(self.lines))]
        places = list(accumulate(kept, initial=0))
        was = self._shape(lambda line: places[line] if kept[line] else None)
        return was == after._shape(lambda line: line)

    def _shape(self, place_of: Callable[[int], int | None]) -> list[object]:
        """What begins on which line; None for a line that does not count."""

        def placed(parts: Iterable[tuple[int, object]]) -> list[object]:
            return [
                (place, part)
                for line, part in parts
                if (place := place_of(line)) is not None
            ]

        return [
            placed((each.first, (each.level, each.name)) for each in self.headings),
            placed((each.first, (each.kind, each.is_open)) for each in self.blocks),
            placed((each.first, (each.marker, each.depth)) for each in self.items),
            placed((line, None) for line in self.rules),
        ]


# -- reading --------------------------------------------------------------------------


def read_outline(text: str) -> Outline:
    """Read the outline of a text, which must not begin with a byte order mark."""
    scan = _Scan(Outline(split_lines(text)))
    for _ in scan.take_all():
        pass
    return scan.outline


def iter_parts(lines: Sequence[str]) -> Iterator[Heading | Block]:
    """The headings and blocks in order, each as soon as its end is known.

    For texts of unknown size and origin: nothing that was returned is kept.
    """
    outline = Outline(lines)
    for _ in _Scan(outline).take_all():
        found: list[Heading | Block] = [*outline.headings, *outline.blocks]
        yield from sorted(found, key=lambda each: each.first)
        outline.headings.clear()
        outline.blocks.clear()
        outline.items.clear()
        outline.rules.clear()


class _Enclosed(Struct):
    """An open fence or piece of HTML, within ``depth`` items."""

    depth: int
    fence: str = ""
    ending: re.Pattern[str] | None = None

    def ends_in(self, content: str) -> bool:
        if self.fence:
            return closes_fence(content, self.fence)
        return self.ending is not None and bool(self.ending.search(content))


class _Scan(Struct):
    """Takes one line after another, and keeps track of what is open."""

    outline: Outline
    # The items that the next line may be in, outermost first.
    open_items: list[Item] = field(default_factory=list)
    block: Block | None = None
    enclosed: _Enclosed | None = None
    # The first line of the paragraph that the last line is in, and its depth.
    paragraph: tuple[int, int] | None = None
    is_quote: bool = False
    last_full: int = -1

    def take_all(self) -> Iterator[None]:
        """Take all lines; yield whenever another heading or block is complete."""
        lines = self.outline.lines
        start = front_matter_end(lines)
        if start:
            self.outline.blocks.append(Block(BlockKind.FRONT_MATTER, 0, start))
        for number in range(start, len(lines)):
            self.take(number, lines[number])
            if self.outline.headings or self.outline.blocks:
                yield
        self.finish()
        yield

    def take(self, number: int, line: str) -> None:
        content = line.strip(_BLANK)
        if not content:
            self._take_blank(number)
            return
        column = indent_of(line)
        if self.enclosed is not None and self._stays_enclosed(column, content):
            self.last_full = number
            return
        depth = len(self.open_items)
        while depth and column < self.open_items[depth - 1].column:
            depth -= 1
        self._take_full(number, line, content, column, depth)
        self.last_full = number

    def finish(self) -> None:
        if self.enclosed is not None and not self.enclosed.depth:
            # Other HTML would be ended by a blank line.
            is_open = bool(self.enclosed.fence or self.enclosed.ending)
            assert self.block is not None
            self.block.is_open = is_open
        self._close_items(0)
        self._close_block()

    def _take_blank(self, number: int) -> None:
        self.paragraph = None
        enclosed = self.enclosed
        if enclosed and not enclosed.fence and enclosed.ending is None:
            self.enclosed = None
        # An item that begins with two blank lines ends there.
        if self.open_items and self.open_items[-1].first == number - 1:
            first = self.outline.lines[number - 1]
            if is_blank(first[self.open_items[-1].offset :]):
                self._close_items(len(self.open_items) - 1)

    def _stays_enclosed(self, column: int, content: str) -> bool:
        enclosed = self.enclosed
        assert enclosed is not None
        depth = enclosed.depth
        if depth and column < self.open_items[depth - 1].column:
            self.enclosed = None
            return False
        if enclosed.ends_in(content):
            self.enclosed = None
        return True

    def _take_full(
        self, number: int, line: str, content: str, column: int, depth: int
    ) -> None:
        inner = column - (self.open_items[depth - 1].column if depth else 0)
        is_same = depth == len(self.open_items)
        if inner >= 4:
            if self.paragraph is None:
                self._begin(number, BlockKind.CODE, depth)
            return
        if self._takes_underline(number, content, depth, is_same):
            return
        heading = heading_of(content)
        if heading is not None:
            self._take_heading(number, heading, depth)
        elif fence := fence_of(content):
            self._begin(number, BlockKind.CODE, depth)
            self.enclosed = _Enclosed(depth, fence)
        elif is_rule(content):
            self._take_rule(number, depth)
        elif (marker := marker_of(content)) and self._may_begin_item(
            content, marker, depth, is_same
        ):
            self._begin_item(number, line, marker, column, depth)
        elif not self._takes_html(number, content, depth):
            self._take_text(number, content, depth)

    def _takes_underline(
        self, number: int, content: str, depth: int, is_same: bool
    ) -> bool:
        """Whether the line only underlines the one before it."""
        if self.paragraph is None or not is_same or not is_underline(content):
            return False
        first, paragraph_depth = self.paragraph
        if self.is_quote or depth != paragraph_depth:
            return False
        self.paragraph = None
        name = self.outline.lines[first].strip(_BLANK)
        is_short = first == number - 1 and len(name) <= MAX_HEADING_CHARS
        if not depth and is_short:
            self.block = None
            heading = Heading(first, number + 1, UNDERLINES[content[0]], name)
            self.outline.headings.append(heading)
        elif not depth and content[0] == "-":
            # After several lines, people mean a rule below a paragraph.
            self._close_block()
            self.outline.rules.append(number)
        return True

    def _take_heading(self, number: int, heading: tuple[int, str], depth: int) -> None:
        if depth:
            self._begin(number, BlockKind.TEXT, depth)
            return
        self._close_items(0)
        self._close_block()
        self.paragraph = None
        self.outline.headings.append(Heading(number, number + 1, *heading))

    def _take_rule(self, number: int, depth: int) -> None:
        if depth:
            self._begin(number, BlockKind.TEXT, depth)
            return
        self._close_items(0)
        self._close_block()
        self.paragraph = None
        self.outline.rules.append(number)

    def _may_begin_item(
        self, content: str, marker: str, depth: int, is_same: bool
    ) -> bool:
        if depth >= _MAX_DEPTH:
            return False
        if self.paragraph is None or self.is_quote or not is_same:
            return True
        # Within a paragraph, a number or a dash at the start of a line is just text.
        if len(content) == len(marker):
            return False
        return marker in ("-", "+", "*", "1.", "1)")

    def _begin_item(
        self, number: int, line: str, marker: str, column: int, depth: int
    ) -> None:
        self._begin(number, BlockKind.ITEM, depth)
        after = len(line) - len(line.lstrip(" \t")) + len(marker)
        rest = line[after:]
        text = rest.lstrip(" \t")
        after_column = column + len(marker)
        start = indent_of(rest, after_column)
        if is_blank(text) or start - after_column > 4:
            start, text = after_column + 1, rest[1:]
        item = Item(number, number + 1, 0, len(line) - len(text), start, marker, depth)
        if depth and not self.open_items[-1].head_end:
            self.open_items[-1].head_end = self.last_full + 1
        self.open_items.append(item)
        self.outline.items.append(item)
        content = text.strip(_BLANK)
        if fence := fence_of(content):
            self.enclosed = _Enclosed(depth + 1, fence)
        elif content and not (
            heading_of(content)
            or is_rule(content)
            or self._opens_html(content, depth + 1)
        ):
            self.paragraph = (number, depth + 1)
            self.is_quote = content.startswith(">")

    def _takes_html(self, number: int, content: str, depth: int) -> bool:
        if not content.startswith("<"):
            return False
        before = self.paragraph
        if not self._opens_html(content, depth, amid_text=before is not None):
            return False
        enclosed = self.enclosed
        self._begin(number, BlockKind.HTML, depth)
        self.enclosed = enclosed
        return True

    def _opens_html(self, content: str, depth: int, *, amid_text: bool = False) -> bool:
        for beginning, ending in _HTML:
            if ending is None and amid_text:
                continue
            found = beginning.match(content)
            if found:
                is_over = ending is not None and ending.search(content, found.end())
                self.enclosed = None if is_over else _Enclosed(depth, "", ending)
                return True
        return False

    def _take_text(self, number: int, content: str, depth: int) -> None:
        is_quote = content.startswith(">")
        is_same = depth == len(self.open_items)
        # A line of text continues a paragraph, whatever its indentation.
        if self.paragraph is not None and (not is_quote or (self.is_quote and is_same)):
            return
        self._begin(number, BlockKind.TEXT, depth)
        self.paragraph = (number, depth)
        self.is_quote = is_quote

    def _begin(self, number: int, kind: BlockKind, depth: int) -> None:
        """Begin something new in the innermost of ``depth`` items, or in none."""
        self._close_items(depth)
        self.paragraph = None
        self.is_quote = False
        self.enclosed = None
        if depth:
            return
        # Lines of indented code are one block, whatever is between them.
        if kind is BlockKind.CODE and self._continues_code(number):
            return
        self._close_block()
        self.block = Block(kind, number, number + 1)

    def _continues_code(self, number: int) -> bool:
        if self.block is None or self.block.kind is not BlockKind.CODE:
            return False
        lines = self.outline.lines
        starts = lines[self.block.first], lines[number]
        return all(indent_of(line) >= 4 for line in starts)

    def _close_items(self, depth: int) -> None:
        while len(self.open_items) > depth:
            item = self.open_items.pop()
            item.end = self.last_full + 1
            item.head_end = item.head_end or item.end

    def _close_block(self) -> None:
        if self.block is not None:
            self.block.end = self.last_full + 1
            self.outline.blocks.append(self.block)
            self.block = None
