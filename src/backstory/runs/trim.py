"""Cut long texts to a number of tokens: most of the beginning, some of the end.

Where something was left out stands a marker. With an id it is the cue by which a model
knows that the whole text can be had, and by which name; below it stands which part is
missing, so that it need not fetch what it sees.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from backstory.text.excerpts import before_cluster
from backstory.text.tokens import MOST_CHARS_A_TOKEN

# The marker's words are those of the design.
MARKER = "[content elided to fit context window]"
MARKER_WITH_ID = "[content elided to fit context window — id={item_id}]"
_MARKED_ID = re.compile(
    re.escape(MARKER_WITH_ID).replace(r"\{item_id\}", r"([^\]\s]{1,200})")
)
_MISSING = "[characters {start}-{end} of {length}]"
_ANY_MISSING = re.compile(r"\[characters (\d{1,15})-(\d{1,15}) of (\d{1,15})\]\n")
# How much of either side may be given up to cut between lines.
_TO_LINE = 0.1

CountTokens = Callable[[str], int]


def make_marker(item_id: str | None) -> str:
    """What stands where something was left out; without an id if it cannot be had."""
    return MARKER if item_id is None else MARKER_WITH_ID.format(item_id=item_id)


def find_marked_ids(text: str) -> list[str]:
    """The ids in the markers of a text."""
    return _MARKED_ID.findall(text)


def is_trimmed(text: str, whole: str, item_id: str) -> bool:
    """Whether a text is what trimming left of a whole one, under that id."""
    marker = f"\n{make_marker(item_id)}\n"
    # The text itself may have the marker in it, before the one that is ours.
    at = text.find(marker)
    while at >= 0:
        missing = _ANY_MISSING.match(text, at + len(marker))
        if missing:
            start, end, length = map(int, missing.groups())
            # The numbers first: there may be many markers in a long text.
            if (start, length) == (at, len(whole)) and (
                text[:at] == whole[:start] and text[missing.end() :] == whole[end:]
            ):
                return True
        at = text.find(marker, at + 1)
    return False


# -- one text -------------------------------------------------------------------------


def trim_text(text: str, marker: str, max_tokens: int, count: CountTokens) -> str:
    """As much of the text as fits with the marker: 60 % from its head, 40 % of its end.

    The marker alone where nothing fits beside it.
    """
    low, high = 0, min(len(text) - 1, max_tokens * MOST_CHARS_A_TOKEN)
    trimmed = _cut(text, 0, marker)
    while low <= high:
        kept = (low + high) // 2
        candidate = _cut(text, kept, marker)
        if count(candidate) <= max_tokens:
            trimmed, low = candidate, kept + 1
        else:
            high = kept - 1
    return trimmed


def _cut(text: str, kept: int, marker: str) -> str:
    head = kept * 3 // 5
    start = _end_of_line(text, head) or before_cluster(text, head)
    end = _start_of_line(text, kept - head) or _after_cluster(
        text, len(text) - (kept - head)
    )
    missing = f"{_MISSING.format(start=start, end=end, length=len(text))}\n"
    if marker == MARKER:
        # Nobody can fetch it.
        missing = ""
    return f"{text[:start]}\n{marker}\n{missing}{text[end:]}"


def _end_of_line(text: str, head: int) -> int:
    """The last end of a line in a head, if it costs little; else 0."""
    return text.rfind("\n", head - int(head * _TO_LINE), head) + 1


def _start_of_line(text: str, tail: int) -> int:
    """The first start of a line in a tail, if it costs little; else 0."""
    first = len(text) - tail
    return text.find("\n", first, first + int(tail * _TO_LINE)) + 1


def _after_cluster(text: str, start: int) -> int:
    """The place, or the end of the cluster of characters that it would split."""
    while start < len(text) and before_cluster(text, start) != start:
        start += 1
    return start


# -- many sizes -----------------------------------------------------------------------


class Size(NamedTuple):
    """How large something is, and how small it may become."""

    tokens: int
    floor: int = 0

    def at(self, level: int) -> int:
        """How large it is when the largest are cut to a level."""
        return min(self.tokens, max(level, self.floor))


def find_level(sizes: Sequence[Size], to_save: int) -> int:
    """The size to which all larger ones must be cut to save so much in all.

    The largest are cut first. 0 if that does not save enough.
    """
    most = sum(size.tokens for size in sizes) - to_save
    low, high = 0, max((size.tokens for size in sizes), default=0)
    while low < high:
        level = (low + high + 1) // 2
        if sum(size.at(level) for size in sizes) <= most:
            low = level
        else:
            high = level - 1
    return low
