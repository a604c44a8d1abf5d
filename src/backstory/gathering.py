"""Gather what may answer a query: by words, by meaning, by any part of the text.

The retrievers work side by side under one deadline. Whoever fails or is late is left
out, and the notices say so.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.dates import DayRange
from backstory.embedders.base import Embedder
from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreDamaged,
    StoreProblem,
)
from backstory.moments import start_of_day
from backstory.querying import Query, Term
from backstory.store.index import SearchIndex, UnitFilter, Words
from backstory.units import MESSAGES, UnitKind

if TYPE_CHECKING:
    from backstory.embedders.base import Vector

# How many each retriever gives: enough that the other scorer can lift a good one.
_POOL = 150
_TEXT_POOL = 200
# The design of memory_search takes the best so many of each list.
DESIGNED_POOL = 20
_DAY_POOL = 50
# A word in more of the units than this tells next to nothing, once there are many.
_FREQUENT_SHARE = 0.1
_MANY_UNITS = 1_000
# About as many units as words are scored for: 0.5 microseconds each.
_MAX_SCORED = 40_000
# After an embedder failed, searches go by words alone for so long.
_EMBEDDER_REST_S = 30.0


@dataclass(slots=True)
class Gathered:
    """What the retrievers found: units, with the scores that are known."""

    words: dict[int, float] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    texts: list[int] = field(default_factory=list)
    plan: Words | None = None
    rarity: dict[Term, float] = field(default_factory=dict)
    vector: "Vector | None" = None

    @property
    def unit_ids(self) -> set[int]:
        return {*self.words, *self.cosines, *self.texts}


class Gatherer:
    """Asks an index in every way it knows."""

    def __init__(
        self,
        index: SearchIndex,
        find_embedder: Callable[[], Embedder | None],
        *,
        timeout_s: float,
        on_damage: Callable[[], None],
    ) -> None:
        self._index = index
        self._find_embedder = find_embedder
        self._timeout_s = timeout_s
        self._on_damage = on_damage
        self._embedder_failed: tuple[float, str] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = 0

    def close(self) -> None:
        if self._pool is not None and self._pool_pid == os.getpid():
            self._pool.shutdown(wait=True, cancel_futures=True)

    def gather(self, query: Query, where: UnitFilter, notices: list[str]) -> Gathered:
        """Ask all retrievers, then let both scorers look at everything they found."""
        gathered = Gathered()
        self._plan(query, gathered, notices)
        plan = gathered.plan
        frequent: list[str] = []

        def by_words() -> None:
            if plan is not None:
                gathered.words = dict(self._by_words(query, plan, where))

        def by_meaning() -> None:
            self._by_meaning(query, where, gathered, notices)

        def by_text() -> None:
            for part in dict.fromkeys((query.folded, *query.phrases)):
                few = self._index.find_few(part, where, _TEXT_POOL)
                if few is None:
                    frequent.append(part)
                else:
                    gathered.texts += few

        self.side_by_side(
            {"by words": by_words, "by meaning": by_meaning, "by text": by_text},
            notices,
        )
        if not gathered.words:
            # Parts of words, which nothing else finds.
            for part in frequent:
                gathered.texts += self._index.find_text(part, where, _DAY_POOL)
        found = gathered.unit_ids

        def check_text() -> None:
            # What very many have says little, and is looked for in what was found.
            for part in frequent:
                gathered.texts += self._index.having_text(part, found)

        def score_words() -> None:
            # Anew for all: the order in which they were found is not their score.
            if plan is not None:
                gathered.words = dict.fromkeys(found, 0.0)
                gathered.words |= self._index.score_words(plan, found)

        def score_meaning() -> None:
            if gathered.vector is not None:
                rest = found - gathered.cosines.keys()
                gathered.cosines |= self._index.cosines(gathered.vector, rest)

        self.side_by_side(
            {
                "by words": score_words,
                "by meaning": score_meaning,
                "by text": check_text,
            },
            notices,
        )
        return gathered

    def _plan(self, query: Query, gathered: Gathered, notices: list[str]) -> None:
        """Find out which words of the query are rare, and look for those."""
        try:
            total = int(self._index.get_state("units") or 0)
            terms = tuple(dict.fromkeys((*query.terms, *query.subject)))
            found = self._index.count_documents([t.spellings for t in terms])
        except StoreProblem as exc:
            if isinstance(exc, StoreDamaged):
                self._on_damage()
            _say(notices, f"the search by words failed: {exc}")
            return
        counts = dict(zip(terms, found, strict=True))
        asked = [counts[term] for term in query.terms]
        gathered.plan = plan_words(query.terms, asked, total)
        gathered.rarity = {
            term: math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5))
            for term in query.subject
        }

    def _by_words(
        self, query: Query, plan: Words, where: UnitFilter
    ) -> list[tuple[int, float]]:
        found = self._index.match_words(plan, where, _POOL)
        for days in query.days:
            found += self._index.match_words(plan, within(where, days), _DAY_POOL)
        return found

    def _by_meaning(
        self,
        query: Query,
        where: UnitFilter,
        gathered: Gathered,
        notices: list[str],
    ) -> None:
        vector = self._embed(query.text, notices)
        if vector is None:
            return
        found = dict(self._index.nearest(vector, where, _POOL))
        for days in query.days:
            on_days = within(where, days)
            found |= dict(self._index.nearest(vector, on_days, _DAY_POOL))
        gathered.vector, gathered.cosines = vector, found

    def _embed(self, text: str, notices: list[str]) -> "Vector | None":
        """The query's vector; None, with a notice, when there can be none."""
        if self._embedder_failed is not None:
            failed_at, reason = self._embedder_failed
            if time.monotonic() - failed_at < _EMBEDDER_REST_S:
                _say(notices, f"searched by words alone: {reason}")
                return None
        try:
            embedder = self._find_embedder()
            if embedder is None or not embedder.can_read(text):
                return None
            if not self._index.has_vectors_of(embedder.fingerprint):
                if self._index.list_to_embed(1) or self._index.get_state("vectors_of"):
                    _say(notices, "searched by words alone: vectors are still missing")
                return None
            return embedder.embed_query(text)
        except (ProviderError, ConfigError) as exc:
            self._embedder_failed = (time.monotonic(), str(exc))
            _say(notices, f"searched by words alone: {exc}")
            return None

    def gather_lists(
        self, query: Query, where: UnitFilter, notices: list[str]
    ) -> Gathered:
        """The best by words and the best by meaning, each with its own score alone."""
        gathered = Gathered()
        self._plan(query, gathered, notices)
        plan = gathered.plan

        def by_words() -> None:
            if plan is not None:
                found = self._index.match_words(plan, where, DESIGNED_POOL)
                gathered.words = dict(found)

        def by_meaning() -> None:
            vector = self._embed(query.text, notices)
            if vector is not None:
                found = self._index.nearest(vector, where, DESIGNED_POOL)
                gathered.cosines = dict(found)

        self.side_by_side({"by words": by_words, "by meaning": by_meaning}, notices)
        return gathered

    def gather_as_designed(
        self, query: Query, where: UnitFilter, notices: list[str]
    ) -> Gathered:
        """Notes by words and meaning; messages and sessions by the text as typed."""
        gathered = Gathered()
        self._plan(query, gathered, notices)
        plan = gathered.plan
        notes = replace(where, kinds=where.kinds - MESSAGES - {UnitKind.SESSION})
        talk = replace(where, kinds=where.kinds & (MESSAGES | {UnitKind.SESSION}))

        def by_words() -> None:
            if plan is not None:
                gathered.words = dict(self._index.match_words(plan, notes, _POOL))

        def by_meaning() -> None:
            self._by_meaning(query, notes, gathered, notices)

        def by_text() -> None:
            gathered.texts = self._index.find_text(query.folded, talk, _TEXT_POOL)

        self.side_by_side(
            {"by words": by_words, "by meaning": by_meaning, "by text": by_text},
            notices,
        )
        return gathered

    def side_by_side(
        self, tasks: Mapping[str, Callable[[], None]], notices: list[str]
    ) -> None:
        """Run all at once and wait; notices tell of those that failed or are late.

        Raises what went wrong when nothing worked: a partial answer has to have parts.
        """
        pool = self._executor()
        futures = {name: pool.submit(task) for name, task in tasks.items()}
        _, late = wait(futures.values(), timeout=self._timeout_s)
        if late:
            self._index.interrupt()
        failures: list[StoreProblem] = []
        for name, future in futures.items():
            if future in late:
                future.cancel()
                if name == "by meaning":
                    reason = "the embedder did not answer in time"
                    self._embedder_failed = (time.monotonic(), reason)
                _say(notices, f"the search {name} did not finish in time")
                continue
            try:
                future.result()
            except StoreDamaged as exc:
                hint = "run 'backstory rebuild'"
                _say(notices, f"the search {name} met a damaged index; {hint} ({exc})")
                failures.append(exc)
                self._on_damage()
            except StoreProblem as exc:
                _say(notices, f"the search {name} failed: {exc}")
                failures.append(exc)
        if failures and len(failures) == len(futures):
            raise failures[0]

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool_pid != os.getpid():
            self._pool = ThreadPoolExecutor(4, thread_name_prefix="backstory-search")
            self._pool_pid = os.getpid()
        return self._pool


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


def _say(notices: list[str], words: str) -> None:
    if words not in notices:
        notices.append(words)
