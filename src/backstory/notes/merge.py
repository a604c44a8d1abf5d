"""Merge two long-term memories: all of ours, plus what only theirs has.

Nothing of ours is changed. What is missing is added as written, below the same
headings. What both say in different words is kept twice: that is for a person to judge.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from backstory.notes.duplicates import NormalizedFact, is_same_fact, normalize_fact
from backstory.notes.facts import folded_name
from backstory.notes.match import item_text
from backstory.text.markdown.lines import fence_of, insert, is_blank, splice, split_bom
from backstory.text.markdown.outline import (
    Block,
    BlockKind,
    Heading,
    Outline,
    read_outline,
)
from backstory.values.structs import FrozenStruct, field

_STATEMENTS = (BlockKind.ITEM, BlockKind.TEXT)
_UNPLACED = "Imported"
_COMMENT_END = "-->"
_MAX_INDENT = 3


def merge_memories(ours: str, theirs: str) -> tuple[str, int]:
    """Our text with the blocks that only theirs has, and the number of these blocks.

    A block is a list item with everything in it, a paragraph or a fence. It is known if
    ours says the same anywhere.
    """
    their_outline = read_outline(split_bom(theirs)[1])
    bom, text = split_bom(ours)
    blocks = [b for b in their_outline.blocks if b.kind is not BlockKind.FRONT_MATTER]
    if is_blank(text):
        return theirs, len(blocks)
    known = _Known(read_outline(text))
    missing = [block for block in blocks if known.add(their_outline, block)]
    below_title = _title_skipper(their_outline)
    sections = [
        _Section(below_title(path), [*group])
        for path, group in groupby(
            missing, key=lambda block: their_outline.path_at(block.first)
        )
    ]
    if sections:
        text = _add_sections(text, their_outline, sections)
    return bom + text, len(missing)


class _Section(FrozenStruct):
    """Blocks of theirs, and the headings above them."""

    path: tuple[Heading, ...]
    blocks: list[Block]


class _Known:
    """The blocks that exist already; facts are compared with ``is_same_fact``."""

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


def _title_skipper(
    outline: Outline,
) -> Callable[[tuple[Heading, ...]], tuple[Heading, ...]]:
    """Returns the headings below the title: the only heading of the first level."""
    has_title = sum(heading.level == 1 for heading in outline.headings) == 1

    def below_title(path: tuple[Heading, ...]) -> tuple[Heading, ...]:
        return tuple(each for each in path if not has_title or each.level > 1)

    return below_title


def _key(path: Sequence[Heading]) -> tuple[str, ...]:
    return tuple(folded_name(heading.name) for heading in path)


# -- adding ---------------------------------------------------------------------------


def _add_sections(text: str, theirs: Outline, sections: Sequence[_Section]) -> str:
    """The text with these sections: all at once, or half by half if they do not fit."""
    outline = read_outline(text)
    places = _Places(outline)
    changed = _insert_all(outline, _Plan(places, theirs, sections).additions())
    if changed is not None:
        return changed
    if len(sections) == 1:
        return _add_anywhere(places, theirs, sections[0])
    half = len(sections) // 2
    text = _add_sections(text, theirs, sections[:half])
    return _add_sections(text, theirs, sections[half:])


class _Places:
    """Where sections of a text end."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        below_title = _title_skipper(outline)
        self._own = {_key(below_title(each)): each for each in reversed(outline.paths)}
        self._subtree_ends: dict[tuple[str, ...], int] = {}

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return key in self._own or not key

    def end_of_section(self, key: tuple[str, ...]) -> int:
        if key not in self._own:
            return _without_blanks(self.outline, 0, len(self.outline.lines))
        heading = self._own[key][-1]
        return _without_blanks(
            self.outline, heading.end, self.outline.section_end(heading)
        )

    def end_of_subtree(self, key: tuple[str, ...]) -> int:
        """Where a section ends, including those below it."""
        if key not in self._subtree_ends:
            outline, first, end = self.outline, 0, len(self.outline.lines)
            if key in self._own:
                heading = self._own[key][-1]
                first = heading.end
                end = outline.subtree_end(heading) if key else end
            self._subtree_ends[key] = _without_blanks(outline, first, end)
        return self._subtree_ends[key]


class _Addition(FrozenStruct):
    """Lines to insert, and the kinds of blocks that they must become."""

    lines: list[str]
    kinds: list[BlockKind]


class _NewSection(FrozenStruct):
    """A section to be created, including those below it."""

    heading: Heading
    blocks: list[Block] = field(default_factory=list)
    below: "list[_NewSection]" = field(default_factory=list)


class _Plan:
    """Which lines are inserted where in a text."""

    def __init__(
        self, places: _Places, theirs: Outline, sections: Sequence[_Section]
    ) -> None:
        self._places = places
        self._theirs = theirs
        # By line number: blocks for existing sections, and new sections with their
        # depth.
        self._blocks: dict[int, list[Block]] = {}
        self._tops: dict[int, list[tuple[int, _NewSection]]] = {}
        self._made: dict[tuple[str, ...], _NewSection] = {}
        for section in sections:
            self._add(section.path, section.blocks)

    def _add(self, path: tuple[Heading, ...], blocks: list[Block]) -> None:
        key = _key(path)
        known = len(path)
        while key[:known] not in self._made and key[:known] not in self._places:
            known -= 1
        section = self._made.get(key[:known])
        if section is None and known == len(path):
            at = self._places.end_of_section(key)
            self._blocks.setdefault(at, []).extend(blocks)
            return
        for depth in range(known, len(path)):
            new = _NewSection(path[depth])
            if section is None:
                at = self._places.end_of_subtree(key[:known])
                self._tops.setdefault(at, []).append((depth, new))
            else:
                section.below.append(new)
            self._made[key[: depth + 1]] = section = new
        assert section is not None
        section.blocks.extend(blocks)

    def additions(self) -> dict[int, _Addition]:
        outline = self._places.outline
        found: dict[int, _Addition] = {}
        for at in self._blocks.keys() | self._tops.keys():
            blocks = self._blocks.get(at, [])
            is_list = bool(blocks) and _ends_with_item(outline, at)
            added = _Addition(
                _join(self._theirs, blocks, is_list=is_list),
                [block.kind for block in blocks],
            )
            # If several sections end on the same line, the inner ones end first.
            for _, section in sorted(self._tops.get(at, ()), key=lambda top: -top[0]):
                self._write(added, section, is_first=not added.lines)
            found[at] = _set_apart(outline, at, added, is_list=is_list)
        return found

    def _write(self, added: _Addition, section: _NewSection, *, is_first: bool) -> None:
        if not is_first:
            added.lines.append("")
        added.lines.append(_heading_line(section.heading))
        added.lines.extend(_join(self._theirs, section.blocks, is_list=False))
        added.kinds.extend(block.kind for block in section.blocks)
        is_first = not section.blocks
        for below in section.below:
            self._write(added, below, is_first=is_first)
            is_first = False


def _heading_line(heading: Heading) -> str:
    return f"{'#' * heading.level} {heading.name}"


def _set_apart(
    outline: Outline, at: int, added: _Addition, *, is_list: bool
) -> _Addition:
    """The lines with a blank line before and after them, unless there is one."""
    lines = added.lines
    if at and not is_list and not is_blank(outline.lines[at - 1]):
        lines = ["", *lines]
    if not is_blank("".join(outline.lines[at : at + 1])):
        lines = [*lines, ""]
    return _Addition(lines, added.kinds)


def _insert_all(outline: Outline, additions: Mapping[int, _Addition]) -> str | None:
    """The text with the additions; None if any block would not be what it should."""
    changed = insert(outline.lines, {at: each.lines for at, each in additions.items()})
    after = read_outline(changed)
    inserted: set[int] = set()
    for at, added in sorted(additions.items()):
        first = at + len(inserted)
        end = first + len(added.lines)
        if [block.kind for block in after.blocks_between(first, end)] != added.kinds:
            return None
        inserted.update(range(first, end))
    return changed if after.is_same_without(outline, inserted) else None


def _add_anywhere(places: _Places, theirs: Outline, section: _Section) -> str:
    """The text with a section that does not fit where it should be."""
    outline, path, blocks = places.outline, section.path, section.blocks
    key = _key(path)
    kinds = [block.kind for block in blocks]
    for length in range(len(path) - 1, -1, -1):
        if key[:length] in places:
            at = places.end_of_subtree(key[:length])
            head = [_heading_line(each) for each in path[length:]]
            lines = [*head, *_join(theirs, blocks, is_list=False)]
            added = _set_apart(outline, at, _Addition(lines, kinds), is_list=False)
            changed = _insert_all(outline, {at: added})
            if changed is not None:
                return changed
    # Between a heading and a comment, no block can become part of another one.
    at = _without_blanks(outline, 0, len(outline.lines))
    put = ["", f"## {_UNPLACED}", "", *_join(theirs, blocks, is_list=False), ""]
    closing = [] if at == len(outline.lines) else ["<!-- -->", ""]
    return splice(outline.lines, at, at, [*put, *closing])


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
            # At the end of their file, it did not have to be closed.
            lines.append(fence_of(own[0].strip()) or _COMMENT_END)
        is_list = is_item
    return lines
