"""Two long-term memories made one: all of ours, and what only theirs says.

Nothing of ours is changed. What is missing comes below the headings it had, as it was
written. The same said in other words stays twice, since that is for a person to judge.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from backstory.notes.duplicates import Said, read_said, says_the_same
from backstory.notes.facts import folded_name
from backstory.notes.match import text_of
from backstory.text.markdown.lines import fence_of, is_blank, splice, split_bom
from backstory.text.markdown.outline import (
    Block,
    BlockKind,
    Heading,
    Outline,
    read_outline,
)

_SAYING = (BlockKind.ITEM, BlockKind.TEXT)
_UNPLACED = "Imported"
_COMMENT_END = "-->"
_MAX_INDENT = 3


def merge_memories(ours: str, theirs: str) -> tuple[str, int]:
    """Our text with the blocks that only theirs has; and how many these are.

    A block is an item of a list with all that is in it, a paragraph or a fence. It is
    known when the same is said anywhere in ours.
    """
    their_outline = read_outline(split_bom(theirs)[1])
    bom, text = split_bom(ours)
    blocks = [b for b in their_outline.blocks if b.kind is not BlockKind.FRONT_MATTER]
    if is_blank(text):
        return theirs, len(blocks)
    known = _Known(read_outline(text))
    missing = [block for block in blocks if known.takes(their_outline, block)]
    sections = groupby(missing, key=lambda block: their_outline.path_at(block.first))
    for path, group in sections:
        text = _add_blocks(
            text, _own_path(their_outline, path), their_outline, [*group]
        )
    return bom + text, len(missing)


class _Known:
    """What has been said, to look it up; facts are compared without case and signs."""

    def __init__(self, outline: Outline) -> None:
        self._said: dict[tuple[str, ...], list[Said]] = {}
        self._raw: set[str] = set()
        for block in outline.blocks:
            self.takes(outline, block)
        for item in outline.items:
            self._takes_said(text_of(outline, item, head_only=True))

    def takes(self, outline: Outline, block: Block) -> bool:
        """Whether it is new; from now on it is known."""
        raw = "\n".join(_lines_of(outline, block))
        if block.kind in _SAYING:
            item = outline.item_at(block.first)
            return self._takes_said(raw if item is None else text_of(outline, item))
        is_new = raw not in self._raw
        self._raw.add(raw)
        return is_new

    def _takes_said(self, text: str) -> bool:
        said = read_said(text)
        alike = self._said.setdefault(said.words, [])
        is_new = not any(says_the_same(said, each) for each in alike)
        alike.append(said)
        return is_new


def _lines_of(outline: Outline, block: Block) -> list[str]:
    """The lines of a block, without an indent that could make it part of something."""
    lines = [line.rstrip() for line in outline.lines[block.first : block.end]]
    if block.kind is BlockKind.TEXT:
        return [line.lstrip() for line in lines]
    indent = _spaces(lines[0])
    if indent > _MAX_INDENT or lines[0].startswith("\t"):
        return lines  # code, by its indent
    return [line.removeprefix(" " * min(indent, _spaces(line))) for line in lines]


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _own_path(outline: Outline, path: Sequence[Heading]) -> tuple[Heading, ...]:
    """The headings below the title, which is the only one of the first level."""
    titles = [heading for heading in outline.headings if heading.level == 1]
    return tuple(each for each in path if len(titles) != 1 or each.level > 1)


def _key(path: Sequence[Heading]) -> tuple[str, ...]:
    return tuple(folded_name(heading.name) for heading in path)


def _add_blocks(
    text: str, path: tuple[Heading, ...], theirs: Outline, blocks: Sequence[Block]
) -> str:
    """The text with blocks at the end of the section of that path, made if needed."""
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
    # Between a heading and a comment nothing becomes part of anything.
    at = _without_blanks(outline, 0, len(outline.lines))
    put = ["", f"## {_UNPLACED}", "", *_join(theirs, blocks, is_list=False), ""]
    behind = [] if at == len(outline.lines) else ["<!-- -->", ""]
    return splice(outline.lines, at, at, [*put, *behind])


def _places(
    outline: Outline, path: tuple[Heading, ...]
) -> Iterator[tuple[int, list[str]]]:
    """The places for a section, the best first, each with the headings it lacks."""
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
    """The lines of blocks with a blank one between, but items follow each other."""
    lines: list[str] = []
    for block in blocks:
        is_item = block.kind is BlockKind.ITEM
        if lines and not (is_list and is_item):
            lines.append("")
        own = _lines_of(theirs, block)
        lines += own
        if block.is_open:
            # Where they stood last, nobody had to close it.
            lines.append(fence_of(own[0].strip()) or _COMMENT_END)
        is_list = is_item
    return lines
