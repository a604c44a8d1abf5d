"""Measure how much time each part of a search takes.

The functions below are wrapped while a measurement lasts. If one of them calls another,
that time is not counted twice. Times are processor times of threads: the searches by
words, meaning and text run in parallel, so the stages together take longer than an
answer.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

# The name of each stage, and the functions that do its work.
_STAGES = {
    "reading what changed": ("search.search:Search._read_what_changed",),
    "bringing the index up to date": ("search.search:Search._catch_up",),
    "the query's vector": ("search.query_vectors:QueryVectors._make",),
    "nearest vectors": (
        "store.sqlite.index:SqliteIndex.nearest",
        "store.sqlite.index:SqliteIndex.cosines",
        "store.sqlite.index:SqliteIndex.find_best_passages",
    ),
    "matching words": (
        "search.retrieve:Retriever.plan_words",
        "store.sqlite.index:SqliteIndex.match_words",
        "store.sqlite.index:SqliteIndex.score_words",
    ),
    "finding the text as typed": (
        "store.sqlite.index:SqliteIndex.find_few",
        "store.sqlite.index:SqliteIndex.find_text",
        "store.sqlite.index:SqliteIndex.having_text",
    ),
    "what the units are": ("search.retrieve:Retriever._describe",),
    "ranking": ("search.tuned_profile:TunedProfile.rank",),
    "choosing hits": ("search.hits:HitSearch._choose",),
    "excerpts, newer hits": (
        "search.hits:add_excerpt",
        "search.tuned_profile:TunedProfile.finish",
    ),
    "replies": ("search.search:add_replies",),
    "rendering": ("tools.search_history:fit_results",),
}
REST = "everything else"


class Stages:
    """How many seconds of processor time each stage has taken."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self._local = threading.local()

    # Any: whatever the functions of the stages take and return.
    def wrap(self, stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def timed(*args: Any, **named: Any) -> Any:
            local = self._local
            outer = getattr(local, "inner_s", 0.0)
            local.inner_s = 0.0
            began = time.thread_time()
            try:
                return work(*args, **named)
            finally:
                took = time.thread_time() - began
                self.taken[stage] += took - local.inner_s
                local.inner_s = outer + took

        return timed

    def describe(self, whole_s: float) -> str:
        """The share of each stage, the largest first."""
        rest = max(0.0, whole_s - sum(self.taken.values()))
        shares = Counter({**self.taken, REST: rest})
        return ", ".join(
            f"{stage} {took / whole_s:.0%}" for stage, took in shares.most_common()
        )


@contextmanager
def watched() -> Iterator[Stages]:
    """Time the stages of all searches in the block."""
    stages = Stages()
    with ExitStack() as wrapped:
        for stage, places in _STAGES.items():
            for place in places:
                target = f"backstory.{place.replace(':', '.')}"
                module, _, name = place.partition(":")
                work = _find(f"backstory.{module}", name)
                wrapped.enter_context(patch(target, stages.wrap(stage, work)))
        yield stages


def _find(module: str, name: str) -> Callable[..., Any]:
    # Any: a module, a class or a function.
    found: Any = __import__(module, fromlist=["_"])
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]
