"""Cut a long text into passages, each about one thing.

The vector of a whole text represents all that it is about; the vector of a passage,
what is said in that passage.
"""

from collections.abc import Callable
from itertools import pairwise

from backstory.text.patterns import lazy_pattern

# The longest that a passage may be. A shorter text is a single passage.
PASSAGE_CHARS = 250
# As much of a text as its vector is made from.
_MAX_CHARS = 8_000
# A passage may begin at a line or a sentence, and has to begin at a heading.
_BEGINNING = lazy_pattern(r"(?<=\n)(?=[^\n])|(?<=[.!?])[ \t]+(?=\S)")
_HEADING = lazy_pattern(r"[ \t]*#{1,6}[ \t]")

Span = tuple[int, int]


def cut_passages(text: str) -> list[Span]:
    """Where the passages of a long text begin and end; none for a short one."""
    if len(text) <= PASSAGE_CHARS:
        return []
    text = text[:_MAX_CHARS]
    places = {0, len(text), *(found.end() for found in _BEGINNING.finditer(text))}
    passages: list[Span] = []
    begin = end = 0
    for start, stop in pairwise(sorted(places)):
        if stop - begin > PASSAGE_CHARS or _HEADING.match(text, start):
            passages.append((begin, end))
            begin = start
        while stop - begin > PASSAGE_CHARS:
            cut = _find_cut(text, begin)
            passages.append((begin, cut))
            begin = cut
        end = stop
    passages.append((begin, end))
    return [(first, last) for first, last in passages if text[first:last].strip()]


def _find_cut(text: str, begin: int) -> int:
    """Where to cut a long line or sentence: after its last word that fits."""
    space = text.rfind(" ", begin + 1, begin + PASSAGE_CHARS)
    return begin + PASSAGE_CHARS if space < 0 else space + 1


def find_masked(
    span: Span | None, text: str, mask: Callable[[str], str]
) -> Span | None:
    """Roughly where a span of a text is once all of the text has been masked."""
    if span is None:
        return None
    start, end = span
    first = len(mask(text[:start]))
    return first, first + len(mask(text[start:end]))
