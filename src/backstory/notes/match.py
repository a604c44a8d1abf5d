"""Find the one place in MEMORY.md that a quoted fact refers to.

A fact that is to be changed is named by quoting it. If several places match, none is
chosen: changing the wrong fact is worse than asking again.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from backstory.errors import BadQuery, FactAmbiguous, FactNotFound
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.markdown.escape import to_fact_lines, without_bullet
from backstory.text.markdown.outline import BlockKind, Item, Outline
from backstory.text.words import is_spaceless, word_set
from backstory.values.structs import FrozenStruct

_MAX_SHOWN_CHARS = 200
_MAX_NAMED = 3
# If there are more places than this, their exact number does not matter.
_MAX_PLACES = 1_000
_CHANGEABLE = (BlockKind.ITEM, BlockKind.TEXT)


# -- statements -----------------------------------------------------------------------


def iter_statements(outline: Outline) -> Iterator[str]:
    """Everything that may be a fact: items, including nested ones, and paragraphs."""
    for item in outline.items:
        yield item_text(outline, item, head_only=True)
        if item.depth == 0 and item.head_end < item.end:
            yield item_text(outline, item)
    for block in outline.blocks:
        if block.kind is BlockKind.TEXT:
            yield "".join(outline.lines[block.first : block.end]).strip()


def item_text(outline: Outline, item: Item, *, head_only: bool = False) -> str:
    """The text of an item, without its bullet and indentation."""
    end = item.head_end if head_only else item.end
    first, *rest = outline.lines[item.first : end]
    lines = [first[item.offset :], *(_dedent(line, item.column) for line in rest)]
    return "\n".join(line.rstrip() for line in lines).strip()


def _dedent(line: str, columns: int) -> str:
    content = line.lstrip(" \t")
    indent = line[: len(line) - len(content)].expandtabs(4)
    return indent[columns:] + content


def has_exact_text(outline: Outline, item: Item, wanted: str) -> bool:
    """Whether an item's own text is exactly this, apart from spaces."""
    return _squeeze(item_text(outline, item, head_only=True)) in _forms_of(wanted)


def _forms_of(wanted: str) -> set[str]:
    """The words as given, and in the form that they would have in MEMORY.md."""
    wanted = without_bullet(wanted)
    return {_squeeze(wanted), _squeeze(" ".join(to_fact_lines(wanted)))}


# -- the place of a fact --------------------------------------------------------------


class Span(FrozenStruct):
    """Part of a block: from a character of one line to a character of another."""

    start: int
    end: int
    first_line: int
    last_line: int


def get_match(outline: Outline, wanted: str) -> Item | Span:
    """The item that says exactly this, or else the span with these words.

    Raises ``FactNotFound`` and ``FactAmbiguous``.
    """
    wanted = without_bullet(wanted)
    if not wanted:
        raise BadQuery("the text to look for is empty")
    found = _find_items(outline, wanted) or _find_spans(outline, wanted)
    if len(found) == 1:
        return found[0]
    shown = one_line(neutralize(wanted), _MAX_SHOWN_CHARS)
    if not found:
        raise FactNotFound(
            f"MEMORY.md does not say '{shown}'", near=_list_near(outline, wanted)
        )
    raise FactAmbiguous(
        f"'{shown}' matches {len(found)} places in MEMORY.md",
        count=len(found),
        matches=[_quote(outline, place) for place in found[:_MAX_NAMED]],
    )


def _find_items(outline: Outline, wanted: str) -> list[Item | Span]:
    keys = _forms_of(wanted)
    return [
        item
        for item in outline.items
        if _squeeze(item_text(outline, item, head_only=True)) in keys
        or (
            item.depth == 0
            and item.head_end < item.end
            and _squeeze(item_text(outline, item)) in keys
        )
    ]


def _find_spans(outline: Outline, wanted: str) -> list[Item | Span]:
    text = "".join(outline.lines)
    starts = [0, *accumulate(map(len, outline.lines))]
    found: list[Item | Span] = []
    for form in dict.fromkeys((wanted, wanted.replace("\n", "\r\n"))):
        start = text.find(form)
        while start >= 0 and len(found) < _MAX_PLACES:
            end = start + len(form)
            first, last = bisect_right(starts, start), bisect_right(starts, end - 1)
            span = Span(
                start - starts[first - 1], end - starts[last - 1], first - 1, last - 1
            )
            if _is_whole_words(text, start, end) and _is_changeable(outline, span):
                found.append(span)
            start = text.find(form, start + 1)
    return found


def _is_whole_words(text: str, start: int, end: int) -> bool:
    """Whether a span neither begins nor ends inside a word."""
    edges = ((start - 1, start), (end - 1, end))
    return not any(
        _is_letter(text[left:right]) and _is_letter(text[right : right + 1])
        for left, right in edges
        if left >= 0
    )


def _is_letter(character: str) -> bool:
    return character.isalnum() and not is_spaceless(character)


def _is_changeable(outline: Outline, span: Span) -> bool:
    """Whether a span is text of one block, without the bullet of an item."""
    block = outline.block_at(span.first_line)
    if block is None or span.last_line >= block.end or block.kind not in _CHANGEABLE:
        return False
    begun = outline.items_between(span.first_line, span.last_line + 1)
    return all(
        item.first == span.first_line and span.start >= item.offset for item in begun
    )


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _quote(outline: Outline, place: Item | Span) -> str:
    line = place.first if isinstance(place, Item) else place.first_line
    item = outline.item_at(line)
    if item is None:
        text = outline.lines[line]
    else:
        text = item_text(outline, item, head_only=True)
    return one_line(neutralize(text), _MAX_SHOWN_CHARS)


def _list_near(outline: Outline, wanted: str) -> list[str]:
    """The facts that share the most words with the given ones."""
    words = word_set(wanted)
    shared = [(len(words & word_set(said)), said) for said in iter_statements(outline)]
    best = sorted((each for each in shared if each[0]), key=lambda each: -each[0])
    return [
        one_line(neutralize(said), _MAX_SHOWN_CHARS) for _, said in best[:_MAX_NAMED]
    ]
