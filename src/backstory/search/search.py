"""Search: finds things in one home, with its index or without.

The index is derived: when it is missing it is made, when it is behind it catches up
before the search, and when it is damaged or cannot be opened, the history and the notes
are read without it.
"""

import logging
import threading
from collections.abc import Callable, Set
from dataclasses import replace
from datetime import datetime

from backstory.errors import StoreDamaged, StoreProblem
from backstory.index.files import IndexFiles
from backstory.index.maintain import FindGuidance, Maintainer
from backstory.notes.find import find_memory_notes
from backstory.search.fallback import FallbackSearch
from backstory.search.searcher import Request, Searcher
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex
from backstory.system.fork_safety import reset_in_child
from backstory.values.hits import EpisodeResult, RecallResult, SearchResult

logger = logging.getLogger(__name__)


class Search:
    """Finds things in one home."""

    def __init__(
        self,
        history: HistoryStore,
        files: IndexFiles,
        maintainer: Maintainer,
        find_guidance: FindGuidance,
        *,
        clock: Callable[[], datetime],
        timeout_s: float,
    ) -> None:
        self._history = history
        self._clock = clock
        self._timeout_s = timeout_s
        self._files = files
        self._maintainer = maintainer
        self._fallback = FallbackSearch(
            history,
            lambda: find_memory_notes(files.home),
            find_guidance,
            clock=clock,
            timeout_s=timeout_s,
        )
        self._searcher: tuple[SearchIndex, Searcher] | None = None
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()

    def close(self) -> None:
        if self._searcher is not None:
            self._searcher[1].close()

    # -- searching ---

    def search(self, request: Request) -> SearchResult:
        try:
            notices = self._maintainer.catch_up(timeout_s=self._time(request))
            result = self._get_searcher().search(request)
        except StoreProblem as exc:
            reason, hint = self._explain(exc)
            return self._fallback.search(request, reason=reason, hint=hint)
        return replace(result, notices=(*notices, *result.notices))

    def recall(self, request: Request) -> RecallResult:
        try:
            notices = self._maintainer.catch_up(timeout_s=self._time(request))
            found, more = self._get_searcher().recall(request)
            is_empty = not found and not int(self._files.index.get_state("units") or 0)
        except StoreProblem as exc:
            reason, hint = self._explain(exc)
            return self._fallback.recall(request, reason=reason, hint=hint)
        return RecallResult(
            request.text, tuple(found), (*notices, *more), is_empty_index=is_empty
        )

    def episodes(self, request: Request) -> EpisodeResult:
        try:
            notices = self._maintainer.catch_up(timeout_s=self._time(request))
            episodes, more = self._get_searcher().find_episodes(request)
        except StoreProblem as exc:
            reason, hint = self._explain(exc)
            return self._fallback.episodes(request, reason=reason, hint=hint)
        return EpisodeResult(request.text, tuple(episodes), (*notices, *more))

    def _time(self, request: Request) -> float:
        """How long a whole search may take, in seconds."""
        return min(self._timeout_s, request.timeout_s)

    def _get_searcher(self) -> Searcher:
        index = self._files.index
        with self._lock:
            if self._searcher is None or self._searcher[0] is not index:
                made = Searcher(
                    self._history,
                    index,
                    lambda: self._files.embedder,
                    clock=self._clock,
                    timeout_s=self._timeout_s,
                    on_damage=self._maintainer.mark_damage,
                )
                self._searcher = (index, made)
            return self._searcher[1]

    def _explain(self, problem: StoreProblem) -> tuple[str, str]:
        """Why there is no index to search in, and what to do about it.

        Raises the problem itself when it is none of the index.
        """
        if not self._files.owns(problem.path):
            raise problem
        logger.info("%s", problem)
        if isinstance(problem, StoreDamaged):
            self._maintainer.mark_damage()
            return "the index is damaged", "run 'backstory rebuild'"
        return f"the index cannot be used ({problem})", problem.hint

    def find_files(self, projects: Set[str | None]) -> set[int]:
        """The guidance files of projects, by the numbers they have as sources."""
        try:
            files = self._files.index.list_files()
        except StoreProblem:
            return set()  # the search itself will say so
        return {-file.file_id for file in files if file.project in projects - {None}}
