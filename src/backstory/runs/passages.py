"""Cut a long text into passages short enough to be compared with each other.

One line in a long log must not weigh less than the same line alone, so what is ranked
is a passage. Neighbours overlap: what stands across a cut stands whole in one of them.
"""

import re

PASSAGE_CHARS = 1_600
# A longer phrase may be missed where it lies across a cut.
OVERLAP_CHARS = 200
# How much of a passage may be given up to end at a line or between words.
_TO_LINE = 400
_TO_WORD = 40
_SPACE = re.compile(r"\s")


def cut_passages(text: str) -> list[tuple[int, int]]:
    """Where the passages of a text begin and end; an empty text is one passage."""
    if len(text) <= PASSAGE_CHARS:
        return [(0, len(text))]
    passages = []
    start = 0
    while len(text) - start > PASSAGE_CHARS:
        end = _tidy_end(text, start + PASSAGE_CHARS)
        passages.append((start, end))
        start = _tidy_start(text, end - OVERLAP_CHARS)
    return [*passages, (start, len(text))]


def _tidy_end(text: str, end: int) -> int:
    line = text.rfind("\n", end - _TO_LINE, end) + 1
    return line or _after_space(text, end - _TO_WORD, end) or end


def _tidy_start(text: str, start: int) -> int:
    return _after_space(text, start - _TO_WORD, start) or start


def _after_space(text: str, first: int, last: int) -> int:
    """The place behind the last space of a stretch; 0 if it has none."""
    for place in range(last, first, -1):
        if _SPACE.match(text, place - 1):
            return place
    return 0
