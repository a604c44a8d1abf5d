"""Split Markdown into the sections and blocks that are indexed.

Anybody may have written the text. So whatever it contains, splitting takes time in
proportion to its size, and every line is in exactly one block, except for headings,
rules and markers of a daily log.
"""

import re
from collections.abc import Iterator

from backstory.notes.daily_logs import is_marker
from backstory.text.markdown.lines import Lines
from backstory.text.markdown.outline import Block, BlockKind, Heading, iter_parts
from backstory.text.tokens import BYTES_PER_TOKEN
from backstory.values.structs import FrozenStruct


class Section(FrozenStruct):
    """What is under one heading, as written.

    ``heading`` is the path of headings, such as ``Backstory > Style``; it is empty
    before the first heading. A block is a paragraph, a list item with everything in it,
    a code fence, a table or a quote. The bullet of a list item is left out; its number
    is not.
    """

    heading: str
    blocks: tuple[str, ...]


# -- sections -----------------------------------------------------------------

_BULLET = re.compile(r"[ \t]*[-+*][ \t]*")


def iter_sections(text: str) -> Iterator[Section]:
    """The sections of a Markdown text in order, each with its blocks.

    A heading without blocks of its own only appears in the paths of the headings below
    it. Front matter is the first block. Lists and headings inside a quote, an item or a
    fence are part of that block. An underlined heading has one line: several lines
    above a rule are a paragraph, since that is what people mean by it.
    """
    lines = Lines(text.replace("\r\n", "\n"))
    path: list[Heading] = []
    blocks: list[str] = []
    for part in iter_parts(lines):
        if isinstance(part, Heading):
            if blocks:
                yield Section(_to_text(path), tuple(blocks))
                blocks = []
            path = [outer for outer in path if outer.level < part.level] + [part]
        elif block := _read_block(part, lines):
            blocks.append(block)
    if blocks:
        yield Section(_to_text(path), tuple(blocks))


def _to_text(path: list[Heading]) -> str:
    return " > ".join(heading.name for heading in path if heading.name)


def _read_block(block: Block, lines: Lines) -> str:
    """The text of a block without blank lines around it; empty for a marker."""
    text = lines.join(block.first, block.end)
    if block.kind is BlockKind.ITEM:
        bullet = _BULLET.match(text)
        text = text[bullet.end() :] if bullet else text
    elif block.kind is BlockKind.HTML and all(map(is_marker, text.splitlines())):
        return ""
    return _without_blank_lines(text)


def _without_blank_lines(text: str) -> str:
    """The text from its first line that is not blank to its last."""
    first = len(text) - len(text.lstrip())
    last = len(text.rstrip())
    if not last:
        return ""
    end = text.find("\n", last)
    return text[text.rfind("\n", 0, first) + 1 : end if end >= 0 else len(text)]


# -- groups of blocks ----------------------------------------------------------------

_BETWEEN = b"\n\n"


def group_blocks(section: Section, *, max_tokens: int) -> list[tuple[str, ...]]:
    """The blocks in order, in groups of at most ``max_tokens``.

    The blank lines between blocks count, too. A larger block is cut at line ends, a
    larger line at spaces, and if there are none, anywhere.
    """
    max_bytes = max_tokens * BYTES_PER_TOKEN
    groups: list[list[str]] = []
    room = 0
    for block in section.blocks:
        for piece in _cut(block, max_bytes):
            needed = len(_BETWEEN) + len(piece)
            if not groups or needed > room:
                groups.append([])
                room = max_bytes + len(_BETWEEN)
            groups[-1].append(piece.decode(errors="surrogatepass"))
            room -= needed
    return [tuple(group) for group in groups]


def _cut(block: str, max_bytes: int) -> Iterator[bytes]:
    """The block in pieces of at most ``max_bytes``; only white space is left out."""
    data = block.encode(errors="surrogatepass")
    start = 0
    while len(data) - start > max_bytes:
        # One byte more than fits: if it is a line end or a space, it is dropped.
        end = start + max_bytes + 1
        cut = max(data.rfind(b"\n", start, end), start)
        if not data[start:cut].strip():
            cut = max(data.rfind(b" ", start, end), start)
        if not data[start:cut].strip():
            cut = end - 1
            while _is_inside_character(data[cut]):
                cut -= 1
        if piece := data[start:cut].strip(b"\n"):
            yield piece
        start = cut + (data[cut : cut + 1] in (b"\n", b" "))
    if data[start:].strip():
        yield data[start:].strip(b"\n")


def _is_inside_character(byte: int) -> bool:
    return byte & 0b1100_0000 == 0b1000_0000
