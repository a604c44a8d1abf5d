"""Merge two long-term memories: all of ours, and what only theirs has.

Nothing of ours is changed. What is missing is added as it was written, below the same
headings. What both say in different words is kept twice: that is for a person to judge.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from backstory.notes.duplicates import NormalizedFact, is_same_fact, normalize_fact
from backstory.notes.facts import folded_name
from backstory.notes.match import item_text
from backstory.text.markdown.lines import fence_of, is_blank, splice, split_bom
from backstory.text.markdown.outline import (
    Block,
    BlockKind,
    Heading,
    Outline,
    read_outline,
)

_STATEMENTS = (BlockKind.ITEM, BlockKind.TEXT)
_UNPLACED = "Imported"
_COMMENT_END = "-->"
_MAX_INDENT = 3


def merge_memories(ours: str, theirs: str) -> tuple[str, int]:
    """Our text with the blocks that only theirs has, and the number of these blocks.

    A block is a list item with everything in it, a paragraph or a fence. It is known
    when ours says the same anywhere.
    """
    their_outline = read_outline(split_bom(theirs)[1])
    bom, text = split_bom(ours)
    blocks = [b for b in their_outline.blocks if b.kind is not BlockKind.FRONT_MATTER]
    if is_blank(text):
        return theirs, len(blocks)
    known = _Known(read_outline(text))
    missing = [block for block in blocks if known.add(their_outline, block)]
    sections = groupby(missing, key=lambda block: their_outline.path_at(block.first))
    for path, group in sections:
        text = _add_blocks(
            text, _own_path(their_outline, path), their_outline, [*group]
        )
    return bom + text, len(missing)


class _Known:
    """The blocks that are there; facts are compared as ``is_same_fact`` does."""

    def __init__(self, outline: Outline) -> None:
        self._facts: dict[tuple[str, ...], list[NormalizedFact]] = {}
        self._raw: set[str] = set()
        for block in outline.blocks:
            self.add(outline, block)
        for item in outline.items:
            self._add_statement(item_text(outline, item, head_only=True))

    def add(self, outline: Outline, block: Block) -> bool:
        """Add a block; returns whether it is new."""
        raw = "\n".join(_lines_of(outline, block))
        if block.kind in _STATEMENTS:
            item = outline.item_at(block.first)
            return self._add_statement(
                raw if item is None else item_text(outline, item)
            )
        is_new = raw not in self._raw
        self._raw.add(raw)
        return is_new

    def _add_statement(self, text: str) -> bool:
        fact = normalize_fact(text)
        alike = self._facts.setdefault(fact.words, [])
        is_new = not any(is_same_fact(fact, each) for each in alike)
        alike.append(fact)
        return is_new


def _lines_of(outline: Outline, block: Block) -> list[str]:
    """The lines of a block, without indentation that could make it part of another."""
    lines = [line.rstrip() for line in outline.lines[block.first : block.end]]
    if block.kind is BlockKind.TEXT:
        return [line.lstrip() for line in lines]
    indent = _spaces(lines[0])
    if indent > _MAX_INDENT or lines[0].startswith("\t"):
        return lines  # indented code
    return [line.removeprefix(" " * min(indent, _spaces(line))) for line in lines]


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _own_path(outline: Outline, path: Sequence[Heading]) -> tuple[Heading, ...]:
    """The headings below the title, if a single heading of the first level is one."""
    titles = [heading for heading in outline.headings if heading.level == 1]
    return tuple(each for each in path if len(titles) != 1 or each.level > 1)


def _key(path: Sequence[Heading]) -> tuple[str, ...]:
    return tuple(folded_name(heading.name) for heading in path)


def _add_blocks(
    text: str, path: tuple[Heading, ...], theirs: Outline, blocks: Sequence[Block]
) -> str:
    """The text with blocks at the end of the section with that path, made if needed."""
    outline = read_outline(text)
    kinds = [block.kind for block in blocks]
    for at, head in _places(outline, path):
        is_list = not head and _ends_with_item(outline, at)
        put = [*head, *_join(theirs, blocks, is_list=is_list)]
        if at and not is_list and not is_blank(outline.lines[at - 1]):
            put = ["", *put]
        if not is_blank("".join(outline.lines[at : at + 1])):
            put = [*put, ""]
        changed = splice(outline.lines, at, at, put)
        after = read_outline(changed)
        made = [block.kind for block in after.blocks_between(at, at + len(put))]
        if made == kinds and outline.is_same_around(after, at, at):
            return changed
    # Between a heading and a comment, no block can become part of another.
    at = _without_blanks(outline, 0, len(outline.lines))
    put = ["", f"## {_UNPLACED}", "", *_join(theirs, blocks, is_list=False), ""]
    closing = [] if at == len(outline.lines) else ["<!-- -->", ""]
    return splice(outline.lines, at, at, [*put, *closing])


def _places(
    outline: Outline, path: tuple[Heading, ...]
) -> Iterator[tuple[int, list[str]]]:
    """The places for a section, the best first, each with the headings to add."""
    own = {_key(_own_path(outline, each)): each for each in reversed(outline.paths)}
    for length in range(len(path), -1, -1):
        found = own.get(_key(path[:length]))
        lacking = [f"{'#' * each.level} {each.name}" for each in path[length:]]
        if found:
            heading = found[-1]
            is_whole = length == len(path)
            end = outline.section_end(heading) if is_whole else len(outline.lines)
            if not is_whole and length:
                end = outline.subtree_end(heading)
            yield _without_blanks(outline, heading.end, end), lacking
        elif not length:
            yield _without_blanks(outline, 0, len(outline.lines)), lacking


def _without_blanks(outline: Outline, first: int, end: int) -> int:
    blocks = outline.blocks_between(first, end)
    if blocks and blocks[-1].is_open:
        end = blocks[-1].first
    while end > first and is_blank(outline.lines[end - 1]):
        end -= 1
    return end


def _ends_with_item(outline: Outline, line: int) -> bool:
    block = outline.block_at(line - 1) if line else None
    return block is not None and block.kind is BlockKind.ITEM


def _join(theirs: Outline, blocks: Sequence[Block], *, is_list: bool) -> list[str]:
    """The lines of blocks, with blank lines between them unless both are items."""
    lines: list[str] = []
    for block in blocks:
        is_item = block.kind is BlockKind.ITEM
        if lines and not (is_list and is_item):
            lines.append("")
        own = _lines_of(theirs, block)
        lines += own
        if block.is_open:
            # At the end of their file it did not have to be closed.
            lines.append(fence_of(own[0].strip()) or _COMMENT_END)
        is_list = is_item
    return lines
