"""Cut long texts to a number of tokens: most of the head, some of the tail.

A marker shows where something was left out. Its id tells the model that the whole text
can be fetched, and the line below it says which part is missing, so that the model need
not fetch what it has.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from backstory.text.cut import longest_within
from backstory.text.excerpts import before_cluster
from backstory.text.tokens import MOST_CHARS_A_TOKEN, CountTokens

# The wording is fixed by the spec.
MARKER = "[content elided to fit context window]"
MARKER_WITH_ID = "[content elided to fit context window — id={item_id}]"
_MARKED_ID = re.compile(
    re.escape(MARKER_WITH_ID).replace(r"\{item_id\}", r"([^\]\s]{1,200})")
)
_MISSING = "[characters {start}-{end} of {length}]"
_ANY_MISSING = re.compile(r"\[characters (\d{1,15})-(\d{1,15}) of (\d{1,15})\]\n")
# The share of either side that may be given up in order to cut between lines.
_LINE_SHARE = 0.1


def make_marker(item_id: str | None) -> str:
    """The marker for what was left out; without an id if it cannot be fetched."""
    return MARKER if item_id is None else MARKER_WITH_ID.format(item_id=item_id)


def find_marked_ids(text: str) -> list[str]:
    """The ids in the markers of a text."""
    return _MARKED_ID.findall(text)


def to_item_id(named: str) -> str:
    """The id that a text names; models also pass the marker, or put ``id=`` before it.

    Any other text is returned as it is.
    """
    given = named.strip()
    for marked_id in find_marked_ids(given):
        if given == make_marker(marked_id):
            return marked_id
    return given.removeprefix("id=")


def is_trimmed(text: str, whole: str, item_id: str) -> bool:
    """Whether ``text`` is ``whole`` after trimming, with the marker of this id."""
    marker = f"\n{make_marker(item_id)}\n"
    # The content may itself contain such a marker.
    at = text.find(marker)
    while at >= 0:
        missing = _ANY_MISSING.match(text, at + len(marker))
        if missing:
            start, end, length = map(int, missing.groups())
            # Numbers first: comparing them is quick, and a long text may have many
            # markers.
            if (start, length) == (at, len(whole)) and (
                text[:at] == whole[:start] and text[missing.end() :] == whole[end:]
            ):
                return True
        at = text.find(marker, at + 1)
    return False


# -- one text -------------------------------------------------------------------------


def trim_text(text: str, marker: str, max_tokens: int, count: CountTokens) -> str:
    """As much of the text as fits with the marker: 60 % head, 40 % tail.

    Only the marker if nothing else fits.
    """
    kept = longest_within(
        max_tokens,
        min(len(text) - 1, max_tokens * MOST_CHARS_A_TOKEN),
        lambda length: count(_cut(text, length, marker)),
    )
    return _cut(text, kept, marker)


def _cut(text: str, kept: int, marker: str) -> str:
    head = kept * 3 // 5
    start = _end_of_line(text, head) or before_cluster(text, head)
    end = _start_of_line(text, kept - head) or _after_cluster(
        text, len(text) - (kept - head)
    )
    missing = f"{_MISSING.format(start=start, end=end, length=len(text))}\n"
    if marker == MARKER:
        # Nobody can fetch the missing part.
        missing = ""
    return f"{text[:start]}\n{marker}\n{missing}{text[end:]}"


def _end_of_line(text: str, head: int) -> int:
    """The end of the last line in a head, if that costs little; else 0."""
    return text.rfind("\n", head - int(head * _LINE_SHARE), head) + 1


def _start_of_line(text: str, tail: int) -> int:
    """The start of the first line in a tail, if that costs little; else 0."""
    first = len(text) - tail
    return text.find("\n", first, first + int(tail * _LINE_SHARE)) + 1


def _after_cluster(text: str, start: int) -> int:
    """``start``, or the end of the cluster of characters that it would split."""
    while start < len(text) and before_cluster(text, start) != start:
        start += 1
    return start


# -- many sizes -----------------------------------------------------------------------


class Size(NamedTuple):
    """How large something is, and the smallest size that it may be cut to."""

    tokens: int
    floor: int = 0

    def capped(self, cap: int) -> int:
        """Its size once everything larger than ``cap`` is cut to that."""
        return min(self.tokens, max(cap, self.floor))


def find_cap(sizes: Sequence[Size], to_save: int) -> int:
    """The size to which everything larger must be cut to save ``to_save`` in total.

    So the largest are cut first. 0 if even that does not save enough.
    """
    target = sum(size.tokens for size in sizes) - to_save
    low, high = 0, max((size.tokens for size in sizes), default=0)
    while low < high:
        cap = (low + high + 1) // 2
        if sum(size.capped(cap) for size in sizes) <= target:
            low = cap
        else:
            high = cap - 1
    return low
