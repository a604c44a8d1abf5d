"""What one search asks for, checked and resolved."""

import math
from datetime import date
from functools import lru_cache
from pathlib import Path

from backstory.search.own_project import ANYONE, OwnProject
from backstory.search.weights import Weights
from backstory.store.base.index import UnitFilter
from backstory.text.arguments import EVER, Period
from backstory.values.hits import HIT_SOURCES, HitSource
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct
from backstory.values.units import UNSPOKEN, Container, UnitKind


class Filters(FrozenStruct):
    """Where to search, as the caller gave it.

    Days are local and both ends are included; ``days`` means the last N. ``session`` is
    the one that asks: its current turn is not found. ``folder`` is where the asking
    agent works; None for a person.
    """

    host: str | None = None
    project: str | Path | None = None
    date_from: date | str | None = None
    date_to: date | str | None = None
    days: int = 0
    session: str | None = None
    folder: str | Path | None = None


class Request(FrozenStruct):
    """A query, and where to search for it.

    ``containers`` are the sessions and files to search, None for all; ``without`` are
    units that must not be found, such as the message that asks, and
    ``without_containers`` whole sessions. ``own`` is the project of the asking agent.
    ``timeout_s`` is for callers that cannot wait as long as the settings allow.
    ``is_spoken``: of the messages, only what a user or their agent said, not what was
    passed to tools and subagents or returned by them.
    """

    query: Query
    sources: frozenset[HitSource]
    weights: Weights
    profile: str = "tuned"
    limit: int = 10
    period: Period = EVER
    containers: frozenset[Container] | None = None
    without: frozenset[int] = frozenset()
    without_containers: frozenset[Container] = frozenset()
    own: OwnProject = ANYONE
    timeout_s: float = math.inf
    is_spoken: bool = False

    def to_filter(self) -> UnitFilter:
        kinds = _to_kinds(self.sources)
        return UnitFilter(
            kinds - UNSPOKEN if self.is_spoken else kinds,
            self.period.first,
            self.period.end,
            self.period.days,
            self.containers,
            self.without,
            self.without_containers,
        )


# The same few combinations are requested again and again.
@lru_cache(maxsize=64)
def _to_kinds(sources: frozenset[HitSource]) -> frozenset[UnitKind]:
    return frozenset(kind for kind, source in HIT_SOURCES.items() if source in sources)
