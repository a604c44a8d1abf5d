"""The items of one run: numbered, indexed, identified by ids, and limited in size.

If they become too large, the oldest tool results are dropped first, then the oldest of
the rest. The ids of dropped items are kept, so that a request for one can be explained.
"""

import re
from array import array
from bisect import bisect_right
from collections import deque

from backstory.errors import UnknownName, nearest_hint
from backstory.runs.search import IndexedItem, cut_item
from backstory.store.base.run_index import RunIndex
from backstory.store.sqlite.run_index import SqliteRunIndex
from backstory.text.arguments import show_name
from backstory.text.cut import cut_middle, utf8_size
from backstory.text.envelope import name_label
from backstory.values.history import Role
from backstory.values.runs import RunItem
from backstory.values.structs import replace

# A call's id that may appear in a marker, and can be read back from it.
_PLAIN_ID = re.compile(r"(?!item-\d+$)[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,127}")
_MAX_DROPPED_IDS = 10_000


class RunItems:
    """Items in the order in which they were recorded. Not safe for several threads."""

    def __init__(self, max_bytes: int, *, first_number: int = 1) -> None:
        self.index: RunIndex = SqliteRunIndex()
        self.by_number: dict[int, IndexedItem] = {}
        self.size_bytes = 0
        self._max_bytes = max_bytes
        self.next_number = first_number
        # The first passage and the number of every item, in the order of passages;
        # dropped items stay here.
        self._next_passage = 0
        self._first_passages = array("Q")
        self._numbers = array("Q")
        self._by_id: dict[str, int] = {}
        self._by_call: dict[str, list[int]] = {}
        # Numbers in the order in which items are dropped: all results, then the rest.
        self._results: deque[int] = deque()
        self._turns: deque[int] = deque()
        self._dropped: dict[str, RunItem] = {}
        self._dropped_count = 0
        self._cut_count = 0

    def close(self) -> None:
        self.index.close()
        self.by_number.clear()

    # -- adding and removing ---

    def add(
        self, item: RunItem, about: str, *, replacing: RunItem | None = None
    ) -> RunItem:
        """Keep an item under its own id; ``about`` are additional words to find it by.

        It takes the place of the item that it is ``replacing``.
        """
        number = self._by_id.get(replacing.item_id) if replacing else None
        if number is None:
            number = self.next_number
            self.next_number += 1
        else:
            self._queue(self.by_number[number].item).remove(number)
            self._unindex(self.by_number[number])
        item = replace(
            item, item_id=self._make_id(item, number), text=self._cut(item.text)
        )
        self._index(number, item, about)
        self._drop_oldest(newest=number)
        return item

    def remove(self, item_id: str) -> None:
        """Remove an item that its program has taken back."""
        self._remove(self._by_id[item_id])

    def _make_id(self, item: RunItem, number: int) -> str:
        """For a result, its call's id, made unique: programs may reuse ids."""
        call_id = item.call_id or ""
        if item.role is not Role.TOOL_RESULT or not _PLAIN_ID.fullmatch(call_id):
            return f"item-{number}"
        if call_id in self._by_id or call_id in self._dropped:
            return f"{call_id}~{number}"
        return call_id

    def _cut(self, text: str) -> str:
        """Cut a text that would take more than half of the space for all items."""
        max_bytes = self._max_bytes // 2
        if utf8_size(text) <= max_bytes:
            return text
        self._cut_count += 1
        # The mark of the cut contains two characters of three bytes.
        return cut_middle(text, max_bytes - 4 if text.isascii() else max_bytes // 4)

    def _index(self, number: int, item: RunItem, about: str) -> None:
        indexed = cut_item(
            number, item, utf8_size(item.text), first_passage=self._next_passage
        )
        self._first_passages.append(self._next_passage)
        self._numbers.append(number)
        self._next_passage += len(indexed.passage_ids)
        self.index.add(indexed.passages, len(indexed.passage_ids), about)
        self.by_number[number] = indexed
        self.size_bytes += indexed.size_bytes
        self._by_id[item.item_id] = number
        if item.call_id is not None:
            self._by_call.setdefault(item.call_id, []).append(number)
        self._queue(item).append(number)

    def _unindex(self, indexed: IndexedItem) -> None:
        self.index.remove(indexed.passage_ids)
        self.size_bytes -= indexed.size_bytes
        del self._by_id[indexed.item.item_id]
        if indexed.item.call_id is not None:
            self._by_call[indexed.item.call_id].remove(indexed.number)

    def _queue(self, item: RunItem) -> deque[int]:
        return self._results if item.role is Role.TOOL_RESULT else self._turns

    def _remove(self, number: int) -> None:
        indexed = self.by_number.pop(number)
        self._queue(indexed.item).remove(number)
        self._unindex(indexed)

    def _drop_oldest(self, *, newest: int) -> None:
        """Drop items until the rest fit, but never the newest."""
        while self.size_bytes > self._max_bytes:
            number = self._next_to_drop(newest)
            if number is None:
                return
            item = self.by_number[number].item
            self._remove(number)
            self._dropped[item.item_id] = replace(item, text="")
            self._dropped_count += 1
            if len(self._dropped) > _MAX_DROPPED_IDS:
                del self._dropped[next(iter(self._dropped))]

    def _next_to_drop(self, newest: int) -> int | None:
        for numbers in (self._results, self._turns):
            for number in numbers:
                if number != newest:
                    return number
        return None

    # -- finding ---

    def item_of(self, passage_id: int) -> IndexedItem:
        """The item that a passage in the index belongs to."""
        place = bisect_right(self._first_passages, passage_id) - 1
        return self.by_number[self._numbers[place]]

    def find(self, item_id: str) -> RunItem | None:
        number = self._by_id.get(item_id)
        return None if number is None else self.by_number[number].item

    def get(self, item_id: str) -> RunItem:
        """The item with this id, or the latest result of this call, or the call itself.

        Raises ``UnknownName`` if there is none, or if it was dropped.
        """
        found = self.find(item_id)
        if found is not None:
            return found
        if item_id in self._dropped:
            raise UnknownName(
                f"{_describe(self._dropped[item_id])} was dropped: {self._why_dropped}"
            )
        numbers = reversed(self._by_call.get(item_id, []))
        of_call = [self.by_number[number].item for number in numbers]
        if of_call:
            # A result rather than its call, and the newest of several.
            return max(of_call, key=lambda item: item.role is Role.TOOL_RESULT)
        raise UnknownName(
            f"this run has no item '{show_name(item_id)}'",
            hint=nearest_hint(item_id, self._by_id) if self._by_id else None,
        )

    @property
    def _why_dropped(self) -> str:
        return f"the history of a run holds at most {_megabytes(self._max_bytes)}"

    @property
    def notices(self) -> tuple[str, ...]:
        """What a search should mention: items that are cut or gone."""
        notices = []
        if self._cut_count:
            notices.append(
                f"In this run's history, {_say_count(self._cut_count)} kept without "
                "the middle: one item takes at most half of "
                f"{_megabytes(self._max_bytes)}."
            )
        if self._dropped_count:
            last = max(item.iteration for item in self._dropped.values())
            notices.append(
                f"In this run's history, {_say_count(self._dropped_count)} gone, "
                f"oldest tool results first, up to iteration {last}: "
                f"{self._why_dropped}."
            )
        return tuple(notices)


def _say_count(count: int) -> str:
    return "1 item is" if count == 1 else f"{count:,} items are"


def _describe(item: RunItem) -> str:
    what = {Role.TOOL_RESULT: "the result", Role.TOOL_CALL: "the call"}.get(item.role)
    if what is None:
        said = f"what was said in '{item.item_id}'"
    else:
        said = f"{what} of {name_label(item.tool_name or '') or repr(item.item_id)}"
    return f"{said} at iteration {item.iteration}"


def _megabytes(size_bytes: int) -> str:
    if size_bytes < 1024 * 1024:
        return f"{size_bytes:,} bytes"
    return f"{size_bytes / (1024 * 1024):,.0f} MB"
