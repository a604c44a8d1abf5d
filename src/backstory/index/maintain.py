"""Keep the index of one home in step, give it its vectors, and make it again.

What takes long is left to a worker, a process of its own. What a search cannot do
because the disk is full or may not be written stays undone, and the search goes on.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreDamaged,
    StoreLocked,
    StoreProblem,
)
from backstory.index.build import Catalogue, OnTaken
from backstory.index.files import IndexFiles
from backstory.index.vectors import Embedding, OnEmbedded
from backstory.notes.find import FoundNote, NoteKind, find_memory_notes
from backstory.providers.embedders.base import Embedder
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex
from backstory.system.files import locked, try_locked
from backstory.values.history import Problem
from backstory.values.reports import IndexReport, IndexStatus
from backstory.values.units import UnitKind

logger = logging.getLogger(__name__)

# The guidance files of all projects, as they are now.
FindGuidance = Callable[[], Iterable[FoundNote | Problem]]

_REBUILD_LOCK = "rebuild.lock"
_WORKER_LOCK = "worker.lock"
# Left behind by a search that met damage, for whoever may take the time to repair it.
_DAMAGE_MARK = "index-damaged"
_DAMAGED = "it is damaged and is made again soon; 'backstory rebuild' does it now"
_STILL_BEING_MADE = "the index is still being made; older things may be missing"
# How long a search may spend on taking in what is new before it goes ahead without.
_CATCH_UP_S = 2.0
# Another process that is writing will have taken in what we are after.
_WAIT_S = 0.2
# A worker whose embedder failed is not started again for so long.
_EMBEDDER_REST = timedelta(minutes=5)
_FAILED_AT = "embedder_failed_at"
_FAILURE = "embedder_failure"
# Looking through all projects takes long, and their guidance changes seldom.
_GUIDANCE_S = 60.0
_NOTES = frozenset({NoteKind.MEMORY, NoteKind.DAILY_LOG})
_GUIDANCE = frozenset({NoteKind.GUIDANCE})


class Maintainer:
    """Takes care of what is derived in one home."""

    def __init__(
        self,
        files: IndexFiles,
        history: HistoryStore,
        find_guidance: FindGuidance,
        *,
        clock: Callable[[], datetime],
        start_worker: Callable[[], None] | None,
        embedder_name: str,
        has_lasting_embedder: bool,
    ) -> None:
        self._files = files
        self._home = files.home
        self._history = history
        self._find_guidance = find_guidance
        self._clock = clock
        self._start_worker = start_worker
        self._embedder_name = embedder_name
        # For an embedder that was chosen for this run alone, a worker does nothing.
        self._has_lasting_embedder = has_lasting_embedder
        self._guidance_due = 0.0

    def _catalogue(self) -> Catalogue:
        return Catalogue(self._history, self._files.index, self._clock)

    # -- taking in what is new ---

    def update(self, on_taken: OnTaken | None = None) -> IndexReport:
        """Take in all that is new, guidance files too; repair what is damaged."""
        if not self.is_damaged():
            try:
                return self._update(on_taken)
            except StoreDamaged as exc:
                if not self._files.owns(exc.path):
                    raise
                logger.info("the index is damaged and is rebuilt: %s", exc)
                self._files.drop_embeddings_if(exc)
        self.rebuild()
        return self._update(on_taken)

    def _update(self, on_taken: OnTaken | None) -> IndexReport:
        index = self._files.index
        index.check()
        is_due = time.monotonic() >= self._guidance_due
        problems = self._take_all(
            self._catalogue(), on_taken=on_taken, with_guidance=is_due
        )
        if is_due:
            self._guidance_due = time.monotonic() + _GUIDANCE_S
        index.tidy()
        self._sweep(index)
        self._wake_worker()
        return IndexReport(problems=tuple(problems))

    def _take_all(
        self,
        catalogue: Catalogue,
        *,
        on_taken: OnTaken | None = None,
        with_guidance: bool = True,
    ) -> list[Problem]:
        catalogue.catch_up(on_taken=on_taken)
        problems = catalogue.take_notes(find_memory_notes(self._home), _NOTES)
        if with_guidance:
            problems += catalogue.take_notes(self._find_guidance(), _GUIDANCE)
        return problems

    def _sweep(self, index: SearchIndex) -> None:
        """Remove what a rebuild or a writer left behind when it was killed."""
        if not self._files.has_new_index() and not index.has_leftovers():
            return
        with try_locked(self._home / _REBUILD_LOCK) as is_free:
            if is_free:
                self._files.remove_new_index()
                with suppress(StoreLocked):
                    index.delete_leftovers()

    def catch_up(self, *, timeout_s: float = math.inf) -> list[str]:
        """Take in what is new before a search, if that is quickly done.

        It takes no more than half of ``timeout_s``, which is for the whole search.
        Returns what to tell about it. Raises ``StoreProblem`` only when there is no
        index to search in.
        """
        catalogue = self._catalogue()
        notices = []
        try:
            is_whole = catalogue.catch_up(
                until=time.monotonic() + min(_CATCH_UP_S, timeout_s / 2),
                timeout_s=min(_WAIT_S, timeout_s / 2),
            )
            if not is_whole:
                notices.append(_STILL_BEING_MADE)
            catalogue.take_notes(
                find_memory_notes(self._home), _NOTES, timeout_s=_WAIT_S
            )
        except StoreLocked:
            # Whoever is writing takes in the same things.
            logger.debug("another process is writing the index")
            if catalogue.is_behind():
                notices.append(_STILL_BEING_MADE)
        except StoreDamaged:
            raise
        except StoreProblem as exc:
            notices.append(f"what is new could not be taken in: {exc}")
        self._wake_worker()
        return notices

    # -- the worker ---

    def mark_damage(self) -> None:
        """See to it that the index is made again, if need be by somebody else."""
        # Where nothing can be written, there is nothing to be done.
        with suppress(OSError):
            (self._home / _DAMAGE_MARK).touch(mode=0o600)
            self._start_if_free()

    def is_damaged(self) -> bool:
        """Whether a search met damage that has not been repaired yet."""
        return (self._home / _DAMAGE_MARK).exists()

    def _wake_worker(self) -> None:
        """Start a worker if there is work; whatever happens, the search goes on."""
        if self._start_worker is None:
            return
        try:
            if self._has_work():
                self._start_if_free()
        except StoreProblem as exc:
            logger.debug("no worker is started: %s", exc)

    def _start_if_free(self) -> None:
        if self._start_worker is None:
            return
        # Only whoever gets the lock may start one, and not while one is running.
        with suppress(StoreProblem), try_locked(self._home / _WORKER_LOCK) as is_free:
            if not is_free:
                return
        self._start_worker()

    def _has_work(self) -> bool:
        """Whether there is something to do that can wait."""
        if self.is_damaged() or self._catalogue().is_behind():
            return True
        if not self._has_lasting_embedder or self._has_just_failed():
            return False
        try:
            embedder = self._files.embedder
        except (ProviderError, ConfigError):
            return False
        return embedder is not None and self._needs_vectors(embedder)

    def _needs_vectors(self, embedder: Embedder) -> bool:
        """Whether units wait for a vector, or have one of another model."""
        index = self._files.index
        if index.list_to_embed(1):
            return True
        has_foreign = bool(index.get_state("vectors_of"))
        return has_foreign and not index.has_vectors_of(embedder.fingerprint)

    def work(self) -> None:
        """Do what is left to do, in a process of its own: one at a time for a home."""
        with try_locked(self._home / _WORKER_LOCK) as is_free:
            if not is_free:
                return
            if self.is_damaged():
                self.rebuild()
            try:
                self._work()
            except StoreDamaged as exc:
                if not self._files.owns(exc.path):
                    raise
                logger.warning("the index is damaged and is made again: %s", exc)
                self._files.drop_embeddings_if(exc)
                self.rebuild()
                self._work()

    def _work(self) -> None:
        index = self._files.index
        index.check()
        # All of it is there before what nothing needs any more is forgotten. Which
        # projects there are depends on the folder one stands in, so guidance that is
        # there is left to whoever reads the sources.
        is_cleared = all(
            file.kind is not UnitKind.GUIDANCE for file in index.list_files()
        )
        self._take_all(self._catalogue(), with_guidance=is_cleared)
        try:
            self.embed()
        except (ProviderError, ConfigError) as exc:
            logger.warning("%s", exc)
            self._note_failure(str(exc))
        index.tidy()

    def _note_failure(self, reason: str) -> None:
        """Remember that the embedder failed, so that it is not asked all the time."""
        with self._files.index.writing() as writer:
            writer.set_state(_FAILED_AT, self._clock().isoformat())
            writer.set_state(_FAILURE, reason)

    def _has_just_failed(self) -> bool:
        failed_at = self._files.index.get_state(_FAILED_AT)
        return bool(failed_at) and (
            self._clock() - datetime.fromisoformat(failed_at or "") < _EMBEDDER_REST
        )

    # -- vectors ---

    def embed(self, *, on_embedded: OnEmbedded | None = None) -> bool:
        """Make the vectors that are missing; returns whether all are there now."""
        self._catalogue().catch_up()
        embedder = self._files.embedder
        if embedder is None:
            return True
        index = self._files.index
        is_whole = Embedding(self._history, index, embedder).run(
            on_embedded=on_embedded
        )
        if index.get_state(_FAILED_AT):
            with index.writing() as writer:
                writer.set_state(_FAILED_AT, "")
                writer.set_state(_FAILURE, "")
        return is_whole

    # -- making it again ---

    def rebuild(self, *, on_taken: OnTaken | None = None) -> IndexReport:
        """Make the index again beside the old one, which serves until the new is whole.

        No vector is made that the cache has. Stopped at any point, nothing has changed.
        """
        try:
            return self._rebuild(on_taken)
        except StoreDamaged as exc:
            if not self._files.drop_embeddings_if(exc):
                raise
            return self._rebuild(on_taken)

    def _rebuild(self, on_taken: OnTaken | None) -> IndexReport:
        with locked(self._home / _REBUILD_LOCK):
            new = self._files.make_new_index()
            try:
                catalogue = Catalogue(self._history, new, self._clock)
                problems = self._take_all(catalogue, on_taken=on_taken)
                with suppress(ProviderError, ConfigError):
                    embedder = self._files.embedder
                    if embedder is not None:
                        Embedding(self._history, new, embedder).run(is_cached_only=True)
                self._files.put_in_place(new)
            finally:
                new.close()
                self._files.remove_new_index()
            (self._home / _DAMAGE_MARK).unlink(missing_ok=True)
            self._files.index.delete_unused_vectors()
            return IndexReport(problems=tuple(problems))

    # -- how things stand ---

    def is_behind(self) -> bool:
        """Whether something of the history has not been taken in yet."""
        return self._catalogue().is_behind()

    def last_failure(self) -> str:
        """Why the embedder last failed; empty when it works."""
        return self._files.index.get_state(_FAILURE) or ""

    def status(self) -> IndexStatus:
        """How much is indexed and embedded; what is wrong, if anything is.

        Makes no file: where there is no index, everything is still to be done.
        """
        name = self._embedder_name
        if not self._files.has_index():
            is_behind = self._history.last_change_id() > 0
            return IndexStatus(embedder=name, is_behind=is_behind)
        is_damaged = self.is_damaged()
        try:
            counts = self._files.index.counts()
            if counts.embedded and not self._has_own_vectors():
                # They are of another model, and no search uses them.
                counts = replace(counts, embedded=0)
            return IndexStatus(
                units=counts.units,
                with_meaning=counts.with_meaning,
                embedded=counts.embedded,
                size_bytes=self._files.index.size_bytes(),
                embedder=name,
                is_behind=self.is_behind(),
                problem=_DAMAGED if is_damaged else self.last_failure(),
            )
        except StoreProblem as exc:
            return IndexStatus(embedder=name, problem=str(exc))

    def _has_own_vectors(self) -> bool:
        if not self._files.has_embeddings():
            return False
        with suppress(ProviderError, ConfigError):
            embedder = self._files.embedder
            return embedder is None or self._files.index.has_vectors_of(
                embedder.fingerprint
            )
        return True
