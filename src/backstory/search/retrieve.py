"""Gather what may answer a query: by words, by meaning, by any part of the text.

The retrievers work side by side under one deadline. Whoever fails or is late is left
out, and the notices say so.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreDamaged,
    StoreProblem,
)
from backstory.providers.embedders.base import Embedder
from backstory.store.base.index import SearchIndex, UnitFilter, Words
from backstory.system.threads import SideThreads
from backstory.text.bm25 import bm25
from backstory.text.words import index_words
from backstory.values.moments import start_of_day
from backstory.values.query import DayRange, Query, Term
from backstory.values.units import MESSAGES, UnitKind

if TYPE_CHECKING:
    from backstory.providers.embedders.base import Vector

# How many each retriever gives: enough that the other scorer can lift a good one.
POOL = 150
_TEXT_POOL = 200
# The design of memory_search takes the best so many of each list.
DESIGNED_POOL = 20
_DAY_POOL = 50
# A word in more of the units than this tells next to nothing, once there are many.
_FREQUENT_SHARE = 0.1
_MANY_UNITS = 1_000
# About as many units as words are scored for: 0.5 microseconds each.
_MAX_SCORED = 40_000
# What is left of the time for scoring what was found.
_SCORING_SHARE = 0.25
# Threads that are done are waited for so long; one may be stuck in an embedder.
_END_WAIT_S = 1.0
# After an embedder failed, searches go by words alone for so long.
_EMBEDDER_REST_S = 30.0
_WORDS_ALONE = "searched by words alone"


@dataclass(slots=True)
class Gathered:
    """What one retriever found, or all of them: units, with the scores that are known.

    ``frequent`` are texts that too many units have to look each of them up.
    """

    words: dict[int, float] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    texts: list[int] = field(default_factory=list)
    on_days: list[int] = field(default_factory=list)
    frequent: list[str] = field(default_factory=list)
    plan: Words | None = None
    rarity: dict[Term, float] = field(default_factory=dict)
    vector: "Vector | None" = None
    notices: list[str] = field(default_factory=list)

    @property
    def unit_ids(self) -> set[int]:
        return {*self.words, *self.cosines, *self.texts, *self.on_days}

    def add(self, other: "Gathered") -> None:
        """Take in what another retriever found; its scores are newer."""
        self.words |= other.words
        self.cosines |= other.cosines
        self.texts += other.texts
        self.on_days += other.on_days
        self.frequent += other.frequent
        self.plan = other.plan or self.plan
        self.rarity |= other.rarity
        self.vector = self.vector if other.vector is None else other.vector
        for notice in other.notices:
            self.say(notice)

    def say(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


Retriever = Callable[[], Gathered]


class Gatherer:
    """Asks an index in every way it knows."""

    def __init__(
        self,
        index: SearchIndex,
        find_embedder: Callable[[], Embedder | None],
        *,
        on_damage: Callable[[], None],
    ) -> None:
        self._index = index
        self._find_embedder = find_embedder
        self._on_damage = on_damage
        self._embedder_failed: tuple[float, str] | None = None
        self._pool: SideThreads | None = None
        self._pool_pid = 0

    def close(self) -> None:
        if self._pool is not None and self._pool_pid == os.getpid():
            self._pool.end(wait_s=_END_WAIT_S)

    # -- the ways to gather ---

    def gather(
        self, query: Query, where: UnitFilter, *, until: float, width: int = 1
    ) -> Gathered:
        """Ask all retrievers, then let both scorers look at everything they found.

        ``until`` is the deadline on the monotonic clock; ``width`` makes the pools so
        many times as large.
        """
        pool = width * POOL
        # Who is late must leave time to score what the others found.
        found_until = until - _SCORING_SHARE * max(0.0, until - time.monotonic())
        gathered = Gathered()
        self.side_by_side(
            {
                "by words": lambda: self._by_words(query, where, pool),
                "by meaning": lambda: self._by_meaning(query, where, pool),
                "by text": lambda: self._by_text(query, where, width * _TEXT_POOL),
                "by date": lambda: self._by_day(query, where),
            },
            gathered,
            found_until,
        )
        frequent = tuple(gathered.frequent)
        if frequent and not gathered.words:
            # Parts of words, which nothing else finds.
            self.side_by_side(
                {"by text": lambda: self._newest_having(frequent, where)},
                gathered,
                found_until,
            )
        found = frozenset(gathered.unit_ids)
        plan, vector = gathered.plan, gathered.vector
        unscored = found - gathered.cosines.keys()
        scorers: dict[str, Retriever] = {}
        if plan is not None:
            scorers["by words"] = lambda: self._score_words(plan, found)
        if vector is not None:
            scorers["by meaning"] = lambda: Gathered(
                cosines=self._index.cosines(vector, unscored)
            )
        if frequent:
            scorers["by text"] = lambda: self._check_text(frequent, found)
        self.side_by_side(scorers, gathered, until)
        return gathered

    def gather_lists(
        self, query: Query, where: UnitFilter, *, until: float, width: int = 1
    ) -> Gathered:
        """The best by words and the best by meaning, each with its own score alone."""
        pool = width * DESIGNED_POOL

        def by_words() -> Gathered:
            planned = self._plan(query)
            if planned.plan is not None:
                found = self._index.match_words(planned.plan, where, pool)
                planned.words = dict(found)
            return planned

        def by_meaning() -> Gathered:
            return self._nearest(query, where, pool)

        gathered = Gathered()
        self.side_by_side(
            {"by words": by_words, "by meaning": by_meaning}, gathered, until
        )
        return gathered

    def gather_as_designed(
        self, query: Query, where: UnitFilter, *, until: float, width: int = 1
    ) -> Gathered:
        """Notes by words and meaning; messages and sessions by the text as typed."""
        notes = replace(where, kinds=where.kinds - MESSAGES - {UnitKind.SESSION})
        talk = replace(where, kinds=where.kinds & (MESSAGES | {UnitKind.SESSION}))
        gathered = Gathered()
        self.side_by_side(
            {
                "by words": lambda: self._score_notes(query, notes),
                "by meaning": lambda: self._nearest(query, notes, POOL),
                "by text": lambda: Gathered(
                    texts=self.having_query(query, talk, width * _TEXT_POOL)
                ),
            },
            gathered,
            until,
        )
        return gathered

    def having_query(self, query: Query, where: UnitFilter, limit: int) -> list[int]:
        """Units with the query as typed; where it is nowhere, with all its words."""
        found = self._index.find_text(query.folded, where, limit)
        if not found and query.terms:
            words = [term.spellings for term in query.terms]
            found = self._index.find_all_words(words, where, limit)
        return found

    # -- the retrievers ---

    def _by_words(self, query: Query, where: UnitFilter, pool: int) -> Gathered:
        found = self._plan(query)
        if found.plan is not None:
            found.words |= self._index.match_words(found.plan, where, pool)
            for days in query.days:
                on_days = within(where, days)
                found.words |= self._index.match_words(found.plan, on_days, _DAY_POOL)
        return found

    def _plan(self, query: Query) -> Gathered:
        """Find out which words of the query are rare, and look for those."""
        total = int(self._index.get_state("units") or 0)
        terms = tuple(dict.fromkeys((*query.terms, *query.subject)))
        found = self._index.count_documents([term.spellings for term in terms])
        counts = dict(zip(terms, found, strict=True))
        asked = [counts[term] for term in query.terms]
        rarity = {
            term: math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5))
            for term in query.subject
        }
        return Gathered(plan=plan_words(query.terms, asked, total), rarity=rarity)

    def _score_words(self, plan: Words, found: frozenset[int]) -> Gathered:
        """Anew for all: the order in which they were found is not their score."""
        scores = self._index.score_words(plan, found)
        return Gathered(words=dict.fromkeys(found, 0.0) | scores)

    def _score_notes(self, query: Query, where: UnitFilter) -> Gathered:
        """BM25 as the designs have it, over all notes of these kinds."""
        everywhere = UnitFilter(where.kinds)
        texts = self._index.list_notes(everywhere)
        allowed = texts.keys()
        if where != everywhere:
            allowed = self._index.list_notes(where).keys()
        tokenize = self._index.tokenize
        scores = bm25(
            tokenize(index_words(query.text)),
            {unit_id: tokenize(index_words(text)) for unit_id, text in texts.items()},
        )
        found = self._plan(query)
        found.words = {
            unit_id: score for unit_id, score in scores.items() if unit_id in allowed
        }
        return found

    def _by_meaning(self, query: Query, where: UnitFilter, pool: int) -> Gathered:
        found = self._nearest(query, where, pool)
        if found.vector is not None:
            for days in query.days:
                on_days = within(where, days)
                found.cosines |= self._index.nearest(found.vector, on_days, _DAY_POOL)
        return found

    def _nearest(self, query: Query, where: UnitFilter, pool: int) -> Gathered:
        found = Gathered()
        found.vector = self._embed(query.text, found)
        if found.vector is not None:
            found.cosines |= self._index.nearest(found.vector, where, pool)
        return found

    def _by_text(self, query: Query, where: UnitFilter, pool: int) -> Gathered:
        found = Gathered()
        for part in dict.fromkeys((query.folded, *query.phrases)):
            few = self._index.find_few(part, where, pool)
            if few is None:
                found.frequent.append(part)
            else:
                found.texts += few
        return found

    def _newest_having(self, parts: Sequence[str], where: UnitFilter) -> Gathered:
        found = Gathered()
        for part in parts:
            found.texts += self._index.find_text(part, where, _DAY_POOL)
        return found

    def _check_text(self, parts: Sequence[str], found: frozenset[int]) -> Gathered:
        """What very many have says little, and is looked for in what was found."""
        checked = Gathered()
        for part in parts:
            checked.texts += self._index.having_text(part, found)
        return checked

    def _by_day(self, query: Query, where: UnitFilter) -> Gathered:
        """Where a day is all that is asked for, what was said on it."""
        found = Gathered()
        if not query.subject:
            spoken = replace(where, kinds=where.kinds - {UnitKind.OTHER})
            for days in query.days:
                found.on_days += self._index.list_newest(
                    within(spoken, days), _DAY_POOL
                )
        return found

    def _embed(self, text: str, found: Gathered) -> "Vector | None":
        """The query's vector; None, with a notice, when there can be none."""
        if self._embedder_failed is not None:
            failed_at, reason = self._embedder_failed
            if time.monotonic() - failed_at < _EMBEDDER_REST_S:
                found.say(f"{_WORDS_ALONE}: {reason}")
                return None
        try:
            embedder = self._find_embedder()
            if embedder is None or not embedder.can_read(text):
                return None
            if not self._index.has_vectors_of(embedder.fingerprint):
                if self._index.get_state("vectors_of"):
                    found.say(f"{_WORDS_ALONE}: the vectors are of another model")
                elif self._index.list_to_embed(1):
                    found.say(f"{_WORDS_ALONE}: vectors are still missing")
                return None
            return embedder.embed_query(text)
        except (ProviderError, ConfigError) as exc:
            self._embedder_failed = (time.monotonic(), str(exc))
            found.say(f"{_WORDS_ALONE}: {exc}")
            return None

    # -- side by side ---

    def side_by_side(
        self, retrievers: Mapping[str, Retriever], gathered: Gathered, until: float
    ) -> None:
        """Run all at once and add what they find; notices tell who failed or is late.

        Raises what went wrong when nothing worked: a partial answer has to have parts.
        """
        threads: dict[str, int] = {}

        def run(name: str, retriever: Retriever) -> Gathered:
            threads[name] = threading.get_ident()
            return retriever()

        pool = self._executor()
        futures = {
            name: pool.submit(partial(run, name, retriever))
            for name, retriever in retrievers.items()
        }
        _, late = wait(futures.values(), timeout=max(0.0, until - time.monotonic()))
        failures: list[StoreProblem] = []
        for name, future in futures.items():
            if future in late:
                gathered.say(f"the search {name} did not finish in time")
                if name == "by meaning":
                    reason = "the embedder did not answer in time"
                    self._embedder_failed = (time.monotonic(), reason)
                continue
            try:
                gathered.add(future.result())
            except StoreDamaged as exc:
                hint = "run 'backstory rebuild'"
                gathered.say(f"the search {name} met a damaged index; {hint} ({exc})")
                failures.append(exc)
                self._on_damage()
            except StoreProblem as exc:
                gathered.say(f"the search {name} failed: {exc}")
                failures.append(exc)
        if late:
            self._abandon(pool)
            self._index.interrupt(
                {
                    threads[name]
                    for name, future in futures.items()
                    if future in late and name in threads
                }
            )
        if failures and len(failures) == len(futures):
            raise failures[0]

    def _executor(self) -> SideThreads:
        if self._pool is None or self._pool_pid != os.getpid():
            self._pool = SideThreads(4, "backstory-search")
            self._pool_pid = os.getpid()
        return self._pool

    def _abandon(self, pool: SideThreads) -> None:
        """Search on with new threads: those that are late may be stuck for long."""
        pool.end(wait_s=0)
        if self._pool is pool:
            self._pool = None


# -- pieces ---------------------------------------------------------------------------


def plan_words(
    terms: Sequence[Term], counts: Sequence[int], total: int
) -> Words | None:
    """Which words must be there and which only help; None when none is anywhere.

    The rarest come first: what has none of them is not worth scoring.
    """
    known = sorted(
        (count, place, term)
        for place, (term, count) in enumerate(zip(terms, counts, strict=True))
        if count > 0
    )
    if not known:
        return None
    most = total * _FREQUENT_SHARE if total >= _MANY_UNITS else math.inf
    telling = [each for each in known if each[0] <= most] or known[:1]
    needed: list[tuple[str, ...]] = []
    helpful: list[tuple[str, ...]] = []
    scored = 0
    for count, _, term in telling:
        if not needed or scored + count <= _MAX_SCORED:
            needed.append(term.spellings)
            scored += count
        else:
            helpful.append(term.spellings)
    return Words(tuple(needed), tuple(helpful))


def to_span(days: DayRange) -> tuple[int, int]:
    """The days as microseconds of local time, up to the next midnight."""
    return (
        start_of_day(days.first),
        start_of_day(days.last + timedelta(days=1)),
    )


def within(where: UnitFilter, days: DayRange) -> UnitFilter:
    """The filter, narrowed to some days."""
    first, end = to_span(days)
    return replace(
        where,
        said_from=max(first, where.said_from if where.said_from is not None else first),
        said_before=min(
            end, where.said_before if where.said_before is not None else end
        ),
    )
