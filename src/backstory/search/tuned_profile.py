"""How a search retrieves, ranks and filters its hits: ``tuned`` or ``spec``."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Protocol

from backstory.search.by_words import is_nod
from backstory.search.newer import mark_questions, mark_replaced, put_newer_first
from backstory.search.notices import NOTHING_SAID, ONLY_NEAREST
from backstory.search.rank import Candidate, Ranked, rank, to_candidates
from backstory.search.retrieve import Retrieved, Retriever
from backstory.search.speakers import find_said_by_others
from backstory.search.strength import (
    CoverageMeter,
    are_all_weak,
    choose_shown,
    find_nearest,
    find_promising,
    is_noise,
    is_relevant,
    may_help,
)
from backstory.search.weights import Weights
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import UnitFilter
from backstory.values.hits import Hit, Recalled
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct, replace

# How often more is retrieved as long as all the best units are in few conversations.
_MORE_ROUNDS = 2
# For a word or two that nothing has, anything below this is not even near.
_LEAST_NEAR = 0.3


class Profile(Protocol):
    """What one profile decides about a search.

    ``chunk_widths`` are how many times as much is retrieved, step by step, as long as
    most chunks are repeats. ``ranks_warm_ups_last``: what is in warm-ups comes after
    everything else.
    """

    chunk_widths: ClassVar[tuple[int, ...]]
    ranks_warm_ups_last: ClassVar[bool]

    def retrieve(
        self, query: Query, where: UnitFilter, *, until: float, width: int
    ) -> Retrieved:
        """Retrieve what may become a hit."""
        ...

    def retrieve_for_chunks(
        self, query: Query, where: UnitFilter, *, limit: int, until: float, width: int
    ) -> Retrieved:
        """Retrieve what may lead to one of ``limit`` chunks."""
        ...

    def rank(
        self, query: Query, found: Retrieved, weights: Weights, *, now: datetime
    ) -> list[Ranked]: ...

    def rank_for_chunks(
        self, query: Query, found: Retrieved, weights: Weights, *, now: datetime
    ) -> list[Ranked]: ...

    def is_relevant(self, ranked: Ranked, coverage: float) -> bool:
        """Whether a hit has anything to do with the query."""
        ...

    def is_noise(self, query: Query, hit: Hit) -> bool:
        """Whether a hit helps nobody once anything better was found."""
        ...

    def may_help(self, query: Query, candidate: Candidate) -> bool:
        """Whether a candidate may be worth showing if there are too few hits."""
        ...

    def find_promising(
        self,
        query: Query,
        hits: Sequence[Hit],
        rest: Sequence[Candidate],
        meter: CoverageMeter,
    ) -> frozenset[int]:
        """Which of the rest may be strong enough to show even if there are enough."""
        ...

    def finish(
        self, query: Query, hits: Sequence[Hit], noise: Sequence[Hit], limit: int
    ) -> tuple[Sequence[Hit], list[str]]:
        """The hits to show, and notices about them."""
        ...

    def finish_chunks(self, query: Query, chosen: Sequence[Recalled]) -> list[Recalled]:
        """The chunks to show."""
        ...


class TunedProfile(FrozenStruct):
    """The formulas that measured best; see docs/explanation/ranking.md."""

    retriever: Retriever
    history: HistoryStore
    chunk_widths: ClassVar[tuple[int, ...]] = (1, 4, 16)
    ranks_warm_ups_last: ClassVar[bool] = True

    def retrieve(
        self, query: Query, where: UnitFilter, *, until: float, width: int
    ) -> Retrieved:
        return self.retriever.retrieve(query, where, until=until, width=width)

    def retrieve_for_chunks(
        self, query: Query, where: UnitFilter, *, limit: int, until: float, width: int
    ) -> Retrieved:
        """Retrieve units of enough sessions and files, not only many units of a few."""
        found = self.retriever.retrieve(query, where, until=until, width=width)
        for _ in range(_MORE_ROUNDS):
            seen = frozenset(unit.container for unit in found.units.values())
            if len(seen) >= limit or time.monotonic() >= until:
                break
            elsewhere = replace(
                where, without_containers=where.without_containers | seen
            )
            more = self.retriever.retrieve(query, elsewhere, until=until, width=width)
            if not more.unit_ids:
                break
            found.add(more)
        return found

    def rank(
        self, query: Query, found: Retrieved, weights: Weights, *, now: datetime
    ) -> list[Ranked]:
        return rank(
            self._to_candidates(query, found, now=now),
            weights,
            has_vectors=bool(found.cosines),
            wants_recent=query.wants_recent and not query.days,
            days=query.days,
        )

    def rank_for_chunks(
        self, query: Query, found: Retrieved, weights: Weights, *, now: datetime
    ) -> list[Ranked]:
        candidates = self._to_candidates(query, found, now=now)
        return rank(
            candidates, weights, has_vectors=bool(found.cosines), days=query.days
        )

    def _to_candidates(
        self, query: Query, found: Retrieved, *, now: datetime
    ) -> list[Candidate]:
        others = find_said_by_others(query, found, self.retriever.index)
        return to_candidates(query, found, now=now, said_by_others=others)

    def is_relevant(self, ranked: Ranked, coverage: float) -> bool:
        return is_relevant(coverage, ranked.candidate, ranked.part("words"))

    def is_noise(self, query: Query, hit: Hit) -> bool:
        return is_noise(query, hit)

    def may_help(self, query: Query, candidate: Candidate) -> bool:
        return may_help(query, candidate)

    def find_promising(
        self,
        query: Query,
        hits: Sequence[Hit],
        rest: Sequence[Candidate],
        meter: CoverageMeter,
    ) -> frozenset[int]:
        if not are_all_weak(hits):
            return frozenset()
        return find_promising(query, rest, meter)

    def finish(
        self, query: Query, hits: Sequence[Hit], noise: Sequence[Hit], limit: int
    ) -> tuple[Sequence[Hit], list[str]]:
        if query.days and not query.subject:
            return hits[:limit], [] if hits else [NOTHING_SAID]
        hits = mark_questions(mark_replaced(query, hits), self.history)
        hits = put_newer_first(query, hits)
        if not are_all_weak(hits):
            return choose_shown(hits, limit), []
        near = filter(_may_be_near, noise)
        nearest = find_nearest([*hits, *near], limit)
        return nearest, [ONLY_NEAREST] if nearest else []

    def finish_chunks(self, query: Query, chosen: Sequence[Recalled]) -> list[Recalled]:
        hits = mark_replaced(query, [each.hit for each in chosen])
        return [replace(each, hit=hit) for each, hit in zip(chosen, hits, strict=True)]


def _may_be_near(hit: Hit) -> bool:
    """Whether a hit without any word of the query may have to do with it.

    An order such as "commit" is near many words that were never said.
    """
    is_near = hit.part("cosine") >= _LEAST_NEAR
    return is_near and not (hit.part("agentic") and is_nod(hit.text))


def choose_profile(name: str, retriever: Retriever, history: HistoryStore) -> Profile:
    """The profile that the setting ``ranking.profile`` names."""
    if name == "spec":
        # Few people choose it.
        from backstory.search.spec_profile import SpecProfile

        return SpecProfile(retriever)
    return TunedProfile(retriever, history)
