"""What one search asks for, understood and checked."""

import math
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from backstory.search.weights import Weights
from backstory.store.base.index import UnitFilter
from backstory.text.arguments import EVER, Period
from backstory.values.hits import HIT_SOURCES, HitSource
from backstory.values.query import Query


@dataclass(frozen=True, slots=True)
class Filters:
    """Where a caller wants to look, as given.

    Days are local and both ends count; ``days`` are the last N. ``session`` is the one
    that asks: what is just being said in it is not found.
    """

    host: str | None = None
    project: str | Path | None = None
    date_from: date | str | None = None
    date_to: date | str | None = None
    days: int = 0
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A query, and where it may be answered.

    ``containers`` are the sessions and files that may be searched, None for all of
    them; ``without`` are units that must not be found, such as the message that asks,
    and ``without_containers`` whole sessions. ``timeout_s`` is for callers who cannot
    wait as long as others.
    """

    query: Query
    sources: frozenset[HitSource]
    weights: Weights
    profile: str = "tuned"
    limit: int = 10
    period: Period = EVER
    containers: frozenset[int] | None = None
    without: frozenset[int] = frozenset()
    without_containers: frozenset[int] = frozenset()
    timeout_s: float = math.inf

    def to_filter(self) -> UnitFilter:
        kinds = {kind for kind, source in HIT_SOURCES.items() if source in self.sources}
        return UnitFilter(
            frozenset(kinds),
            self.period.first,
            self.period.end,
            self.containers,
            self.without,
            self.without_containers,
        )
