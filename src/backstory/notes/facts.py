"""MEMORY.md as text: topics with lists of facts, which people and agents both write.

Whatever a person wrote stays as it is, byte for byte: a change touches the lines of one
fact only, and nothing around it becomes anything else by it. A fact cannot pass for
structure: its lines stand indented in one item, and are made inert.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from backstory.text.escape import neutralise
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
from backstory.text.words import fold

TITLE = "Long-term Memory"
TOPICS = ("User Profile", "Preferences", "Interests", "Workflow", "Projects", "Notes")
DEFAULT_TOPIC = "Notes"
MAX_FACT_CHARS = 5_000
# So much of MEMORY.md is given to every agent.
MAX_GIVEN_LINES = 200

_MAX_TOPIC_CHARS = 100
# What a heading may have around its words; C, C# and C++ are three topics.
_NO_WORDS = re.compile(r"(?:[^\w+#]|_)+")
# What no space stands before.
_CLOSING = " \t.,;:!?)"


@dataclass(frozen=True, slots=True)
class Fact:
    """An item of the outermost lists; ``topic`` is the headings above it."""

    topic: str
    text: str
    line: int


def check_fact(fact: str) -> str:
    """The fact without spaces around it. Raises ``BadQuery`` for one that is none."""
    fact = fact.strip()
    if not any(_is_visible(sign) for sign in "".join(to_fact_lines(fact))):
        raise BadQuery("a fact is needed, and this one is empty")
    if len(fact) > MAX_FACT_CHARS:
        raise BadQuery(
            f"a fact has at most {MAX_FACT_CHARS:,} characters, and this one has "
            f"{len(fact):,}",
            hint="say it in fewer words, or as several facts",
        )
    return fact


def _is_visible(sign: str) -> bool:
    return not sign.isspace() and unicodedata.category(sign) not in ("Cf", "Cc")


# -- looking --------------------------------------------------------------------------


def list_facts(text: str) -> list[Fact]:
    """The facts in the order they stand in."""
    outline = _outline_of(text)
    return [
        Fact(topic_at(outline, item.first), item_text(outline, item), item.first + 1)
        for item in outline.items
        if item.depth == 0
    ]


def split_facts(text: str) -> list[Fact]:
    """The facts of a text that has nothing but lists; any other text is one fact."""
    outline = _outline_of(text)
    kinds = {block.kind for block in outline.blocks}
    is_lists = kinds == {BlockKind.ITEM} and not outline.rules
    listed = [fact for fact in list_facts(text) if fact.text] if is_lists else []
    return listed or [Fact("", text.strip(), 1)]


def list_topics(text: str) -> list[str]:
    """The names of the headings that facts can be filed under."""
    return [each.name for each in _outline_of(text).headings if each.level == 2]


def first_lines(text: str, count: int = MAX_GIVEN_LINES) -> str:
    """The beginning of a text: so many lines at most."""
    return "".join(split_lines(split_bom(text)[1])[:count])


def find_duplicate(text: str, fact: str) -> str | None:
    """What the text has that says the same already; None when the fact is new."""
    known = list(iter_statements(_outline_of(text)))
    said = normalize_fact("\n".join(to_fact_lines(fact)))
    place = find_duplicate_index(said, map(normalize_fact, known))
    return None if place is None else known[place]


def get_fact(text: str, fact: str) -> str:
    """All that ``remove_fact`` would take away. Raises what that raises."""
    outline = _outline_of(text)
    found = get_match(outline, fact)
    item = found if isinstance(found, Item) else outline.item_at(found.first_line)
    return fact.strip() if item is None else item_text(outline, item)


def topic_at(outline: Outline, line: int) -> str:
    """The headings above a line, without the title of the file where there are more."""
    path = outline.path_at(line)
    below_title = [heading for heading in path if heading.level > 1]
    return " > ".join(heading.name for heading in below_title or path)


def _outline_of(text: str) -> Outline:
    return read_outline(split_bom(text)[1])


# -- adding ---------------------------------------------------------------------------


def add_fact(text: str, topic: str, fact: str) -> str:
    """Put the fact at the end of the list below its topic, which is made if needed.

    A topic is a heading of the second level, or of the first; its name is compared
    without case and symbols. A text without anything begins with a title.
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
    """A topic as the name of a heading."""
    line = one_line(neutralise(topic), _MAX_TOPIC_CHARS).lstrip("# ")
    heading = heading_of(f"## {line}")
    name = heading[1] if heading else ""
    return escape_start(name) if name else DEFAULT_TOPIC


def find_headings(outline: Outline, name: str) -> list[Heading]:
    """The topics of that name, those of the second level before those of the first."""
    key = folded_name(name)
    found = [
        heading
        for heading in outline.headings
        if heading.level <= 2 and folded_name(heading.name) == key
    ]
    return sorted(found, key=lambda heading: -heading.level)


def folded_name(name: str) -> str:
    """The name of a topic as it is compared; symbols alone are compared as they are."""
    folded = fold(name)
    return _NO_WORDS.sub(" ", folded).strip() or folded


def add_item(outline: Outline, heading: Heading, item: Sequence[str]) -> str | None:
    """The text with an item more at the end of the list right below a heading.

    Where it would swallow what follows, it gets a wider indent or blank lines around
    it; None where nothing helps.
    """
    for at, put in _places_below(outline, heading, item):
        changed = splice(outline.lines, at, at, put)
        if _leaves_the_rest(outline, changed, at, at, [BlockKind.ITEM]):
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
        # Where a heading follows at once, so does the item.
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
    """The text with a section at its end; before what nobody closed, if that is it."""
    at = len(outline.lines)
    if outline.blocks and outline.blocks[-1].is_open:
        at = outline.blocks[-1].first
    is_apart = at == 0 or is_blank(outline.lines[at - 1])
    head = head if is_apart else ["", *head]
    if at == len(outline.lines):
        return splice(outline.lines, at, at, [*head, *item])
    return splice(outline.lines, at, at, [*head, *_widened(item), ""])


def _like_sibling(outline: Outline, item: Item, lines: Sequence[str]) -> list[str]:
    """The lines of an item, in a list whose bullets may be others than ours."""
    first = outline.lines[item.first]
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    bullet = item.marker if item.marker in ("*", "+") else "-"
    begun = [bullet + lines[0][1:], *lines[1:]]
    return [indent + line if line else line for line in begun]


def _widened(item: Sequence[str]) -> list[str]:
    """The lines of an item that takes in no line with an indent below four."""
    content = item[0].lstrip(" \t")
    first = f"{content[0]}   {content[2:]}"
    return [first, *(f"  {line}" if line else "" for line in item[1:])]


def _leaves_the_rest(
    outline: Outline, changed: str, first: int, end: int, kinds: Sequence[BlockKind]
) -> bool:
    """Whether the changed lines are blocks of these kinds, and all others as before."""
    after = read_outline(changed)
    new_end = end + len(after.lines) - len(outline.lines)
    if not outline.is_same_around(after, first, end) or after.has_breaks(
        first, new_end
    ):
        return False
    return [block.kind for block in after.blocks_between(first, new_end)] == [*kinds]


# -- changing -------------------------------------------------------------------------


def replace_fact(text: str, old: str, new: str) -> str:
    """Put ``new`` for ``old``: all that one item says, or else words that stand once.

    A blank ``new`` takes them away. Raises ``FactNotFound`` and ``FactAmbiguous``.
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
    """Take away the item that says this, or that has it in it, with all its lines.

    Of a paragraph only these words go. A topic that has no facts left stays. Raises
    ``FactNotFound`` and ``FactAmbiguous``.
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
    """Take away facts that stand in a text twice, word for word, but for the first.

    Returns the text and what went.
    """
    gone: list[str] = []
    bom, body = split_bom(text)
    while (item := _find_repeat(outline := read_outline(body))) is not None:
        try:
            body = _remove_item(outline, item)
        except BadQuery:
            break  # it holds other things together, and stays
        gone.append(item_text(outline, item))
    return bom + body, gone


def _find_repeat(outline: Outline) -> Item | None:
    seen: set[str] = set()
    for item in outline.items:
        said = " ".join(item_text(outline, item).split())
        if item.depth == 0 and said:
            if said in seen:
                return item
            seen.add(said)
    return None


def _replace_item(outline: Outline, item: Item, old: str, lines: Sequence[str]) -> str:
    """Other words for an item; what is listed below it stays if it was not named."""
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
    """The text without an item, and without one of two blank lines around it."""
    first = item.first
    behind = "".join(outline.lines[item.end : item.end + 1])
    if first and is_blank(outline.lines[first - 1]) and is_blank(behind):
        first -= 1
    return _change(outline, (first, item.end), [[], [""]], [])


def _replace_span(outline: Outline, span: Span, lines: Sequence[str]) -> str:
    item = outline.item_at(span.first_line)
    if item is None:
        return _replace_in_text(outline, span, lines)
    begins = item.first == span.first_line
    line = outline.lines[span.first_line]
    start = item.offset if begins else _indent_chars(line)
    said = _join(outline, span, start, lines)
    end = span.last_line + 1
    if not said and begins and end == item.end:
        return _remove_item(outline, item)
    if not said and begins and end < item.head_end:
        # What the item goes on with moves up to its marker.
        said, end = [outline.lines[end].strip()], end + 1
    put = _set_lines(line[:start], line[start:], said, " " * item.column)
    kinds = [] if item.depth or not begins else [BlockKind.ITEM]
    return _change(outline, (span.first_line, end), [put], kinds)


def _replace_in_text(outline: Outline, span: Span, lines: Sequence[str]) -> str:
    block = outline.block_at(span.first_line)
    assert block is not None
    line = outline.lines[span.first_line]
    start = _indent_chars(line)
    said = _join(outline, span, start, lines)
    put = _set_lines(line[:start], line[start:], said, line[:start]) if said else []
    is_whole = (span.first_line, span.last_line + 1) == (block.first, block.end)
    kinds = [] if is_whole and not said else [block.kind]
    lines_of = (span.first_line, span.last_line + 1)
    within = (block.first, block.end)
    return _change(outline, lines_of, [put, [*put, ""]], kinds, within=within)


def _set_lines(prefix: str, old: str, said: Sequence[str], indent: str) -> list[str]:
    """The lines with their indents; none begins what the old one did not begin."""
    first, *rest = said or [""]
    old = old.strip()
    first = _make_inert(first) if _make_inert(old) == old else first
    return [(prefix + first).rstrip(), *(indent + _make_inert(each) for each in rest)]


def _join(outline: Outline, span: Span, start: int, lines: Sequence[str]) -> list[str]:
    """The lines that come of other words for a span; none where nothing is left."""
    before = outline.lines[span.first_line][start : span.start]
    behind = outline.lines[span.last_line][span.end :].rstrip("\r\n")
    full = [escape_comment(line.strip()) for line in lines if line]
    if full:
        full[-1] += behind
        return [before + full[0], *full[1:]]
    if not before.strip():
        behind = behind.lstrip()
    if not behind.strip() or behind[0] in _CLOSING:
        before = before.rstrip(" \t")
    left = (before + behind).rstrip()
    return [left] if left else []


def _indent_chars(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _make_inert(line: str) -> str:
    return escape_marker(escape_start(line))


def _change(
    outline: Outline,
    lines: tuple[int, int],
    choices: Sequence[Sequence[str]],
    kinds: Sequence[BlockKind],
    *,
    within: tuple[int, int] | None = None,
) -> str:
    """The text with the first of these that leaves all around it what it is.

    ``kinds`` are the blocks that are to begin in these lines, or in those they are
    ``within``.
    """
    for put in choices:
        changed = splice(outline.lines, *lines, put)
        if _leaves_the_rest(outline, changed, *(within or lines), kinds):
            return changed
    raise BadQuery(
        "this change would make something else of what stands around it",
        hint="change it by hand: backstory memory edit",
    )
