"""Find units by their words: those written last and those in packed rows, as one."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from backstory.store.base.index import UnitFilter, Words
from backstory.store.base.word_tokenizer import WordTokenizer
from backstory.store.postgres import bm25, last_words, units, word_rows
from backstory.store.postgres.bm25 import Floats, PhraseUnits
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.index_connection import IndexCounters, IndexTransactions
from backstory.store.postgres.postings import (
    Ints,
    Postings,
    find_places,
    intersect,
    join_postings,
    no_postings,
    to_term,
)
from backstory.store.postgres.recent_terms import (
    MAX_COUNTS,
    MAX_PHRASE_BYTES,
    MAX_POSTINGS_BYTES,
    RecentTerms,
    measure_bytes,
)

# Up to this many matching units are listed before words are matched.
_FEW_UNITS = 20_000
# How many of the best are looked up at first, for each that is wanted, if only some
# units match by their time or source. Otherwise, nearly all do.
_TRIED = 4
_MORE_EACH_TIME = 4
# Looking up one unit takes as long as listing this many that match.
_LISTED_FOR_ONE = 4


# At first, this many times the wanted number are ranked, as nearly all units match.
_FIRST_RANKED = 20
# The name under which a view remembers scores.
_LAST_SCORES = "scores of the last words"


class _Scores(NamedTuple):
    of: tuple[IndexCounters, Words]
    unit_ids: Ints
    scores: Floats


class PostgresWords:
    """Finds units by their words."""

    def __init__(self, transactions: IndexTransactions) -> None:
        self._transactions = transactions
        self._tokenizer = WordTokenizer()
        self._segments = word_rows.SegmentCounts()
        # By term, and whether they have positions.
        self._postings: RecentTerms[tuple[str, bool], Postings] = RecentTerms(
            MAX_POSTINGS_BYTES, measure_bytes
        )
        self._phrases: RecentTerms[str, PhraseUnits] = RecentTerms(
            MAX_PHRASE_BYTES, measure_bytes
        )
        self._counts: RecentTerms[str, int] = RecentTerms(MAX_COUNTS, lambda count: 1)

    def tokenize(self, text: str) -> list[str]:
        return self._tokenizer.tokenize(text)

    def match(
        self, words: Words, where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        if not words.needed or not where.kinds or limit <= 0:
            return []
        with self._transactions.reading() as (db, counters):
            unit_ids, scores = self._score_all(db, counters, words)
            few = _FIRST_RANKED * limit
            order = _rank(unit_ids, scores, few)
            fitting = _keep_fitting(db, counters, unit_ids[order], where, limit)
            if len(fitting) < limit and len(order) < len(unit_ids):
                order = _rank(unit_ids, scores, len(unit_ids))
                fitting = _keep_fitting(db, counters, unit_ids[order], where, limit)
            found = scores[np.searchsorted(unit_ids, fitting)]
            return list(zip(fitting, found.tolist(), strict=True))

    def _score_all(
        self, db: Connection, counters: IndexCounters, words: Words
    ) -> tuple[Ints, Floats]:
        """All units with any of the needed words, in order, and their scores.

        They are the same for every filter, so a view remembers those of the last words.
        """
        view = self._transactions.tenant.view
        asked = (counters, words)
        known = None if view is None else view.values.get(_LAST_SCORES)
        if isinstance(known, _Scores) and known.of == asked:
            return known.unit_ids, known.scores
        # As in SQLite: with helpful words, the needed ones count twice.
        times = 2 if words.helpful else 1
        spellings = _flat(words.needed), _flat(words.helpful)
        # All are read at once.
        found = self._find_spellings(db, counters, [*spellings[0], *spellings[1]])
        needed, helpful = found[: len(spellings[0])], found[len(spellings[0]) :]
        unit_ids = _union(needed)
        scores = bm25.score(
            [(each, times) for each in needed] + [(each, 1) for each in helpful],
            unit_ids,
            unit_count=counters.unit_count,
            word_count=counters.word_count,
        )
        if view is not None:
            view.values[_LAST_SCORES] = _Scores(asked, unit_ids, scores)
        return unit_ids, scores

    def find_all(
        self, words: Sequence[tuple[str, ...]], where: UnitFilter, limit: int
    ) -> list[int]:
        if not words or not where.kinds or limit <= 0:
            return []
        with self._transactions.reading() as (db, counters):
            phrases = self._find_phrases(
                db, counters, {each: self.tokenize(each) for each in _flat(words)}
            )
            having = [
                _union_of_texts(phrases[each] for each in spellings)
                for spellings in words
            ]
            among = intersect(having).tolist()
            if not among:
                return []
            return units.list_newest(db, counters.index_id, where, limit, among=among)

    def having(
        self, words: Sequence[tuple[str, ...]], unit_ids: Collection[int]
    ) -> list[int]:
        if not words or not unit_ids:
            return []
        with self._transactions.reading() as (db, counters):
            parts = {part for each in _flat(words) for part in each.split() or [""]}
            phrases = self._find_phrases(
                db, counters, {part: self.tokenize(part) for part in parts}
            )
        having = []
        for spellings in words:
            of_each = [
                intersect(
                    [_union_of_texts([phrases[part]]) for part in each.split() or [""]]
                )
                for each in spellings
            ]
            having.append(_merge(of_each))
        return sorted(set(intersect(having).tolist()) & set(unit_ids))

    def find_with_words(
        self, db: Connection, counters: IndexCounters, words: Sequence[str]
    ) -> list[int]:
        """The units whose own text has all of the words."""
        phrases = self._find_spellings(db, counters, words)
        having = [_union_of_texts([each]) for each in phrases]
        return _to_list(intersect(having))

    def score(self, words: Words, unit_ids: Collection[int]) -> dict[int, float]:
        if not words.needed or not unit_ids:
            return {}
        with self._transactions.reading() as (db, counters):
            phrases = self._find_spellings(
                db, counters, _flat(words.needed + words.helpful)
            )
        wanted = np.sort(np.fromiter(unit_ids, np.int64, len(unit_ids)))
        has_any = np.zeros(len(wanted), np.bool_)
        for each in phrases:
            has_any |= find_places(wanted, each.unit_ids)[1]
        wanted = wanted[has_any]
        scores = bm25.score(
            [(each, 1) for each in phrases],
            wanted,
            unit_count=counters.unit_count,
            word_count=counters.word_count,
        )
        return dict(zip(wanted.tolist(), scores.tolist(), strict=True))

    def count_units(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        """The most units that can have each word, added up over its spellings."""
        with self._transactions.reading() as (db, counters):
            counts = self.count_units_of(db, counters, _flat(words))
        return [sum(counts[each] for each in spellings) for spellings in words]

    def count_units_of(
        self, db: Connection, counters: IndexCounters, spellings: Iterable[str]
    ) -> dict[str, int]:
        """The most units that can have each of some spellings."""
        tokens = {each: self.tokenize(each) for each in spellings}
        terms = {to_term(token) for token in chain.from_iterable(tokens.values())}
        counts = self._counts.find(counters, terms)
        if missing := terms - counts.keys():
            packed = word_rows.count_units(db, counters.index_id, missing)
            last = last_words.count_units(db, counters.index_id, missing)
            read = {term: packed.get(term, 0) + last.get(term, 0) for term in missing}
            self._counts.keep(counters, read)
            counts |= read
        return {
            each: min((counts[to_term(token)] for token in some), default=0)
            for each, some in tokens.items()
        }

    def knows_units_of(self, counters: IndexCounters, word: str) -> bool:
        """Whether the units that have a word were read before."""
        terms = {to_term(token) for token in self.tokenize(word)}
        wanted = {(term, False) for term in terms}
        return self._postings.find(counters, wanted).keys() == wanted

    def _find_spellings(
        self, db: Connection, counters: IndexCounters, spellings: Sequence[str]
    ) -> list[PhraseUnits]:
        tokens = {each: self.tokenize(each) for each in spellings}
        found = self._find_phrases(db, counters, tokens)
        return [found[each] for each in spellings]

    def _find_phrases(
        self, db: Connection, counters: IndexCounters, tokens: dict[str, list[str]]
    ) -> dict[str, PhraseUnits]:
        """The units that have each phrase, which is given with its tokens.

        Those of several tokens are remembered: what was found by them is scored by them
        again, and finding them takes long if the tokens are frequent.
        """
        found = self._phrases.find(counters, tokens)
        others = {each: some for each, some in tokens.items() if each not in found}
        read = self._read_phrases(db, counters, others)
        several = {k: units for k, units in read.items() if len(others[k]) > 1}
        self._phrases.keep(counters, several)
        return found | read

    def _read_phrases(
        self, db: Connection, counters: IndexCounters, tokens: dict[str, list[str]]
    ) -> dict[str, PhraseUnits]:
        several = [some for some in tokens.values() if len(some) > 1]
        in_phrases = {to_term(token) for token in chain.from_iterable(several)}
        terms = {to_term(token) for token in chain.from_iterable(tokens.values())}
        postings = self._get_postings(db, counters, in_phrases, with_positions=True)
        # Positions take most of the room.
        postings |= self._get_postings(
            db, counters, terms - in_phrases, with_positions=False
        )
        return {
            phrase: bm25.find_phrase([postings[to_term(token)] for token in some])
            for phrase, some in tokens.items()
        }

    def _get_postings(
        self,
        db: Connection,
        counters: IndexCounters,
        terms: set[str],
        *,
        with_positions: bool,
    ) -> dict[str, Postings]:
        """The postings of all these terms: those that are remembered, and others."""
        wanted = [(term, with_positions) for term in terms]
        found = self._postings.find(counters, wanted)
        known = {term: postings for (term, _), postings in found.items()}
        missing = terms - known.keys()
        if not missing:
            return known
        read = self._find_postings(
            db, counters.index_id, missing, with_positions=with_positions
        )
        self._postings.keep(
            counters,
            {(term, with_positions): postings for term, postings in read.items()},
        )
        return known | read

    def _find_postings(
        self,
        db: Connection,
        index_id: int,
        terms: Collection[str],
        *,
        with_positions: bool,
    ) -> dict[str, Postings]:
        packed = word_rows.find_postings(
            db, index_id, terms, self._segments, with_positions=with_positions
        )
        last = last_words.find_postings(db, index_id, terms)
        if not with_positions:
            nothing = no_postings().positions
            last = {k: each._replace(positions=nothing) for k, each in last.items()}
        return {
            term: join_postings([each[term] for each in (packed, last) if term in each])
            for term in terms
        }


def _rank(unit_ids: Ints, scores: Floats, count: int) -> Ints:
    """Where the best are, the best first; of equals, the one with the highest number.

    At least ``count`` of them, if there are that many.
    """
    if count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    order: Ints = places[np.lexsort((-unit_ids[places], -scores[places]))]
    return order


def _keep_fitting(
    db: Connection,
    counters: IndexCounters,
    unit_ids: Ints,
    where: UnitFilter,
    limit: int,
) -> list[int]:
    """The first of these units that match, in the same order."""
    is_narrow = (
        where.containers is not None
        or where.said_from is not None
        or where.said_before is not None
    )
    found: list[int] = []
    first, tried = 0, _TRIED * limit if is_narrow else limit
    while first < len(unit_ids) and len(found) < limit:
        # If few of the best match, all that match may be fewer than all that are found.
        if is_narrow and (first or len(unit_ids) > _FEW_UNITS):
            is_narrow = False
            most = min(_FEW_UNITS, _LISTED_FOR_ONE * (len(unit_ids) - first))
            few = units.list_fitting(db, counters.index_id, where, most + 1)
            if len(few) <= most:
                rest = unit_ids[first:]
                _, fits = find_places(rest, np.sort(np.asarray(few, np.int64)))
                found += _to_list(rest[fits])
                break
        some = unit_ids[first : first + tried].tolist()
        fitting = units.keep_fitting(db, counters.index_id, some, where)
        found += [unit_id for unit_id in some if unit_id in fitting]
        first, tried = first + tried, tried * _MORE_EACH_TIME
    return found[:limit]


def _flat(words: Iterable[Sequence[str]]) -> list[str]:
    return list(chain.from_iterable(words))


def _union(phrases: Sequence[PhraseUnits]) -> Ints:
    if not phrases:
        return no_postings().unit_ids
    return _merge([each.unit_ids for each in phrases])


def _union_of_texts(phrases: Iterable[PhraseUnits]) -> Ints:
    """The units that have any of the phrases in their own text."""
    found = [each.unit_ids[each.text_counts > 0] for each in phrases]
    return _merge([no_postings().unit_ids, *found])


def _merge(sets: Sequence[Ints]) -> Ints:
    """All numbers of some arrays that are in order: in order, and each once.

    ``np.unique`` does not know that they are in order, and takes many times as long.
    """
    numbers = np.concatenate(sets)
    numbers.sort(kind="stable")
    is_new = np.ones(len(numbers), np.bool_)
    is_new[1:] = numbers[1:] != numbers[:-1]
    return numbers[is_new]


def _to_list(numbers: Ints) -> list[int]:
    listed: list[int] = numbers.tolist()
    return listed
