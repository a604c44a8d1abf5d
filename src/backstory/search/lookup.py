"""Lookup: finds things in one home, with its index or without.

The index is derived: when it is missing it is made, when it is behind it catches up
before the search, and when it is damaged or cannot be opened, the history and the notes
are read without it.
"""

import logging
import threading
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from backstory.errors import ConfigError, ProviderError, StoreDamaged, StoreProblem
from backstory.index.build import OnTaken
from backstory.index.files import Derived
from backstory.index.maintain import FindGuidance, Upkeep
from backstory.index.vectors import OnEmbedded
from backstory.ingest.hosts.base import Machine
from backstory.notes.find import find_memory_notes
from backstory.providers.embedders.base import Embedder
from backstory.search.fallback import PlainSearcher
from backstory.search.rank import Weights
from backstory.search.searcher import Request, Searcher
from backstory.settings import Settings
from backstory.store.base.history import HistoryStore
from backstory.store.sqlite.index import SqliteIndex
from backstory.system.fork_safety import forget_in_child
from backstory.values.model import (
    EpisodeResult,
    HitSource,
    IndexStatus,
    Problem,
    RecallResult,
    SearchResult,
)

logger = logging.getLogger(__name__)

_DAMAGED = "it is damaged and is made again soon; 'backstory rebuild' does it now"


class Lookup:
    """Finds things in one home, and keeps its index."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        machine: Machine,
        history: HistoryStore,
        find_guidance: FindGuidance,
        *,
        clock: Callable[[], datetime],
        start_worker: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._history = history
        self._clock = clock
        self._derived = Derived(home, settings, machine)
        self._upkeep = Upkeep(
            self._derived,
            history,
            settings,
            find_guidance,
            clock=clock,
            start_worker=start_worker,
        )
        self._plain = PlainSearcher(
            history,
            lambda: find_memory_notes(home),
            find_guidance,
            clock=clock,
            timeout_s=settings.number("search.timeout_seconds"),
        )
        self._searcher: tuple[SqliteIndex, Searcher] | None = None
        self.forget()
        forget_in_child(self)

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()

    @property
    def index(self) -> SqliteIndex:
        """The index. Raises ``StoreProblem`` when it cannot be opened as one."""
        return self._derived.index

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors; None when nothing is to. Raises ``ProviderError``."""
        return self._derived.embedder

    @embedder.setter
    def embedder(self, embedder: Embedder | None) -> None:
        self._derived.embedder = embedder

    def close(self) -> None:
        if self._searcher is not None:
            self._searcher[1].close()
        self._derived.close()

    # -- searching ---

    def search(self, request: Request) -> SearchResult:
        try:
            notices = self._upkeep.catch_up(timeout_s=self._time(request))
            result = self._get_searcher().search(request)
        except StoreProblem as exc:
            reason, hint = self._explain(exc)
            return self._plain.search(request, reason=reason, hint=hint)
        return replace(result, notices=(*notices, *result.notices))

    def recall(self, request: Request) -> RecallResult:
        try:
            notices = self._upkeep.catch_up(timeout_s=self._time(request))
            found, more = self._get_searcher().recall(request)
            is_empty = not found and not int(self.index.get_state("units") or 0)
        except StoreProblem as exc:
            reason, hint = self._explain(exc)
            return self._plain.recall(request, reason=reason, hint=hint)
        return RecallResult(
            request.text, tuple(found), (*notices, *more), is_empty_index=is_empty
        )

    def episodes(self, request: Request) -> EpisodeResult:
        try:
            notices = self._upkeep.catch_up(timeout_s=self._time(request))
            episodes, more = self._get_searcher().find_episodes(request)
        except StoreProblem as exc:
            reason, hint = self._explain(exc)
            return self._plain.episodes(request, reason=reason, hint=hint)
        return EpisodeResult(request.text, tuple(episodes), (*notices, *more))

    def _time(self, request: Request) -> float:
        """How long a whole search may take, in seconds."""
        return min(self._settings.number("search.timeout_seconds"), request.timeout_s)

    def _get_searcher(self) -> Searcher:
        index = self.index
        with self._lock:
            if self._searcher is None or self._searcher[0] is not index:
                made = Searcher(
                    self._history,
                    index,
                    lambda: self.embedder,
                    clock=self._clock,
                    timeout_s=self._settings.number("search.timeout_seconds"),
                    on_damage=self._upkeep.mark_damage,
                )
                self._searcher = (index, made)
            return self._searcher[1]

    def _explain(self, problem: StoreProblem) -> tuple[str, str]:
        """Why there is no index to search in, and what to do about it.

        Raises the problem itself when it is none of the index.
        """
        if not self._derived.owns(problem.path):
            raise problem
        logger.info("%s", problem)
        if isinstance(problem, StoreDamaged):
            self._upkeep.mark_damage()
            return "the index is damaged", "run 'backstory rebuild'"
        return f"the index cannot be used ({problem})", problem.hint

    def find_files(self, projects: Set[str | None]) -> set[int]:
        """The guidance files of projects, by the numbers they have as sources."""
        try:
            files = self.index.list_files()
        except StoreProblem:
            return set()  # the search itself will say so
        return {-file.file_id for file in files if file.project in projects - {None}}

    def weights(self) -> Weights:
        """The settings as the ranking takes them."""
        number = self._settings.number
        return Weights(
            words=number("ranking.memory_words"),
            message_words=number("ranking.message_words"),
            sources={
                HitSource.MEMORY: number("ranking.memory_weight"),
                HitSource.DAILY_LOG: number("ranking.memory_weight"),
                HitSource.FILE: number("ranking.memory_weight"),
                HitSource.MESSAGE: number("ranking.message_weight"),
                HitSource.SESSION: number("ranking.session_weight"),
            },
            decay_per_day=number("ranking.decay_per_day"),
            decay_floor=number("ranking.decay_floor"),
            profile=self._settings.text("ranking.profile"),
        )

    # -- upkeep ---

    def update(self, *, on_taken: OnTaken | None = None) -> list[Problem]:
        """Take in all that is new, guidance files too; repair what is damaged."""
        return self._upkeep.update(on_taken)

    def embed(self, *, on_embedded: OnEmbedded | None = None) -> bool:
        """Make the vectors that are missing; returns whether all are there now."""
        return self._upkeep.embed(on_embedded=on_embedded)

    def rebuild(self, *, on_taken: OnTaken | None = None) -> list[Problem]:
        """Make the index again; the old one serves until the new one is whole."""
        return self._upkeep.rebuild(on_taken=on_taken)

    def work(self) -> None:
        """Do what is left to do, in a process of its own: one at a time for a home."""
        self._upkeep.work()

    # -- how things stand ---

    def status(self) -> IndexStatus:
        """How much is indexed and embedded; what is wrong, if anything is.

        Makes no file: where there is no index, everything is still to be done.
        """
        name = self._settings.text("embedder.name")
        if not self._derived.has_index():
            is_behind = self._history.last_change_id() > 0
            return IndexStatus(embedder=name, is_behind=is_behind)
        is_damaged = self._upkeep.is_damaged()
        try:
            counts = self.index.counts()
            if counts.embedded and not self._has_own_vectors():
                # They are of another model, and no search uses them.
                counts = replace(counts, embedded=0)
            return IndexStatus(
                units=counts.units,
                with_meaning=counts.with_meaning,
                embedded=counts.embedded,
                size_bytes=self.index.size_bytes(),
                embedder=name,
                is_behind=self._upkeep.is_behind(),
                problem=_DAMAGED if is_damaged else self._upkeep.last_failure(),
            )
        except StoreProblem as exc:
            return IndexStatus(embedder=name, problem=str(exc))

    def _has_own_vectors(self) -> bool:
        if not self._derived.has_embeddings():
            return False
        with suppress(ProviderError, ConfigError):
            embedder = self.embedder
            return embedder is None or self.index.has_vectors_of(embedder.fingerprint)
        return True
