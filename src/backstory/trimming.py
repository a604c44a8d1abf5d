"""Cut long texts to a number of tokens: most of the beginning, some of the end.

Where something was left out stands a marker. With an id it is the cue by which a model
knows that the whole text can be had, and by which name.
"""

import re
from collections.abc import Callable, Iterable

from backstory.excerpts import before_cluster
from backstory.tokens import MOST_CHARS_A_TOKEN

# The marker's words are those of the design.
MARKER = "[content elided to fit context window]"
MARKER_WITH_ID = "[content elided to fit context window — id={item_id}]"
_MARKED_ID = re.compile(
    r"\[content elided to fit context window — id=([^\]\s]{1,200})\]"
)

CountTokens = Callable[[str], int]


def make_marker(item_id: str | None) -> str:
    """What stands where something was left out; without an id if it cannot be had."""
    return MARKER if item_id is None else MARKER_WITH_ID.format(item_id=item_id)


def find_marked_ids(text: str) -> list[str]:
    """The ids in the markers of a text."""
    return _MARKED_ID.findall(text)


def is_trimmed(text: str, whole: str, item_id: str) -> bool:
    """Whether a text is what trimming left of a whole one, under that id."""
    marker = make_marker(item_id)
    if text == marker:
        return True
    cut = f"\n{marker}\n"
    # The text itself may have the marker in it, before the one that is ours.
    at = text.find(cut)
    while at >= 0 and whole.startswith(text[:at]):
        tail = text[at + len(cut) :]
        if at + len(tail) <= len(whole) and whole.endswith(tail):
            return True
        at = text.find(cut, at + 1)
    return False


def trim_text(text: str, marker: str, max_tokens: int, count: CountTokens) -> str:
    """As much of the text as fits with the marker: 60 % from its head, 40 % of its end.

    The marker alone where nothing fits beside it.
    """
    low, high = 0, min(len(text) - 1, max_tokens * MOST_CHARS_A_TOKEN)
    trimmed = marker
    while low <= high:
        kept = (low + high) // 2
        candidate = _cut(text, kept, marker)
        if count(candidate) <= max_tokens:
            trimmed, low = candidate, kept + 1
        else:
            high = kept - 1
    return trimmed


def _cut(text: str, kept: int, marker: str) -> str:
    head_end = before_cluster(text, kept * 3 // 5)
    tail_start = max(head_end, len(text) - (kept - head_end))
    if (moved := before_cluster(text, tail_start)) != tail_start:
        # The whole cluster goes: half a character is none.
        tail_start = _after_cluster(text, moved)
    return f"{text[:head_end]}\n{marker}\n{text[tail_start:]}"


def _after_cluster(text: str, start: int) -> int:
    end = start + 1
    while end < len(text) and before_cluster(text, end) != end:
        end += 1
    return end


def find_level(sizes: Iterable[int], to_save: int, floor: int) -> int | None:
    """The size to which all larger ones must be cut to save so much in all.

    The largest are cut first. Never below ``floor``: then less is saved. None if there
    is nothing to cut.
    """
    ordered = sorted((size for size in sizes if size > floor), reverse=True)
    if not ordered:
        return None
    saved = 0
    for place, (size, smaller) in enumerate(
        zip(ordered, [*ordered[1:], floor], strict=True), start=1
    ):
        step = place * (size - smaller)
        if saved + step >= to_save:
            return size - -(-(to_save - saved) // place)
        saved += step
    return floor
