"""The words that one transaction writes, and where they go.

A few go to ``last_words``. As soon as there are too many, all of them are
packed, apart from those of the latest messages: the next message changes the words
around these.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import ClassVar

from backstory.store.postgres import last_words, word_rows
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.postings import UnitWords
from backstory.store.postgres.term_uses import SEGMENT_SIZE
from backstory.values.units import is_message

# How many units may wait in memory: those of a segment, and some more.
_MAX_PENDING = SEGMENT_SIZE * 3 // 2


class WordWriter:
    """Collects the words of units, and stores them at the end of a transaction."""

    # The rows of more units than this would be slow to read.
    max_tail: ClassVar[int] = 512
    # How many messages stay when the others are packed, at least and at most.
    latest: ClassVar[int] = 64
    most_latest: ClassVar[int] = 256

    def __init__(self, db: Connection, index_id: int, tail_count: int) -> None:
        self._db = db
        self._index_id = index_id
        self._pending: dict[int, UnitWords] = {}
        self.tail_count = tail_count

    def add(self, unit_id: int, words: UnitWords) -> None:
        """Add a unit that has no words yet."""
        if words.word_count:
            self._pending[unit_id] = words
        if len(self._pending) > _MAX_PENDING:
            self.store()

    def delete(self, unit_ids: Collection[int]) -> None:
        """Delete the words of units; those that have none are ignored."""
        stored = [each for each in unit_ids if self._pending.pop(each, None) is None]
        if not stored:
            return
        if self.tail_count:
            in_tail = last_words.delete_words(self._db, self._index_id, stored)
            self.tail_count -= len(in_tail)
            stored = [each for each in stored if each not in in_tail]
        if stored:
            word_rows.hide_units(self._db, self._index_id, stored)

    def clear(self) -> None:
        """Forget everything, because it was all deleted."""
        self._pending.clear()
        self.tail_count = 0

    def store(self) -> None:
        words, self._pending = self._pending, {}
        if not words:
            return
        if self.tail_count + len(words) > self.max_tail:
            words |= last_words.take_words(self._db, self._index_id)
            latest = {each: words.pop(each) for each in self._find_latest(words)}
            word_rows.add_words(self._db, self._index_id, words)
            words, self.tail_count = latest, 0
        last_words.insert_words(self._db, self._index_id, words)
        self.tail_count += len(words)

    def _find_latest(self, unit_ids: Iterable[int]) -> list[int]:
        """The messages that stay: the latest, and a segment of which there are few.

        Those are packed with the rest of the segment, so that it is written only once.
        """
        messages = sorted(filter(is_message, unit_ids))
        first = max(0, len(messages) - self.latest)
        if messages:
            begins = bisect_left(messages, messages[-1] & ~(SEGMENT_SIZE - 1))
            is_little = len(messages) - begins <= self.most_latest
            if 0 < begins < first and is_little:
                first = begins
        return messages[first:]
