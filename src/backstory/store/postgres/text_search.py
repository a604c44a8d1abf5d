"""Find any part of a text by comparing the folded texts of units, the newest first."""

import math
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import ClassVar

from backstory.store.base.index import UnitFilter
from backstory.store.postgres import text_grams, units
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.folded_texts import to_stored
from backstory.store.postgres.index_connection import (
    IndexCounters,
    IndexTransactions,
)
from backstory.store.postgres.text_grams import (
    Candidates,
    GramSegment,
    UnitRange,
)
from backstory.store.postgres.words import PostgresWords

# Only the texts of units that have the words of the needle are compared, if these are
# not more than this.
_MAX_LOOKED_UP = 1_000
_TELLING_WORDS = 3
# And which units have a word is only read for that if these are not more than this.
_MAX_RARE = 5_000
# A part is frequent, or its grams are, if more units than this are next to some that
# have them. Otherwise, few have all of them, and comparing these takes milliseconds.
_MAX_COMPARED = 12_000
# The same before all texts are compared from the newest on, which takes most of a
# second if few have the part after all. If more units than this have it, that finds the
# newest soon.
_MAX_COMPARED_AT_LAST = 48_000
# So many ranges are read at once, at first: about a millisecond.
_FIRST_RANGES = 400


class TextSearch:
    """Finds units by any part of their folded text."""

    # Up to this many units, all texts are compared: some milliseconds.
    small: ClassVar[int] = 20_000

    def __init__(self, transactions: IndexTransactions, words: PostgresWords) -> None:
        self._transactions = transactions
        self._words = words
        self._last_candidates: (
            tuple[tuple[IndexCounters, str], list[Candidates] | None] | None
        ) = None
        self._last_segments: tuple[IndexCounters, list[GramSegment]] | None = None

    def find(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        few = self.find_few(folded, where, limit)
        if few is not None:
            return few
        with self._transactions.reading() as (db, counters):
            index_id, needle = counters.index_id, to_stored(folded)
            found = None
            if counters.unit_count > self.small:
                found = self._find_candidates(
                    db, counters, needle, _MAX_COMPARED_AT_LAST
                )
            if found is not None:
                return _list_newest_of(db, index_id, where, limit, found, needle)
            return units.list_newest(db, index_id, where, limit, folded=folded)

    def _find_candidates(
        self, db: Connection, counters: IndexCounters, needle: str, limit: int
    ) -> list[Candidates] | None:
        """Where units may have the needle; None if these may be more than ``limit``.

        The last answer is remembered: what proves to be frequent is often asked for
        again, with a higher limit. It is right as long as the index stays the same.
        """
        asked = (counters, needle)
        last = self._last_candidates
        if last is None or last[0] != asked:
            found = text_grams.find_candidates(
                db,
                counters.index_id,
                needle,
                _MAX_COMPARED_AT_LAST,
                self._list_segments(db, counters),
            )
            last = self._last_candidates = (asked, found)
        candidates = last[1]
        if candidates is None or text_grams.count_units(candidates) > limit:
            return None
        return candidates

    def _list_segments(
        self, db: Connection, counters: IndexCounters
    ) -> list[GramSegment]:
        """The segments that have grams; while the index stays the same, read once."""
        last = self._last_segments
        if last is None or last[0] != counters:
            found = text_grams.list_segments(db, counters.index_id)
            last = self._last_segments = (counters, found)
        return last[1]

    def find_few(self, folded: str, where: UnitFilter, limit: int) -> list[int] | None:
        if not folded or not where.kinds or limit <= 0:
            return []
        with self._transactions.reading() as (db, counters):
            index_id = counters.index_id
            telling = _list_telling_words(folded)
            counts = self._words.count_units_of(db, counters, telling)
            # Reading the units of a frequent word takes longer than comparing texts.
            known = [
                word
                for word in telling
                if counts[word] <= _MAX_RARE
                or self._words.knows_units_of(counters, word)
            ]
            if known:
                among = self._words.find_with_words(db, counters, known)
                if len(among) <= _MAX_LOOKED_UP:
                    return units.list_newest(
                        db, index_id, where, limit, among=among, folded=folded
                    )
            if counters.unit_count <= self.small:
                return units.list_newest(db, index_id, where, limit, folded=folded)
            needle = to_stored(folded)
            found = self._find_candidates(db, counters, needle, _MAX_COMPARED)
            if found is None:
                return None
            return _list_newest_of(db, index_id, where, limit, found, needle)

    def having(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        with self._transactions.reading() as (db, counters):
            return units.list_having_text(db, counters.index_id, folded, unit_ids)


def _list_newest_of(
    db: Connection,
    index_id: int,
    where: UnitFilter,
    limit: int,
    candidates: Iterable[Candidates],
    needle: str,
) -> list[int]:
    """The newest units that match and contain a text.

    Segments with newer units come first, until enough are found that are newer than all
    units of the others.
    """
    since, _ = where.widest_bounds()
    found: list[tuple[int, int | None]] = []
    for ranges, newest_left in _iter_batches(candidates, since):
        found += units.list_newest_in(db, index_id, where, limit, ranges, needle)
        found.sort(key=_newest_first)
        del found[limit:]
        last = found[-1][1] if len(found) == limit else None
        if last is not None and last > newest_left:
            break
    return [unit_id for unit_id, _ in found]


def _newest_first(unit: tuple[int, int | None]) -> tuple[bool, int, int]:
    unit_id, said_at = unit
    return said_at is None, -(said_at or 0), -unit_id


def _iter_batches(
    candidates: Iterable[Candidates], since: int | None
) -> Iterator[tuple[list[UnitRange], float]]:
    """Ever more ranges at a time, and when the newest of those left may be from."""
    known = []
    ranges: list[UnitRange] = []
    for each in candidates:
        if each.newest_at is None:
            ranges += each.ranges
        elif since is None or each.newest_at >= since:
            known.append((each.newest_at, each.ranges))
    known.sort(key=itemgetter(0))
    wanted = _FIRST_RANGES
    while known:
        newest_at, some = known.pop()
        if len(ranges) >= wanted:
            yield ranges, newest_at
            ranges, wanted = [], 2 * wanted
        ranges += some
    yield ranges, -math.inf


def _list_telling_words(folded: str) -> list[str]:
    """Words that every text with this part has: those in its middle.

    Long words are rare, and others would only take time.
    """
    whole = [word for word in folded.split(" ")[1:-1] if _is_plain(word)]
    return sorted(whole, key=len)[-_TELLING_WORDS:]


def _is_plain(word: str) -> bool:
    """Whether the index has just this one word for it."""
    return word.isascii() and word.isalnum()
