"""Split Markdown into the sections and blocks that are indexed.

Anybody may have written the text. So whatever it contains, splitting takes time in
proportion to its size, and every line is in exactly one block, unless it is a heading,
a rule or a marker of a daily log.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from backstory.notes.daily_logs import is_marker
from backstory.text.markdown.lines import MAX_HEADING_CHARS, front_matter_end
from backstory.text.tokens import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class Section:
    """What is under one heading, as written.

    ``heading`` is the path of headings, such as ``Backstory > Style``; it is empty
    before the first heading. A block is a paragraph, a list item with everything in it,
    a code fence, a table or a quote. The bullet of a list item is left out.
    """

    heading: str
    blocks: tuple[str, ...]


# -- sections -----------------------------------------------------------------

_MARKER = re.compile(r"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])[ \t]*")
_QUOTE = re.compile(r" {0,3}>")


@cache
def _block_parser() -> "MarkdownIt":
    # Without quotes, whose look-ahead makes some texts quadratic; without link
    # definitions, which leave no trace; without tables, since a million cells are three
    # million tokens. Each of them becomes a paragraph, which ends at the same line.
    # Loaded for the first note: most commands read none.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("zero", {"html": True})
    parser.enable(["code", "fence", "hr", "list", "html_block", "heading", "lheading"])
    parser.block.ruler.at("list", _outermost_list, {"alt": ["paragraph"]})
    return parser


def _outermost_list(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Parse lists, but not lists within lists: an item stays as written.

    So a thousand nested lists cost no more than one.
    """
    if state.level > 0 and not silent:
        return False
    # Loaded with the parser.
    from markdown_it.rules_block import list_block

    return list_block(state, start, end, silent)


def split_sections(text: str) -> list[Section]:
    """The sections of a Markdown text in order, each with its blocks.

    A heading without blocks of its own only appears in the paths of the headings below
    it. Front matter is the first block. Lists and headings inside a quote, an item or a
    fence are part of that block. An underlined heading has one line: several lines
    above a rule are a paragraph, since that is what people mean by it.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    body_start = front_matter_end(lines)
    sections = [("", [_as_block(lines[:body_start])])]
    lines = lines[body_start:]
    path: list[tuple[int, str]] = []
    parser = _block_parser()
    tokens = parser.block.parse("\n".join(lines), parser, {}, []) or []
    for index, token in enumerate(tokens):
        if token.map is None or token.level > (token.type == "list_item_open"):
            continue
        part = lines[token.map[0] : token.map[1]]
        if token.type == "heading_open" and _is_heading(tokens[index + 1].content):
            level, title = int(token.tag[1:]), tokens[index + 1].content
            path = [outer for outer in path if outer[0] < level] + [(level, title)]
            sections.append((" > ".join(name for _, name in path if name), []))
        else:
            sections[-1][1].extend(_blocks(token, part))
    full = [(heading, tuple(filter(None, blocks))) for heading, blocks in sections]
    return [Section(heading, blocks) for heading, blocks in full if blocks]


def _is_heading(title: str) -> bool:
    return (
        len(title) <= MAX_HEADING_CHARS
        and "\n" not in title
        and not _QUOTE.match(title)
    )


def _blocks(token: "Token", part: list[str]) -> Iterator[str]:
    """The blocks in the lines of a token; some may be empty."""
    match token.type:
        case "list_item_open":
            yield _as_block([_MARKER.sub("", part[0], count=1), *part[1:]])
        case "paragraph_open" | "heading_open":
            if token.markup == "-":
                part = part[:-1]
            # A quote may begin right below a paragraph, and includes what follows it.
            quote = next((n for n, line in enumerate(part) if _QUOTE.match(line)), 0)
            yield _as_block(part[:quote])
            yield _as_block(part[quote:])
        case "html_block" if all(map(is_marker, part)):
            return
        case "fence" | "code_block" | "html_block":
            yield _as_block(part)


def _as_block(lines: list[str]) -> str:
    """The lines as one text, without blank lines around it."""
    full = [number for number, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""


# -- groups of blocks ----------------------------------------------------------------

_BETWEEN = b"\n\n"


def group_blocks(section: Section, *, max_tokens: int) -> list[tuple[str, ...]]:
    """The blocks in order, in groups of at most ``max_tokens``.

    The blank lines between blocks count too. A larger block is cut at line ends, a
    larger line at spaces, and where there are none, anywhere.
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
    """The block in pieces of at most ``max_bytes``; only blanks are left out."""
    data = block.encode(errors="surrogatepass")
    start = 0
    while len(data) - start > max_bytes:
        # One more than fits: a line end or a space there is dropped.
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
