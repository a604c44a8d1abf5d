"""Find any part of a text by comparing the folded texts of units, the newest first."""

from collections.abc import Collection
from typing import ClassVar

from backstory.store.base.index import UnitFilter
from backstory.store.postgres import text_grams, units
from backstory.store.postgres.folded_texts import to_stored
from backstory.store.postgres.index_connection import IndexTransactions
from backstory.store.postgres.words import PostgresWords

# Only the texts of units that have the words of the needle are compared, if these are
# not more than this.
_MAX_LOOKED_UP = 400
_TELLING_WORDS = 3
# Of so many units in whose blocks some have the grams of a needle, texts are compared:
# some twenty milliseconds. A part that more have is frequent, or its grams are.
_MAX_COMPARED = 12_000
# Before all texts are compared from the newest on, which takes most of a second if few
# have the needle after all. Of a part that more than these have, that finds the newest
# soon.
_MAX_COMPARED_AT_LAST = 48_000


class TextSearch:
    """Finds units by any part of their folded text."""

    # Up to this many units, all texts are compared: some milliseconds.
    small: ClassVar[int] = 20_000

    def __init__(self, transactions: IndexTransactions, words: PostgresWords) -> None:
        self._transactions = transactions
        self._words = words

    def find(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        few = self.find_few(folded, where, limit)
        if few is not None:
            return few
        with self._transactions.reading() as (db, counters):
            index_id, needle = counters.index_id, to_stored(folded)
            ranges = None
            if counters.unit_count > self.small:
                ranges = text_grams.find_ranges(
                    db, index_id, needle, _MAX_COMPARED_AT_LAST
                )
            if ranges is not None:
                return units.list_newest_in(db, index_id, where, limit, ranges, needle)
            return units.list_newest(db, index_id, where, limit, folded=folded)

    def find_few(self, folded: str, where: UnitFilter, limit: int) -> list[int] | None:
        if not folded or not where.kinds or limit <= 0:
            return []
        with self._transactions.reading() as (db, counters):
            index_id = counters.index_id
            if telling := _list_telling_words(folded):
                among = self._words.find_with_words(db, counters, telling)
                if len(among) <= _MAX_LOOKED_UP:
                    return units.list_newest(
                        db, index_id, where, limit, among=among, folded=folded
                    )
            if counters.unit_count <= self.small:
                return units.list_newest(db, index_id, where, limit, folded=folded)
            needle = to_stored(folded)
            ranges = text_grams.find_ranges(db, index_id, needle, _MAX_COMPARED)
            if ranges is None:
                return None
            return units.list_newest_in(db, index_id, where, limit, ranges, needle)

    def having(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        with self._transactions.reading() as (db, counters):
            return units.list_having_text(db, counters.index_id, folded, unit_ids)


def _list_telling_words(folded: str) -> list[str]:
    """Words that every text with this part has: those in its middle.

    Long words are rare, and others would only take time.
    """
    whole = [word for word in folded.split(" ")[1:-1] if _is_plain(word)]
    return sorted(whole, key=len)[-_TELLING_WORDS:]


def _is_plain(word: str) -> bool:
    """Whether the index has just this one word for it."""
    return word.isascii() and word.isalnum()
