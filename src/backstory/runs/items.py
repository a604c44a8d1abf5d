"""The items of one run: numbered, indexed, known by their ids, and within their size.

When there are too many, the oldest tool results go first, then the oldest of the rest;
what is gone is still known by name, so that whoever asks for it is told.
"""

import re
from array import array
from bisect import bisect_right
from collections import deque
from dataclasses import replace

from backstory.errors import UnknownName, nearest_hint
from backstory.runs.search import Kept, keep_item
from backstory.store.base.run_index import RunIndex
from backstory.store.sqlite.run_index import SqliteRunIndex
from backstory.text.cut import cut_middle, utf8_size
from backstory.text.envelope import name_label
from backstory.values.history import Role
from backstory.values.runs import RunItem

# An id that may stand in a marker and be read back from it.
_PLAIN_ID = re.compile(r"(?!item-\d+$)[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,127}")
# So many of those that are gone are remembered by name.
_MAX_REMEMBERED = 10_000


class Shelf:
    """Items in the order in which they came. One thread at a time may use it."""

    def __init__(self, max_bytes: int, *, first_number: int = 1) -> None:
        self.index: RunIndex = SqliteRunIndex()
        self.kept: dict[int, Kept] = {}
        self.size_bytes = 0
        self._max_bytes = max_bytes
        self.next_number = first_number
        # Where the passages of an item begin, and its number, in the order of passages;
        # also of what is gone.
        self._next_passage = 0
        self._first_passages = array("Q")
        self._owners = array("Q")
        self._by_id: dict[str, int] = {}
        self._by_call: dict[str, list[int]] = {}
        self._results: deque[int] = deque()
        self._turns: deque[int] = deque()
        self._dropped: dict[str, RunItem] = {}
        self._dropped_count = 0
        self._cut_count = 0

    def close(self) -> None:
        self.index.close()
        self.kept.clear()

    # -- putting ---

    def put(
        self, item: RunItem, about: str, *, instead_of: RunItem | None = None
    ) -> RunItem:
        """Keep an item under an id of its own; ``about`` are words to find it by.

        With ``instead_of`` it takes that item's place.
        """
        known = self._by_id.get(instead_of.item_id) if instead_of else None
        number = self.next_number if known is None else known
        if known is None:
            self.next_number += 1
        else:
            self._queue(self.kept[known].item).remove(known)
            self._forget(self.kept[known])
        item = replace(
            item, item_id=self._make_id(item, number), text=self._cut(item.text)
        )
        kept = keep_item(
            number, item, utf8_size(item.text), first_passage=self._next_passage
        )
        self._first_passages.append(self._next_passage)
        self._owners.append(number)
        self._next_passage += len(kept.passage_ids)
        self.index.add(kept.passages, len(kept.passage_ids), about)
        self.kept[number] = kept
        self.size_bytes += kept.size_bytes
        self._by_id[item.item_id] = number
        if item.call_id is not None:
            self._by_call.setdefault(item.call_id, []).append(number)
        self._queue(item).append(number)
        self._make_room(number)
        return item

    def remove(self, item_id: str) -> None:
        """Take an item away that its program has taken back."""
        self._take_away(self._by_id[item_id])

    def _make_id(self, item: RunItem, number: int) -> str:
        """The id of the call for its result; programs may use one for many calls."""
        call_id = item.call_id or ""
        if item.role is not Role.TOOL_RESULT or not _PLAIN_ID.fullmatch(call_id):
            return f"item-{number}"
        if call_id in self._by_id or call_id in self._dropped:
            return f"{call_id}~{number}"
        return call_id

    def _cut(self, text: str) -> str:
        """One item alone may not drive out all others."""
        max_bytes = self._max_bytes // 2
        if utf8_size(text) <= max_bytes:
            return text
        self._cut_count += 1
        # The mark of the cut has two signs of three bytes.
        return cut_middle(text, max_bytes - 4 if text.isascii() else max_bytes // 4)

    def _make_room(self, newest: int) -> None:
        while self.size_bytes > self._max_bytes:
            number = self._oldest(newest)
            if number is None:
                return
            item = self.kept[number].item
            self._take_away(number)
            self._dropped[item.item_id] = replace(item, text="")
            self._dropped_count += 1
            if len(self._dropped) > _MAX_REMEMBERED:
                del self._dropped[next(iter(self._dropped))]

    def _oldest(self, newest: int) -> int | None:
        """The next to go: a tool result if there is one, but not the newest item."""
        for numbers in (self._results, self._turns):
            for number in numbers:
                if number != newest:
                    return number
        return None

    def _take_away(self, number: int) -> None:
        kept = self.kept.pop(number)
        self._queue(kept.item).remove(number)
        self._forget(kept)

    def _queue(self, item: RunItem) -> deque[int]:
        """Where an item waits to go: tool results go before all others."""
        return self._results if item.role is Role.TOOL_RESULT else self._turns

    def _forget(self, kept: Kept) -> None:
        self.index.remove(kept.passage_ids)
        self.size_bytes -= kept.size_bytes
        del self._by_id[kept.item.item_id]
        if kept.item.call_id is not None:
            self._by_call[kept.item.call_id].remove(kept.number)

    # -- finding ---

    def owner_of(self, passage_id: int) -> Kept:
        """The item to which a passage belongs that the index knows."""
        place = bisect_right(self._first_passages, passage_id) - 1
        return self.kept[self._owners[place]]

    def find(self, item_id: str) -> RunItem | None:
        number = self._by_id.get(item_id)
        return None if number is None else self.kept[number].item

    def get(self, item_id: str) -> RunItem:
        """The item of that id, or the latest result of the call, or the call itself."""
        found = self.find(item_id)
        if found is not None:
            return found
        if item_id in self._dropped:
            raise UnknownName(
                f"{_describe(self._dropped[item_id])} was dropped: {self._why_dropped}"
            )
        numbers = reversed(self._by_call.get(item_id, []))
        of_call = [self.kept[number].item for number in numbers]
        if of_call:
            # A result before its call, and the newest of several.
            return max(of_call, key=lambda item: item.role is Role.TOOL_RESULT)
        raise UnknownName(
            f"this run has no item '{item_id}'",
            hint=nearest_hint(item_id, self._by_id) if self._by_id else None,
        )

    @property
    def _why_dropped(self) -> str:
        return f"the history of a run holds {_megabytes(self._max_bytes)} at most"

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever searches must know: that something is gone, if it is."""
        cut = _say_count(self._cut_count)
        told = [
            f"Of this run's history {cut} kept in part, without its middle: one item "
            f"is half of {_megabytes(self._max_bytes)} at most."
        ]
        if not self._cut_count:
            told = []
        if not self._dropped_count:
            return tuple(told)
        last = max(item.iteration for item in self._dropped.values())
        told.append(
            f"Of this run's history {_say_count(self._dropped_count)} gone, oldest "
            f"tool results first, up to iteration {last}: {self._why_dropped}."
        )
        return tuple(told)


def _say_count(count: int) -> str:
    return "1 item is" if count == 1 else f"{count:,} items are"


def _describe(item: RunItem) -> str:
    what = "the result of" if item.role is Role.TOOL_RESULT else "what was said in"
    name = name_label(item.tool_name or "")
    tool = f" {name}" if name else f" '{item.item_id}'"
    return f"{what}{tool} at iteration {item.iteration}"


def _megabytes(size_bytes: int) -> str:
    if size_bytes < 1024 * 1024:
        return f"{size_bytes:,} bytes"
    return f"{size_bytes / (1024 * 1024):,.0f} MB"
