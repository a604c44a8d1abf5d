"""What was read of words last: a search asks for the same words several times."""

import threading
from collections.abc import Collection, Mapping

from backstory.store.postgres.bm25 import PhraseUnits
from backstory.store.postgres.index_connection import IndexCounters
from backstory.store.postgres.postings import Postings
from backstory.system.fork_safety import reset_in_child

# Those of the words of one search in a million messages.
_MAX_BYTES = 24_000_000
# Those of the phrases of one search; most phrases are in few units.
_MAX_PHRASE_BYTES = 4_000_000
# Enough for the words of many searches, and for similar spellings of a few words.
_MAX_COUNTS = 10_000


class RecentPostings:
    """Postings of an index as long as it stays the same."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._of: IndexCounters | None = None
        self._known: dict[tuple[str, bool], Postings] = {}
        self._size_bytes = 0

    def find(
        self, counters: IndexCounters, terms: Collection[str], *, with_positions: bool
    ) -> dict[str, Postings]:
        """Those of the terms that are remembered."""
        with self._lock:
            if self._of != counters:
                return {}
            found = {term: self._known.get((term, with_positions)) for term in terms}
        return {term: each for term, each in found.items() if each is not None}

    def keep(
        self,
        counters: IndexCounters,
        postings: Mapping[str, Postings],
        *,
        with_positions: bool,
    ) -> None:
        size = sum(column.nbytes for each in postings.values() for column in each)
        with self._lock:
            if self._of != counters or self._size_bytes + size > _MAX_BYTES:
                self._of, self._known, self._size_bytes = counters, {}, 0
            if size <= _MAX_BYTES:
                self._known |= {
                    (term, with_positions): each for term, each in postings.items()
                }
                self._size_bytes += size


class RecentPhrases:
    """The units of an index that have some phrases, as long as it stays the same."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._of: IndexCounters | None = None
        self._known: dict[str, PhraseUnits] = {}
        self._size_bytes = 0

    def find(
        self, counters: IndexCounters, phrases: Collection[str]
    ) -> dict[str, PhraseUnits]:
        """Those of the phrases that are remembered."""
        with self._lock:
            if self._of != counters:
                return {}
            return {each: self._known[each] for each in phrases if each in self._known}

    def keep(self, counters: IndexCounters, phrases: Mapping[str, PhraseUnits]) -> None:
        size = sum(column.nbytes for each in phrases.values() for column in each)
        with self._lock:
            if self._of != counters or self._size_bytes + size > _MAX_PHRASE_BYTES:
                self._of, self._known, self._size_bytes = counters, {}, 0
            if size <= _MAX_PHRASE_BYTES:
                self._known |= phrases
                self._size_bytes += size


class RecentCounts:
    """How many units of an index have some terms, as long as it stays the same."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._of: IndexCounters | None = None
        self._known: dict[str, int] = {}

    def find(self, counters: IndexCounters, terms: Collection[str]) -> dict[str, int]:
        """The counts of the terms that are remembered."""
        with self._lock:
            if self._of != counters:
                return {}
            return {term: self._known[term] for term in terms if term in self._known}

    def keep(self, counters: IndexCounters, counts: Mapping[str, int]) -> None:
        with self._lock:
            is_full = len(self._known) + len(counts) > _MAX_COUNTS
            if self._of != counters or is_full:
                self._of, self._known = counters, {}
            if len(counts) <= _MAX_COUNTS:
                self._known |= counts
