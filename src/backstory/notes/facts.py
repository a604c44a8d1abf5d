"""MEMORY.md as text: topics with lists of facts.

A change only affects the lines of one fact. Everything else that a person wrote stays
the same, byte for byte, and keeps its meaning as Markdown. A fact cannot pass for
structure: its lines are indented in a single list item, and their markup is escaped.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from backstory.errors import BadQuery
from backstory.notes.duplicates import find_duplicate_index, normalize_fact
from backstory.notes.match import (
    Span,
    get_match,
    has_exact_text,
    item_text,
    iter_statements,
)
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.markdown.escape import (
    escape_comment,
    escape_marker,
    escape_start,
    read_lines,
    to_fact_lines,
)
from backstory.text.markdown.lines import (
    heading_of,
    is_blank,
    splice,
    split_bom,
    split_lines,
)
from backstory.text.markdown.outline import (
    BlockKind,
    Heading,
    Item,
    Outline,
    read_outline,
)
from backstory.text.memories_frame import MAX_GIVEN_LINES
from backstory.text.words import fold
from backstory.values.structs import FrozenStruct

TITLE = "Long-term Memory"
TOPICS = ("User Profile", "Preferences", "Interests", "Workflow", "Projects", "Notes")
DEFAULT_TOPIC = "Notes"
MAX_FACT_CHARS = 5_000

_MAX_TOPIC_CHARS = 100
# Repeats are removed many at a time; those left after this many passes stay.
_MAX_PASSES = 50
# What may surround the words of a heading; C, C# and C++ are three topics.
_NOT_WORDS = re.compile(r"[^\w+#]+")
# No space precedes these.
_CLOSING = " \t.,;:!?)"

# The first line, and the one after the last.
_Lines = tuple[int, int]


class Fact(FrozenStruct):
    """An item of an outermost list; ``topic`` is the path of headings above it."""

    topic: str
    text: str
    line: int


def check_fact(fact: str) -> str:
    """The fact without spaces around it. Raises ``BadQuery`` if empty or too long."""
    fact = fact.strip()
    if not any(map(_is_visible, "".join(to_fact_lines(fact)))):
        raise BadQuery("the fact is empty")
    if len(fact) > MAX_FACT_CHARS:
        raise BadQuery(
            f"the fact has {len(fact):,} characters; the limit is {MAX_FACT_CHARS:,}",
            hint="say it in fewer words, or as several facts",
        )
    return fact


def _is_visible(character: str) -> bool:
    if character.isspace():
        return False
    return unicodedata.category(character) not in ("Cf", "Cc")


# -- reading --------------------------------------------------------------------------


def list_facts(text: str) -> list[Fact]:
    """The facts, in their order in the text."""
    outline = _outline_of(text)
    return [
        Fact(topic_at(outline, item.first), item_text(outline, item), item.first + 1)
        for item in outline.items
        if item.depth == 0
    ]


def split_facts(text: str) -> list[Fact]:
    """The facts of a text that consists of lists; any other text is a single fact."""
    outline = _outline_of(text)
    kinds = {block.kind for block in outline.blocks}
    is_lists = kinds == {BlockKind.ITEM} and not outline.rules
    listed = [fact for fact in list_facts(text) if fact.text] if is_lists else []
    return listed or [Fact("", text.strip(), 1)]


def list_topics(text: str) -> list[str]:
    """The names of the topics: headings of the second level."""
    return [each.name for each in _outline_of(text).headings if each.level == 2]


def first_lines(text: str, count: int = MAX_GIVEN_LINES) -> str:
    """The beginning of a text: at most ``count`` lines."""
    return "".join(split_lines(split_bom(text)[1])[:count])


def iter_statements_of(text: str) -> Iterator[str]:
    """Everything that the text says, inside and outside of lists."""
    return iter_statements(_outline_of(text))


def find_duplicate(text: str, fact: str) -> str | None:
    """The statement in the text that already says this; None if the fact is new."""
    known = list(iter_statements_of(text))
    new = normalize_fact("\n".join(to_fact_lines(fact)))
    index = find_duplicate_index(new, map(normalize_fact, known))
    return None if index is None else known[index]


def get_fact(text: str, fact: str) -> str:
    """The whole text that ``remove_fact`` would remove; raises the same errors."""
    outline = _outline_of(text)
    found = get_match(outline, fact)
    item = found if isinstance(found, Item) else outline.item_at(found.first_line)
    return fact.strip() if item is None else item_text(outline, item)


def topic_at(outline: Outline, line: int) -> str:
    """The path of headings above a line, without the file's title if it has others."""
    path = outline.path_at(line)
    below_title = [heading for heading in path if heading.level > 1]
    return " > ".join(heading.name for heading in below_title or path)


def _outline_of(text: str) -> Outline:
    return read_outline(split_bom(text)[1])


# -- adding ---------------------------------------------------------------------------


def add_fact(text: str, topic: str, fact: str) -> str:
    """Add the fact at the end of the list below its topic, which is created if needed.

    A topic is a heading of the second level, or of the first; its name is compared
    without case and punctuation. An empty text gets a title.
    """
    item = _as_item(to_fact_lines(check_fact(fact)))
    name = _heading_name(topic)
    bom, body = split_bom(text)
    outline = read_outline(body)
    for heading in find_headings(outline, name):
        added = add_item(outline, heading, item)
        if added is not None:
            return bom + added
    title = [f"# {TITLE}", ""] if is_blank(body) else []
    return bom + add_section(outline, [*title, f"## {name}"], item)


def _as_item(lines: Sequence[str]) -> list[str]:
    first, *rest = lines
    return [f"- {first}", *(f"  {line}" if line else "" for line in rest)]


def _heading_name(topic: str) -> str:
    """The name of a topic as the text of a heading."""
    line = one_line(neutralize(topic), _MAX_TOPIC_CHARS).lstrip("# ")
    heading = heading_of(f"## {line}")
    name = heading[1] if heading else ""
    return escape_start(name) if name else DEFAULT_TOPIC


def find_headings(outline: Outline, name: str) -> list[Heading]:
    """The topics with that name, headings of the second level before the first."""
    key = folded_name(name)
    found = [
        heading
        for heading in outline.headings
        if heading.level <= 2 and folded_name(heading.name) == key
    ]
    return sorted(found, key=lambda heading: -heading.level)


def folded_name(name: str) -> str:
    """The name of a topic in the form in which it is compared: no case or punctuation.

    A name that consists only of punctuation is compared as it is.
    """
    folded = fold(name)
    return _NOT_WORDS.sub(" ", folded.replace("_", " ")).strip() or folded


def add_item(outline: Outline, heading: Heading, item: Sequence[str]) -> str | None:
    """The text with one more item at the end of the list right below a heading.

    If the item would absorb what follows, it gets more indentation or blank lines
    around it. None if that does not help.
    """
    for at, put in _places_below(outline, heading, item):
        changed = splice(outline.lines, at, at, put)
        if _leaves_the_rest(outline, changed, (at, at), [BlockKind.ITEM]):
            return changed
    return None


def _places_below(
    outline: Outline, heading: Heading, item: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    end = outline.section_end(heading)
    blocks = outline.blocks_between(heading.end, end)
    lists = [block for block in blocks if block.kind is BlockKind.ITEM]
    closed = [block for block in blocks if not block.is_open]
    at, before = heading.end, list[str]()
    if lists:
        at = lists[-1].end
        sibling = outline.items_between(lists[-1].first, at)[0]
        item = _like_sibling(outline, sibling, item)
    elif closed:
        at = closed[-1].end
        # If the next heading follows without a blank line, so does the item.
        before = [""] if is_blank("".join(outline.lines[at : at + 1])) else []
    wide = _widened(item)
    yield at, [*before, *item]
    yield at, [*before, *wide]
    yield at, ["", *item]
    yield at, [*before, *item, ""]
    yield at, ["", *wide, ""]
    while end > heading.end and is_blank(outline.lines[end - 1]):
        end -= 1
    yield end, ["", *item]


def add_section(outline: Outline, head: Sequence[str], item: Sequence[str]) -> str:
    """The text with a new section at its end, or before an unclosed last block."""
    at = len(outline.lines)
    if outline.blocks and outline.blocks[-1].is_open:
        at = outline.blocks[-1].first
    is_apart = at == 0 or is_blank(outline.lines[at - 1])
    head = head if is_apart else ["", *head]
    if at == len(outline.lines):
        return splice(outline.lines, at, at, [*head, *item])
    return splice(outline.lines, at, at, [*head, *_widened(item), ""])


def _like_sibling(outline: Outline, item: Item, lines: Sequence[str]) -> list[str]:
    """The lines of an item, with the bullet and indentation of another one."""
    first = outline.lines[item.first]
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    bullet = item.marker if item.marker in ("*", "+") else "-"
    begun = [bullet + lines[0][1:], *lines[1:]]
    return [indent + line if line else line for line in begun]


def _widened(item: Sequence[str]) -> list[str]:
    """The lines of an item, absorbing only lines indented by four or more spaces."""
    content = item[0].lstrip(" \t")
    first = f"{content[0]}   {content[2:]}"
    return [first, *(f"  {line}" if line else "" for line in item[1:])]


def _leaves_the_rest(
    outline: Outline, changed: str, lines: _Lines, kinds: Sequence[BlockKind]
) -> bool:
    """Whether the changed lines are blocks of these kinds, and others unchanged."""
    first, end = lines
    after = read_outline(changed)
    new_end = end + len(after.lines) - len(outline.lines)
    if not outline.is_same_around(after, first, end) or after.has_breaks(
        first, new_end
    ):
        return False
    return [block.kind for block in after.blocks_between(first, new_end)] == [*kinds]


# -- changing -------------------------------------------------------------------------


def replace_fact(text: str, old: str, new: str) -> str:
    """Replace ``old`` with ``new``: a whole item, or else words that occur once.

    A blank ``new`` removes them. Raises ``FactNotFound`` and ``FactAmbiguous``.
    """
    bom, body = split_bom(text)
    outline = read_outline(body)
    found = get_match(outline, old)
    if isinstance(found, Span):
        return bom + _replace_span(outline, found, read_lines(new))
    if is_blank(new):
        return bom + _remove_item(outline, found)
    return bom + _replace_item(outline, found, old, to_fact_lines(check_fact(new)))


def remove_fact(text: str, fact: str) -> str:
    """Remove the item that says this or contains it, with all its lines.

    If it is part of a paragraph, only these words are removed. A topic without facts
    stays. Raises ``FactNotFound`` and ``FactAmbiguous``.
    """
    bom, body = split_bom(text)
    outline = read_outline(body)
    found = get_match(outline, fact)
    item = found if isinstance(found, Item) else outline.item_at(found.first_line)
    if item is not None:
        return bom + _remove_item(outline, item)
    assert isinstance(found, Span)
    return bom + _replace_span(outline, found, [])


def remove_repeats(text: str) -> tuple[str, list[str]]:
    """Remove facts that repeat an earlier one word for word.

    Returns the text, and the facts that were removed. A repeat stays if removing it
    would change the meaning of what surrounds it, and so do the repeats after it.
    """
    removed: list[str] = []
    bom, body = split_bom(text)
    for _ in range(_MAX_PASSES):
        outline = read_outline(body)
        repeats = _find_repeats(outline)
        count, body = _remove_items(outline, repeats)
        removed += [item_text(outline, item) for item in repeats[:count]]
        if not count:
            break
    return bom + body, removed


def _find_repeats(outline: Outline) -> list[Item]:
    seen: set[str] = set()
    repeats: list[Item] = []
    for item in outline.items:
        if item.depth == 0:
            text = " ".join(item_text(outline, item).split())
            if text in seen:
                repeats.append(item)
            elif text:
                seen.add(text)
    return repeats


def _remove_items(outline: Outline, items: Sequence[Item]) -> tuple[int, str]:
    """Remove as many of the first items as possible; returns how many, and the text."""
    text = "".join(outline.lines)
    count = len(items)
    while count > 1:
        gone = _lines_of(outline, items[:count])
        kept = [line for number, line in enumerate(outline.lines) if number not in gone]
        changed = "".join(kept)
        if not text.endswith("\n"):
            changed = changed.removesuffix("\n").removesuffix("\r")
        if outline.is_same_without(read_outline(changed), gone):
            return count, changed
        count //= 2
    try:
        return count, _remove_item(outline, items[0]) if items else text
    except BadQuery:
        return 0, text


def _lines_of(outline: Outline, items: Sequence[Item]) -> set[int]:
    """The lines of items, plus one of two blank lines if both would remain."""
    gone = {number for item in items for number in range(item.first, item.end)}
    before = -1
    for item in items:
        if item.first - 1 not in gone:
            before = item.first - 1
        behind = "".join(outline.lines[item.end : item.end + 1])
        if before >= 0 and is_blank(outline.lines[before]) and is_blank(behind):
            gone.add(before)
    return gone


def _replace_item(outline: Outline, item: Item, old: str, lines: Sequence[str]) -> str:
    """The text with an item reworded; sub-items stay unless they are named."""
    end = item.head_end if has_exact_text(outline, item, old) else item.end
    first, *rest = lines
    indent = " " * item.column
    put = [
        outline.lines[item.first][: item.offset] + first,
        *(indent + line if line else "" for line in rest),
    ]
    kinds = [] if item.depth else [BlockKind.ITEM]
    return _change(outline, (item.first, end), [put, [*put, ""]], kinds)


def _remove_item(outline: Outline, item: Item) -> str:
    """The text without an item, and with one blank line where there were two."""
    first = item.first
    after = "".join(outline.lines[item.end : item.end + 1])
    if first and is_blank(outline.lines[first - 1]) and is_blank(after):
        first -= 1
    return _change(outline, (first, item.end), [[], [""]], [])


def _replace_span(outline: Outline, span: Span, lines: Sequence[str]) -> str:
    item = outline.item_at(span.first_line)
    if item is None:
        return _replace_in_text(outline, span, lines)
    begins = item.first == span.first_line
    line = outline.lines[span.first_line]
    start = item.offset if begins else _indent_chars(line)
    joined = _join(outline, span, start, lines)
    end = span.last_line + 1
    if not joined and begins and end == item.end:
        return _remove_item(outline, item)
    if not joined and begins and end < item.head_end:
        # The next line of the item moves up to its bullet.
        joined, end = [outline.lines[end].strip()], end + 1
    put = _indent_lines(line, start, joined, " " * item.column)
    kinds = [] if item.depth or not begins else [BlockKind.ITEM]
    return _change(outline, (span.first_line, end), [put], kinds)


def _replace_in_text(outline: Outline, span: Span, lines: Sequence[str]) -> str:
    block = outline.block_at(span.first_line)
    assert block is not None
    line = outline.lines[span.first_line]
    start = _indent_chars(line)
    joined = _join(outline, span, start, lines)
    put = _indent_lines(line, start, joined, line[:start]) if joined else []
    changed, within = (span.first_line, span.last_line + 1), (block.first, block.end)
    kinds = [] if changed == within and not joined else [block.kind]
    return _change(outline, changed, [put, [*put, ""]], kinds, within=within)


def _indent_lines(
    old_line: str, start: int, lines: Sequence[str], indent: str
) -> list[str]:
    """The lines, indented; they are escaped unless the old line was markup, too."""
    first, *rest = lines or [""]
    old = old_line[start:].strip()
    first = _escape_markup(first) if _escape_markup(old) == old else first
    return [
        (old_line[:start] + first).rstrip(),
        *(indent + _escape_markup(each) for each in rest),
    ]


def _join(outline: Outline, span: Span, start: int, lines: Sequence[str]) -> list[str]:
    """The lines of a span with other words in its place; none if nothing remains."""
    before = outline.lines[span.first_line][start : span.start]
    after = outline.lines[span.last_line][span.end :].rstrip("\r\n")
    full = [escape_comment(line.strip()) for line in lines if line]
    if full:
        full[-1] += after
        return [before + full[0], *full[1:]]
    if not before.strip():
        after = after.lstrip()
    if not after.strip() or after[0] in _CLOSING:
        before = before.rstrip(" \t")
    left = (before + after).rstrip()
    return [left] if left else []


def _indent_chars(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _escape_markup(line: str) -> str:
    return escape_marker(escape_start(line))


def _change(
    outline: Outline,
    lines: _Lines,
    choices: Sequence[Sequence[str]],
    kinds: Sequence[BlockKind],
    *,
    within: _Lines | None = None,
) -> str:
    """The text with the first of the choices that leaves everything else unchanged.

    ``kinds`` are the blocks that must begin in these lines, or in the lines that they
    are ``within``.
    """
    for put in choices:
        changed = splice(outline.lines, *lines, put)
        if _leaves_the_rest(outline, changed, within or lines, kinds):
            return changed
    raise BadQuery(
        "this change would alter the Markdown around it",
        hint="change it by hand: backstory memory edit",
    )
