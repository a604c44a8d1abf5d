"""Retrieve what may answer a query: by words, by meaning, by text, by date.

These searches share one deadline. One that fails or is late is left out, and a notice
says so.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreDamaged,
    StoreProblem,
)
from backstory.providers.embedders.base import Embedder, model_of
from backstory.search.by_words import choose_words
from backstory.search.notices import render_missing
from backstory.search.parallel import (
    NONE_BESIDE,
    Parallel,
    Wait,
    wait_for_nothing,
)
from backstory.search.query_vectors import QueryVectors
from backstory.store.base.index import (
    BY_MEANING,
    BY_TEXT,
    BestPassage,
    Bounds,
    SearchIndex,
    TurnPart,
    Unit,
    UnitFilter,
    Words,
)
from backstory.system.threads import Future
from backstory.text.rarity import rarity
from backstory.text.words import fold
from backstory.values.moments import start_in_utc, start_of_day
from backstory.values.query import DayRange, Query, Term
from backstory.values.structs import Struct, field, replace
from backstory.values.units import UNSPOKEN, Container, SessionRef, UnitKind

if TYPE_CHECKING:
    from backstory.providers.embedders.base import Vector

# How many units the searches by words and by meaning return: enough to include a good
# one that only the other ranks high.
POOL = 100
_MEANING_POOL = 64
# How many of the newest the search by text returns; for other units that were found, it
# only checks whether they have the text as well.
_TEXT_POOL = 64
_DAY_POOL = 50
# How many units with a query's longest phrase are searched for its other phrases.
_MAX_WITH_PHRASE = 10_000
# Roughly how many units are scored by words, at 0.5 microseconds each.
_MAX_SCORED = 40_000
# The share of the time that is left for scoring what was found.
_SCORING_SHARE = 0.25
_WORDS_ALONE = "searched by words alone"


class Retrieved(Struct):
    """What one search found, or all of them: units and their scores so far.

    ``frequent`` are texts that may be in more units than were listed. ``agentic`` are
    the sessions in which tools were used, and ``turn_parts`` the parts that the agent's
    messages play in them. ``passages`` are the nearest ones of long messages.
    """

    words: dict[int, float] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    with_text: list[int] = field(default_factory=list)
    on_days: list[int] = field(default_factory=list)
    frequent: list[str] = field(default_factory=list)
    plan: Words | None = None
    rarity: dict[Term, float] = field(default_factory=dict)
    unit_count: int = 0
    vector: "Vector | None" = None
    passages: dict[int, BestPassage] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    units: Mapping[int, Unit] = field(default_factory=dict)
    agentic: frozenset[Container] = frozenset()
    turn_parts: Mapping[int, TurnPart] = field(default_factory=dict)

    @property
    def unit_ids(self) -> set[int]:
        return {*self.words, *self.cosines, *self.with_text, *self.on_days}

    @property
    def highest_rarity(self) -> float:
        """The rarity of a word that no unit has."""
        return rarity(0, self.unit_count)

    def add(self, other: "Retrieved") -> None:
        """Add what another search found; its scores replace earlier ones."""
        self.words |= other.words
        self.cosines |= other.cosines
        self.with_text += other.with_text
        self.on_days += other.on_days
        self.frequent += other.frequent
        self.plan = other.plan or self.plan
        self.rarity |= other.rarity
        self.unit_count = max(self.unit_count, other.unit_count)
        self.passages |= other.passages
        self.vector = self.vector if other.vector is None else other.vector
        self.units = {**self.units, **other.units}
        self.agentic |= other.agentic
        self.turn_parts = {**self.turn_parts, **other.turn_parts}
        for notice in other.notices:
            self.notify(notice)

    def notify(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


# One search, by words, by meaning, by text or by date.
Retrieval = Callable[[], Retrieved]


class Retriever:
    """Searches an index by words, by meaning, by text and by date."""

    def __init__(
        self,
        index: SearchIndex,
        find_embedder: Callable[[], Embedder | None],
        *,
        on_damage: Callable[[], None],
        query_timeout_s: float | None = None,
    ) -> None:
        self.index = index
        self._find_embedder = find_embedder
        self._on_damage = on_damage
        self._parallel = Parallel(index.shared_view)
        self._is_ready = False
        self._query_vectors = QueryVectors(query_timeout_s)

    def close(self) -> None:
        self._parallel.close()
        self._query_vectors.close()

    def get_ready(self, text: str) -> None:
        """Begin, for the first query, to load what takes longer than most searches.

        The model and the index load mostly without the interpreter, so this runs in
        parallel to what a search does first: reading what is new, and finding words.
        """
        if self._is_ready:
            return
        self._is_ready = True
        if self.can_search_by_meaning(text):
            embedder = self._find_embedder()
            if embedder is not None:
                embedder.get_ready()
        # After the libraries: while they are being imported, every thread that needs
        # the interpreter now and then slows them down.
        self.index.get_ready(fold(text))

    # -- everything at once ---

    def retrieve(
        self, query: Query, where: UnitFilter, *, until: float, width: int = 1
    ) -> Retrieved:
        """Search in every way, then score everything found by words and by meaning.

        ``until`` is the deadline on the monotonic clock; ``width`` multiplies the
        number of units that each search returns.
        """
        pool = width * POOL
        found = self._look(query, where, until=until, width=width)
        self._score(found, until=until, has_all_words=len(found.words) < pool)
        found.add(self._describe(found.unit_ids))
        return found

    def _describe(self, unit_ids: Collection[int]) -> Retrieved:
        """Units, which sessions are agentic, and what messages are in their turns."""
        units = self.index.get_units(unit_ids)
        containers = {unit.container for unit in units.values()}
        agentic = self.index.find_sessions_with_tools(
            {each for each in containers if isinstance(each, SessionRef)}
        )
        turn_parts = self.index.find_turn_parts(
            [
                unit.unit_id
                for unit in units.values()
                if unit.kind is UnitKind.ASSISTANT and unit.container in agentic
            ]
        )
        return Retrieved(units=units, agentic=agentic, turn_parts=turn_parts)

    def _look(
        self, query: Query, where: UnitFilter, *, until: float, width: int
    ) -> Retrieved:
        pool, text_pool = width * POOL, width * _TEXT_POOL
        # Stops early enough to leave time for scoring.
        until -= _SCORING_SHARE * max(0.0, until - time.monotonic())
        found = Retrieved()
        # The vector is made while the other searches run.
        embedding = self._start_embedding(query.text, found)
        retrievals: dict[str, Retrieval] = {
            "by words": lambda: self._by_words(query, where, pool),
            BY_TEXT: lambda: self._by_text(query, where, text_pool),
        }
        if query.days and not query.subject:
            retrievals["by date"] = lambda: self._by_day(query, where)
        if embedding is not None:
            retrievals[BY_MEANING] = lambda: self._by_meaning(
                query, embedding, where, width * _MEANING_POOL, until
            )
        beside: dict[str, Wait] = {}
        # For one or two words, the search by text takes longest. For longer texts, it
        # uses what the search by words has read, so it runs after that one.
        if all(part.count(" ") <= 1 for part in (query.folded, *query.phrases)):
            beside[BY_TEXT] = wait_for_nothing
        if embedding is not None:
            beside[BY_MEANING] = embedding.wait
        self.run(retrievals, found, until=until, beside=beside)
        if found.frequent and len(found.words) + len(found.with_text) < text_pool:
            # No other units have the words, so the list is filled with those in which
            # the query is part of longer words.
            self.run(
                {
                    BY_TEXT: lambda: self._newest_with_text(
                        found.frequent, where, text_pool
                    )
                },
                found,
                until=until,
            )
        return found

    def _score(self, found: Retrieved, *, until: float, has_all_words: bool) -> None:
        """Score everything that was found, by words and by meaning.

        ``has_all_words``: units not found by words have none of them.
        """
        unit_ids = frozenset(found.unit_ids)
        plan, vector = found.plan, found.vector
        frequent = tuple(found.frequent)
        scorers: dict[str, Retrieval] = {}
        # If all words are needed, matching has already scored them.
        if plan is not None and plan.helpful:
            scorers["by words"] = lambda: self._score_words(plan, unit_ids)
        elif plan is not None and not has_all_words:
            others = unit_ids - found.words.keys()
            scorers["by words"] = lambda: self._score_words(plan, others)
        if vector is not None:
            cosines = dict(found.cosines)
            scorers[BY_MEANING] = lambda: self._score_meaning(vector, unit_ids, cosines)
        if frequent:
            scorers[BY_TEXT] = lambda: self._check_text(frequent, unit_ids)
        self.run(scorers, found, until=until)

    def run(
        self,
        retrievals: Mapping[str, Retrieval],
        found: Retrieved,
        *,
        until: float,
        beside: Mapping[str, Wait] = NONE_BESIDE,
    ) -> None:
        """Run some searches at once and add what they find to ``found``.

        Notices say which of them failed; if all did, the first problem is raised.
        ``beside`` are the names of those that may run beside the others, as in
        ``Parallel.run``.
        """
        outcome = self._parallel.run(retrievals, until=until, beside=beside)
        for name in retrievals:
            if name in outcome.done:
                found.add(outcome.done[name])
            elif name in outcome.failed:
                self._report_failure(name, outcome.failed[name], found)
            else:
                self._report_late(name, found)
        if outcome.late:
            # Only those that have begun: a task that still waits for a thread never
            # will.
            begun = {each for each in outcome.late.values() if each is not None}
            self.index.interrupt(begun)
        if outcome.failed and len(outcome.failed) == len(retrievals):
            raise next(iter(outcome.failed.values()))

    def _report_failure(
        self, name: str, problem: StoreProblem, found: Retrieved
    ) -> None:
        if isinstance(problem, StoreDamaged):
            hint = "run 'backstory rebuild'"
            found.notify(
                f"the search {name} found the index damaged; {hint} ({problem})"
            )
            self._on_damage()
        else:
            found.notify(f"the search {name} failed: {problem}")

    def _report_late(self, name: str, found: Retrieved) -> None:
        found.notify(f"the search {name} did not finish in time")
        if name == BY_MEANING:
            self._query_vectors.rest("the embedder did not answer in time")

    # -- by words ---

    def _by_words(self, query: Query, where: UnitFilter, pool: int) -> Retrieved:
        found = self.plan_words(query)
        if found.plan is not None:
            found.words |= self.index.match_words(found.plan, where, pool)
            for days in query.days:
                on_days = within(where, days)
                found.words |= self.index.match_words(found.plan, on_days, _DAY_POOL)
        return found

    def plan_words(self, query: Query) -> Retrieved:
        """Find out which words of the query are rare, and plan to search for those."""
        total = self.index.count_units()
        terms = tuple(dict.fromkeys((*query.terms, *query.subject)))
        found = self.index.count_documents([term.spellings for term in terms])
        counts = dict(zip(terms, found, strict=True))
        asked = [counts[term] for term in query.terms]
        words = choose_words(query.terms, asked, total, max_scored=_MAX_SCORED)
        return Retrieved(
            plan=None if words is None else Words(*words),
            rarity={term: rarity(counts[term], total) for term in query.subject},
            unit_count=total,
        )

    def _score_words(self, plan: Words, unit_ids: frozenset[int]) -> Retrieved:
        return Retrieved(words=self.index.score_words(plan, unit_ids))

    # -- by meaning ---

    def _by_meaning(
        self,
        query: Query,
        embedding: "Future[Vector]",
        where: UnitFilter,
        pool: int,
        until: float,
    ) -> Retrieved:
        found = self._find_nearest(embedding, where, pool, until)
        if found.vector is not None:
            for days in query.days:
                on_days = within(where, days)
                found.cosines |= self.index.nearest(found.vector, on_days, _DAY_POOL)
        return found

    def nearest(
        self, query: Query, where: UnitFilter, pool: int, *, until: float
    ) -> Retrieved:
        """The units nearest in meaning; none if the query's vector comes too late."""
        found = Retrieved()
        embedding = self._start_embedding(query.text, found)
        if embedding is not None:
            found.add(self._find_nearest(embedding, where, pool, until))
        return found

    def _find_nearest(
        self, embedding: "Future[Vector]", where: UnitFilter, pool: int, until: float
    ) -> Retrieved:
        found = Retrieved()
        self.index.get_ready_to_compare()
        try:
            found.vector = self._query_vectors.finish(embedding)
        except (ProviderError, ConfigError) as exc:
            found.notify(f"{_WORDS_ALONE}: {exc}")
            return found
        # Later, nobody waits for the result, and the index may already be closed.
        if time.monotonic() < until:
            found.cosines |= self.index.nearest(found.vector, where, pool)
        return found

    def _score_meaning(
        self, vector: "Vector", unit_ids: frozenset[int], cosines: dict[int, float]
    ) -> Retrieved:
        """Score all units that have a vector, and find long messages' best passages.

        ``cosines`` are those that are already known.
        """
        unscored = unit_ids - cosines.keys()
        return Retrieved(
            cosines=self.index.cosines(vector, unscored),
            passages=self.index.find_best_passages(vector, unit_ids),
        )

    def _start_embedding(self, text: str, found: Retrieved) -> "Future[Vector] | None":
        """Have the query's vector made; None if it cannot be, with a notice why."""
        if (failure := self._query_vectors.find_failure()) is not None:
            found.notify(f"{_WORDS_ALONE}: {failure}")
            return None
        try:
            embedder = self._find_embedder()
            if embedder is None or not embedder.can_read(text):
                return None
            if not self.index.has_vectors_of(embedder.fingerprint):
                self._explain_no_vectors(embedder, found)
                return None
            return self._query_vectors.start(embedder, text)
        except (ProviderError, ConfigError) as exc:
            found.notify(f"{_WORDS_ALONE}: {exc}")
            return None
        except StoreProblem as exc:
            # Only the search by meaning fails, when it needs the vector.
            failed: Future[Vector] = Future()
            failed.set_exception(exc)
            return failed

    def can_search_by_meaning(self, text: str) -> bool:
        """Whether there is an embedder that can read the query, and vectors of it."""
        if self._query_vectors.find_failure() is not None:
            return False
        try:
            embedder = self._find_embedder()
        except (ProviderError, ConfigError):
            return False
        return (
            embedder is not None
            and embedder.can_read(text)
            and self.index.has_vectors_of(embedder.fingerprint)
        )

    def _explain_no_vectors(self, embedder: Embedder, found: Retrieved) -> None:
        """Add a notice why the index has no vectors that can be searched."""
        made_by = self.index.vectors_made_by()
        if not made_by:
            if self.index.list_to_embed(1):
                found.notify(f"{_WORDS_ALONE}: there are no vectors yet")
        elif model_of(made_by) == model_of(embedder.fingerprint):
            found.notify(f"{_WORDS_ALONE}: the vectors have to be made again")
        else:
            found.notify(f"{_WORDS_ALONE}: the vectors are from another model")

    def explain_missing(self, where: UnitFilter) -> tuple[str, ...]:
        """How much of what was searched by meaning has no vector yet, as a notice."""
        if self._query_vectors.find_failure() is not None:
            return ()
        try:
            embedder = self._find_embedder()
        except (ProviderError, ConfigError):
            return ()  # the search itself says so
        if embedder is None or not self.index.has_vectors_of(embedder.fingerprint):
            return ()
        waiting, meaningful = self.index.count_to_embed(where)
        return (render_missing(waiting, meaningful),) if waiting else ()

    # -- by text ---

    def _by_text(self, query: Query, where: UnitFilter, pool: int) -> Retrieved:
        found = Retrieved()
        # For each part of which all units are known, these units.
        having: dict[str, list[int]] = {}
        # Units with the whole query also have its phrases, so they are among these.
        for part in sorted({query.folded, *query.phrases}, key=len):
            among = [units for known, units in having.items() if known in part]
            few: list[int] | None
            if among:
                few = self.index.having_text(part, min(among, key=len))
            else:
                few = self.index.find_few(part, where, pool)
            if few is None or len(few) == pool:
                found.frequent.append(part)
            else:
                having[part] = few
            found.with_text += few or ()
        return found

    def find_query(self, query: Query, where: UnitFilter, limit: int) -> Retrieved:
        """Units that contain the query as typed; if there are none, its parts.

        The parts are all its quoted phrases or, if it has none, all its words.
        """
        found = self.index.find_text(query.folded, where, limit)
        if not found and query.phrases:
            found = self._find_phrases(query.phrases, where)[:limit]
        if not found and query.subject:
            words = [term.spellings for term in query.subject]
            found = self.index.find_all_words(words, where, limit)
        return Retrieved(with_text=found)

    def _find_phrases(self, phrases: Sequence[str], where: UnitFilter) -> list[int]:
        first, *others = sorted(phrases, key=len, reverse=True)
        found = self.index.find_text(first, where, _MAX_WITH_PHRASE)
        for phrase in others:
            having = set(self.index.having_text(phrase, found))
            found = [unit_id for unit_id in found if unit_id in having]
        return found

    def _newest_with_text(
        self, parts: Sequence[str], where: UnitFilter, limit: int
    ) -> Retrieved:
        found = Retrieved()
        for part in parts:
            found.with_text += self.index.find_text(part, where, limit)
        return found

    def _check_text(self, parts: Sequence[str], unit_ids: frozenset[int]) -> Retrieved:
        """Look for frequent texts only in the units that were found."""
        checked = Retrieved()
        for part in parts:
            checked.with_text += self.index.having_text(part, unit_ids)
        return checked

    # -- by date ---

    def _by_day(self, query: Query, where: UnitFilter) -> Retrieved:
        """What was said on the days that are asked for."""
        found = Retrieved()
        spoken = replace(where, kinds=where.kinds - UNSPOKEN)
        for days in query.days:
            found.on_days += self.index.list_newest(within(spoken, days), _DAY_POOL)
        return found


# -- pieces ---------------------------------------------------------------------------


def to_span(days: DayRange) -> tuple[int, int]:
    """The first microsecond of these local days, and the first one after them."""
    return (
        start_of_day(days.first),
        start_of_day(days.last + timedelta(days=1)),
    )


def to_utc_span(days: DayRange) -> tuple[int, int]:
    """The same for things of which only the day is known."""
    return start_in_utc(days.first), start_in_utc(days.last + timedelta(days=1))


def within(where: UnitFilter, days: DayRange) -> UnitFilter:
    """The filter, narrowed to some days."""
    said_from, said_before = _narrow(
        (where.said_from, where.said_before), to_span(days)
    )
    whole_days = _narrow(where.days or (None, None), to_utc_span(days))
    return replace(where, said_from=said_from, said_before=said_before, days=whole_days)


def _narrow(bounds: Bounds, span: tuple[int, int]) -> tuple[int, int]:
    first, end = bounds
    return (
        span[0] if first is None else max(first, span[0]),
        span[1] if end is None else min(end, span[1]),
    )
