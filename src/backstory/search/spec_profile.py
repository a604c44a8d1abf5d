"""The profile ``spec``: the formulas of the spec.

Each list of scores is divided by its best or scaled to its range, a unit that is
missing from a list gets nothing from it, and age counts in full. Everything in which
this profile differs from the tuned one is here; start reading at ``SpecProfile``.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, TypeVar

from backstory.search.rank import (
    Candidate,
    Ranked,
    best_first,
    divide_by_best,
    to_candidates,
)
from backstory.search.retrieve import POOL, Retrieved, Retriever
from backstory.search.strength import CoverageMeter
from backstory.search.weights import Weights
from backstory.store.base.index import UnitFilter
from backstory.text.bm25 import bm25
from backstory.text.words import index_words
from backstory.values.hits import Hit, HitSource, Recalled
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct, replace
from backstory.values.units import MESSAGES, UnitKind

# How many units memory_search takes from each list.
_LIST_POOL = 20
# How many units with the text as typed search_history takes.
_TEXT_POOL = 200
_PARTS = ("fit", "source", "age")

Key = TypeVar("Key")


class SpecProfile(FrozenStruct):
    """Retrieves and ranks by the spec's formulas."""

    retriever: Retriever
    chunk_widths: ClassVar[tuple[int, ...]] = (1,)
    ranks_warm_ups_last: ClassVar[bool] = False

    def retrieve(
        self, query: Query, where: UnitFilter, *, until: float, width: int
    ) -> Retrieved:
        """Notes by words and meaning; messages and sessions by the text as typed."""
        notes = replace(where, kinds=where.kinds - MESSAGES - {UnitKind.SESSION})
        talk = replace(where, kinds=where.kinds & (MESSAGES | {UnitKind.SESSION}))
        found = Retrieved()
        self.retriever.run(
            {
                "by words": lambda: self._score_notes(query, notes),
                "by meaning": lambda: self.retriever.nearest(
                    query, notes, POOL, until=until
                ),
                "by text": lambda: self.retriever.find_query(
                    query, talk, width * _TEXT_POOL
                ),
            },
            found,
            until=until,
        )
        found.units = self.retriever.index.get_units(found.unit_ids)
        return found

    def _score_notes(self, query: Query, where: UnitFilter) -> Retrieved:
        """BM25 over all notes of these kinds."""
        index = self.retriever.index
        everywhere = UnitFilter(where.kinds)
        texts = index.list_notes(everywhere)
        allowed = texts.keys()
        if where != everywhere:
            allowed = index.list_notes(where).keys()
        scores = bm25(
            index.tokenize(index_words(query.text)),
            {
                unit_id: index.tokenize(index_words(text))
                for unit_id, text in texts.items()
            },
        )
        found = self.retriever.plan_words(query)
        found.words = {
            unit_id: score for unit_id, score in scores.items() if unit_id in allowed
        }
        return found

    def retrieve_for_chunks(
        self, query: Query, where: UnitFilter, *, limit: int, until: float, width: int
    ) -> Retrieved:
        """The best by words and the best by meaning, each with only its own score."""
        found = Retrieved()
        self.retriever.run(
            {
                "by words": lambda: self._match_words(query, where),
                "by meaning": lambda: self.retriever.nearest(
                    query, where, _LIST_POOL, until=until
                ),
            },
            found,
            until=until,
        )
        found.units = self.retriever.index.get_units(found.unit_ids)
        return found

    def _match_words(self, query: Query, where: UnitFilter) -> Retrieved:
        found = self.retriever.plan_words(query)
        if found.plan is not None:
            index = self.retriever.index
            found.words = dict(index.match_words(found.plan, where, _LIST_POOL))
        return found

    def rank(
        self, query: Query, found: Retrieved, weights: Weights, *, now: datetime
    ) -> list[Ranked]:
        return rank_history(to_candidates(query, found, now=now), weights)

    def rank_for_chunks(
        self, query: Query, found: Retrieved, weights: Weights, *, now: datetime
    ) -> list[Ranked]:
        return rank_chunks(to_candidates(query, found, now=now), weights)

    def is_relevant(self, ranked: Ranked, coverage: float) -> bool:
        """Always: everything in a list is a result."""
        return True

    def is_noise(self, query: Query, hit: Hit) -> bool:
        return False

    def may_help(self, query: Query, candidate: Candidate) -> bool:
        return True

    def find_promising(
        self,
        query: Query,
        hits: Sequence[Hit],
        rest: Sequence[Candidate],
        meter: CoverageMeter,
    ) -> frozenset[int]:
        return frozenset()

    def finish(
        self, query: Query, hits: Sequence[Hit], noise: Sequence[Hit], limit: int
    ) -> tuple[Sequence[Hit], list[str]]:
        return hits[:limit], []

    def finish_chunks(self, query: Query, chosen: Sequence[Recalled]) -> list[Recalled]:
        return list(chosen)


# -- the formulas ---------------------------------------------------------------------


def rank_history(candidates: Sequence[Candidate], weights: Weights) -> list[Ranked]:
    """search_history: divide each source by its best, then apply weight and age."""
    weights = replace(weights, decay_floor=0.0)
    ranked = []
    for sources in (
        {HitSource.MEMORY, HitSource.DAILY_LOG, HitSource.GUIDANCE},
        {HitSource.MESSAGE},
        {HitSource.SESSION},
    ):
        found = [each for each in candidates if each.source in sources]
        if HitSource.MEMORY in sources:
            fits = blend_by_best(
                {each.unit_id: each.words for each in found if each.words > 0},
                {e.unit_id: e.cosine for e in found if e.cosine is not None},
                weights.memory_words,
            )
            fits = divide_by_best({e.unit_id: fits.get(e.unit_id, 0.0) for e in found})
        else:
            # A text either contains the query or does not.
            fits = dict.fromkeys((each.unit_id for each in found), 1.0)
        for each in found:
            factors = (
                fits[each.unit_id],
                weights.of(each.source),
                weights.age_factor(each.age_days),
            )
            ranked.append(Ranked(each, math.prod(factors), _PARTS, factors))
    return sorted(ranked, key=best_first)


def blend_by_best(
    words: Mapping[int, float], cosines: Mapping[int, float], words_weight: float
) -> dict[int, float]:
    """The weighted sum of both lists, each divided by its best.

    Without vectors, only words count.
    """
    return _blend(divide_by_best(words), divide_by_best(cosines), words_weight)


def rank_chunks(candidates: Sequence[Candidate], weights: Weights) -> list[Ranked]:
    """memory_search: the weighted sum of both lists, each scaled to its range."""
    fits = blend_by_range(
        {each.unit_id: each.words for each in candidates if each.words > 0},
        {e.unit_id: e.cosine for e in candidates if e.cosine is not None},
        weights.message_words,
    )
    return sorted(
        (
            Ranked(each, score, ("fit",), (score,))
            for each in candidates
            for score in (fits.get(each.unit_id, 0.0),)
        ),
        key=best_first,
    )


def blend_by_range(
    words: Mapping[int, float], cosines: Mapping[int, float], words_weight: float
) -> dict[int, float]:
    """The weighted sum of both lists, each scaled from its lowest to its best.

    Without vectors, only words count. Unlike in the tuned profile, a unit missing
    from a list gets nothing from it.
    """
    return _blend(normalize(words), normalize(cosines), words_weight)


def _blend(
    words: dict[int, float], meaning: Mapping[int, float], words_weight: float
) -> dict[int, float]:
    if not meaning:
        return words
    return {
        unit_id: words_weight * words.get(unit_id, 0.0)
        + (1 - words_weight) * meaning.get(unit_id, 0.0)
        for unit_id in words.keys() | meaning.keys()
    }


def normalize(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Scale scores from 0 for the lowest to 1 for the best; all 1 if they are equal."""
    if not scores:
        return {}
    lowest, best = min(scores.values()), max(scores.values())
    if best == lowest:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - lowest) / (best - lowest) for key, score in scores.items()}
