"""What was read of terms last: a search asks for the same ones several times."""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from backstory.store.postgres.bm25 import PhraseUnits
from backstory.store.postgres.index_connection import IndexCounters
from backstory.store.postgres.postings import Postings
from backstory.system.fork_safety import reset_in_child

# Those of the words of one search in a million messages.
MAX_POSTINGS_BYTES = 24_000_000
# Those of the phrases of one search; most phrases are in few units.
MAX_PHRASE_BYTES = 4_000_000
# Enough for the words of many searches, and for similar spellings of a few words.
MAX_COUNTS = 10_000

Key = TypeVar("Key")
Value = TypeVar("Value")


class RecentTerms(Generic[Key, Value]):
    """What an index has of some terms, as long as it stays the same.

    When it would get larger than ``max_size``, all of it is dropped; ``measure`` tells
    the size of one value.
    """

    def __init__(self, max_size: int, measure: Callable[[Value], int]) -> None:
        self._max_size = max_size
        self._measure = measure
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._of: IndexCounters | None = None
        self._known: dict[Key, Value] = {}
        self._size = 0

    def find(
        self, counters: IndexCounters, wanted: Collection[Key]
    ) -> dict[Key, Value]:
        """Those of the wanted ones that are remembered."""
        with self._lock:
            if self._of != counters:
                return {}
            return {each: self._known[each] for each in wanted if each in self._known}

    def keep(self, counters: IndexCounters, found: Mapping[Key, Value]) -> None:
        size = sum(map(self._measure, found.values()))
        with self._lock:
            if self._of != counters or self._size + size > self._max_size:
                self._of, self._known, self._size = counters, {}, 0
            if size <= self._max_size:
                self._known |= found
                self._size += size


def measure_bytes(columns: Postings | PhraseUnits) -> int:
    return sum(column.nbytes for column in columns)
