"""Reads from a memory's stores what memories are chosen from by their words."""

from collections.abc import Callable, Mapping, Sequence

from backstory.search.by_words import NeededWords
from backstory.search.hydrate import Hydrator
from backstory.search.warm_ups import without_warm_ups
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex, UnitFilter, Words
from backstory.text.excerpts import EXCERPT_CHARS, excerpt
from backstory.values.hits import Hit, ScorePart, Strength
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct, replace
from backstory.values.units import SessionRef


class _Loaded(FrozenStruct):
    unit_id: int
    text: str
    is_agentic: bool
    hit: Hit


class StoreReader:
    """A ``WordsReader`` that can also return the hits.

    ``is_wanted`` says whether a hit belongs to the project, and not to the session
    itself.
    """

    def __init__(
        self,
        index: SearchIndex,
        history: HistoryStore,
        where: UnitFilter,
        is_wanted: Callable[[Hit], bool],
    ) -> None:
        self._index = index
        self._where = where
        self._is_wanted = is_wanted
        self._history = history
        self._hydrator = Hydrator(history, index)
        self._loaded: dict[int, _Loaded] = {}

    def count_units(self) -> int:
        return self._index.count_units()

    def count_documents(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        return self._index.count_documents(words)

    def match(
        self, words: NeededWords, limit: int, *, least: float = 0.0
    ) -> Sequence[tuple[int, float]]:
        plan = Words(*words)
        scores = dict(self._index.match_words(plan, self._where, limit))
        if plan.helpful:
            # Otherwise the needed words would count twice.
            scores = self._index.score_words(plan, scores)
        return sorted(scores.items(), key=lambda row: (-row[1], -row[0]))

    def load(self, unit_ids: Sequence[int]) -> Mapping[int, _Loaded]:
        units = self._index.get_units(unit_ids)
        self._hydrator.load(units.values())
        agentic = self._index.find_sessions_with_tools(
            {
                unit.container
                for unit in units.values()
                if isinstance(unit.container, SessionRef)
            }
        )
        hits = {unit_id: self._hydrator.to_hit(unit_id) for unit_id in units}
        asked = without_warm_ups(filter(None, hits.values()), self._history)
        wanted = {id(hit) for hit in asked if self._is_wanted(hit)}
        loaded = {}
        for unit_id, unit in units.items():
            hit = hits[unit_id]
            if hit is not None and id(hit) in wanted:
                is_agentic = unit.container in agentic
                loaded[unit_id] = _Loaded(unit_id, hit.text, is_agentic, hit)
        self._loaded |= loaded
        return loaded

    def to_hits(self, scores: Mapping[int, float], query: Query) -> list[Hit]:
        """The hits of units that were loaded."""
        best = max(scores.values(), default=1.0)
        return [
            replace(
                (loaded := self._loaded[unit_id]).hit,
                score=round(score / best, 6),
                strength=Strength.FAIR,
                excerpt=excerpt(loaded.text, query, max_chars=EXCERPT_CHARS),
                parts=(
                    ScorePart("bm25", score),
                    ScorePart("agentic", float(loaded.is_agentic)),
                ),
            )
            for unit_id, score in scores.items()
        ]
