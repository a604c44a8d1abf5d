"""Keep the index of one home up to date, give it its vectors, and rebuild it.

Slow work is left to the worker, a separate process. If the disk is full or read-only, a
search continues with the index as it is.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreProblem,
    StoreTooNew,
    StoreUnwritable,
)
from backstory.index.build import IndexBuilder
from backstory.index.files import IndexFiles
from backstory.index.history_damage import list_noted_damage
from backstory.index.lost_texts import list_unread_texts, save_lost_texts
from backstory.index.origin import IndexOrigin
from backstory.notes.find import (
    FoundNote,
    NoteKind,
    iter_problems,
)
from backstory.providers.embedders.base import Embedder
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex
from backstory.system.locks import Locks
from backstory.system.loggers import lazy_logger
from backstory.values.history import Problem
from backstory.values.reports import IndexReport, IndexStatus, OnCount, SavedTexts
from backstory.values.structs import replace
from backstory.values.units import UnitKind

logger = lazy_logger(__name__)

# Finds the notes of a home, or the guidance files of all projects.
FindNotes = Callable[[], Iterable[FoundNote | Problem]]
FindGuidance = FindNotes

_REBUILD_LOCK = "rebuild"
# Held for each round of embedding.
_VECTOR_LOCK = "vectors"
# Left by a search that found damage, for a process that has time to repair it.
_DAMAGE_MARK = "index-damaged"
_DAMAGED = "it is damaged and will be rebuilt; 'backstory rebuild' does it now"
_STILL_BUILDING = "the index is still being built; older things may be missing"
_NOT_READ_IN = (
    "texts of messages that the history lost; read them with 'backstory index "
    "--path', or delete the file"
)
_OTHER_HISTORY = "it was made from another history"
_BEING_REBUILT = "the history was restored or replaced, so its index is being rebuilt"
# How long a search may spend on taking in what is new, and on waiting for other
# writers: one that is writing now may have begun before the newest message was
# recorded.
_CATCH_UP_S = 2.0
# While a program records, it asks for vectors no more often than this.
_RECORDING_S = 30.0
# How long no worker is started after a failure of the embedder.
_EMBEDDER_REST = timedelta(minutes=5)
_FAILED_AT = "embedder_failed_at"
_FAILURE = "embedder_failure"
# Set once the index has all vectors of its units that are in the cache.
_HAS_KNOWN_VECTORS = "has_known_vectors"
# Searching all projects takes long, and their guidance rarely changes.
_GUIDANCE_S = 60.0
_NOTES = frozenset({NoteKind.MEMORY, NoteKind.DAILY_LOG})
_NOTE_UNITS = frozenset({UnitKind.MEMORY, UnitKind.DAILY_LOG})
# How many problems with notes a search reports.
_MAX_NOTICES = 3


class Maintainer:
    """Looks after the index of one home.

    ``has_lasting_embedder`` is false for an embedder that was chosen for this run
    alone: the worker would not use it.
    """

    def __init__(
        self,
        files: IndexFiles,
        history: HistoryStore,
        find_guidance: FindGuidance,
        *,
        find_notes: FindNotes,
        locks: Locks,
        clock: Callable[[], datetime],
        start_worker: Callable[[], None] | None,
        embedder_name: str,
        has_lasting_embedder: bool,
    ) -> None:
        self._files = files
        self._home = files.home
        self._history = history
        self._find_guidance = find_guidance
        self._find_notes = find_notes
        self._locks = locks
        self._clock = clock
        self._start_worker = start_worker
        self._embedder_name = embedder_name
        self._has_lasting_embedder = has_lasting_embedder
        self._guidance_due = 0.0
        self._recording_due = 0.0
        self._has_recorded = False

    def _builder(self) -> IndexBuilder:
        return self._build(self._files.index)

    def _build(self, index: SearchIndex) -> IndexBuilder:
        is_shared = self._files.place.is_shared
        return IndexBuilder(self._history, index, self._clock, is_shared)

    # -- before a search ---

    def catch_up(
        self, kinds: Collection[UnitKind], *, timeout_s: float = math.inf
    ) -> list[str]:
        """Take in what is new before a search for some kinds, if that is quick.

        It takes at most half of ``timeout_s``, which is the limit of the whole search.
        Returns notices for the result. Raises ``StoreProblem`` only if there is no
        index to search.
        """
        builder = self._builder()
        notices = []
        problems: list[Problem] = []
        wait_s = min(_CATCH_UP_S, timeout_s / 2)
        until = time.monotonic() + wait_s
        try:
            standing = builder.compare()
            notices += self._leave_other_history(standing.origin)
            if not self._take_in_quickly(
                builder, wait_s, problems, with_messages=standing.is_behind
            ):
                notices.append(_STILL_BUILDING)
            self._take_known_vectors(until)
        except StoreLocked:
            logger.debug("another process is writing the index")
            self._check_origin(builder)
            if builder.is_behind():
                notices.append(_STILL_BUILDING)
        except StoreDamaged:
            raise
        except StoreProblem as exc:
            self._check_origin(builder)
            notices.append(f"the newest things may be missing: {exc}")
        notices += self._tell_of_unread(notices)
        self._wake_worker()
        if not _NOTE_UNITS & set(kinds):
            problems = []
        if UnitKind.GUIDANCE in kinds:
            problems += builder.list_guidance_problems()
        return notices + to_notices(problems)

    def _check_origin(self, builder: IndexBuilder) -> None:
        """Raise ``StoreProblem`` if the index is of another history."""
        if builder.origin() is IndexOrigin.OTHER:
            place = self._files.place
            raise StoreProblem(
                f"{place.name}: {_OTHER_HISTORY}",
                path=place.index_path,
                hint="run 'backstory rebuild'",
            )

    def _leave_other_history(self, origin: IndexOrigin) -> list[str]:
        """Prepare an index of another history for a rebuild; returns notices.

        What only the index knows is saved first.
        """
        match origin:
            case IndexOrigin.SAME:
                return []
            case IndexOrigin.LOST:
                return [self._describe_loss()]
            case IndexOrigin.OTHER:
                saved = self._save_lost_texts()
                return [_BEING_REBUILT, *([describe_saved(saved)] if saved else [])]

    def _describe_loss(self) -> str:
        known = self._files.index.counts().messages
        return (
            f"the history is empty, but the index knows {known:,} of its messages; if "
            "it was lost, restore a backup of history.db, or run 'backstory salvage' "
            "to save their texts"
        )

    def _tell_of_unread(self, notices: Sequence[str]) -> list[str]:
        """One notice about saved texts, unless the others already name them."""
        unread = list_unread_texts(self._home, self._history)
        if not unread or any(str(path) in each for path in unread for each in notices):
            return []
        more = f" (and {len(unread) - 1:,} more)" if len(unread) > 1 else ""
        return [f"{unread[0]}{more}: {_NOT_READ_IN}"]

    def tell_of_damage(self) -> list[str]:
        """A notice if the history was found damaged, by this search or earlier."""
        return [str(each) for each in list_noted_damage(self._home)]

    def _save_lost_texts(self) -> SavedTexts | None:
        return save_lost_texts(self._files.index, self._history, self._home)

    def _take_in_quickly(
        self,
        builder: IndexBuilder,
        timeout_s: float,
        problems: list[Problem],
        *,
        with_messages: bool,
    ) -> bool:
        """Take in messages, if wanted, and notes; returns whether that was everything.

        What is wrong with notes is added to ``problems``.
        """
        until = time.monotonic() + timeout_s
        is_complete = not with_messages or builder.catch_up(
            until=until, timeout_s=timeout_s
        )
        found = self._find_notes()
        wait_s = max(0.0, until - time.monotonic())
        problems += builder.take_notes(found, _NOTES, timeout_s=wait_s)
        return is_complete

    def _take_known_vectors(self, until: float) -> None:
        """Take vectors that were made before the index was, if no worker does it.

        Never raises into a search, which can do without them.
        """
        if self._start_worker is not None or not self._has_lasting_embedder:
            return
        try:
            index, embedder = self._files.index, self._files.embedder
            if embedder is None or index.get_state(_HAS_KNOWN_VECTORS):
                return
            is_other = index.has_vectors() and not index.has_vectors_of(
                embedder.fingerprint
            )
            if is_other or not index.embeddings.has_any(embedder.fingerprint):
                return
            with self._locks.try_locked(_VECTOR_LOCK) as is_held:
                if not is_held:
                    return
                self._take_cached_vectors(index, until=until)
            if time.monotonic() < until:
                with index.writing() as writer:
                    writer.set_state(_HAS_KNOWN_VECTORS, "yes")
        except (StoreProblem, ProviderError, ConfigError) as exc:
            logger.debug("no vectors are taken from the cache: %s", exc)

    # -- after reading the sources ---

    def update(self, on_taken: OnCount | None = None) -> IndexReport:
        """Take in all that is new, including guidance files; repair any damage."""
        if not self.is_damaged():
            try:
                return self._update(on_taken)
            except StoreDamaged as exc:
                self._expect_own_damage(exc)
        self.rebuild()
        return self._update(on_taken)

    def _update(self, on_taken: OnCount | None) -> IndexReport:
        index = self._files.index
        index.check()
        is_due = time.monotonic() >= self._guidance_due
        builder = self._builder()
        problems = [
            Problem(each) for each in self._leave_other_history(builder.origin())
        ]
        problems += self._take_all(builder, on_taken=on_taken, with_guidance=is_due)
        if is_due:
            self._guidance_due = time.monotonic() + _GUIDANCE_S
        index.tidy()
        self._delete_leftovers(index)
        self._wake_worker()
        return IndexReport(problems=tuple(problems))

    def _take_all(
        self,
        builder: IndexBuilder,
        *,
        on_taken: OnCount | None = None,
        with_guidance: bool = True,
    ) -> list[Problem]:
        builder.catch_up(on_taken=on_taken)
        problems = builder.take_notes(self._find_notes(), _NOTES)
        if with_guidance:
            problems += builder.take_guidance(self._find_guidance())
        return problems

    def _expect_own_damage(self, damage: StoreDamaged) -> None:
        """Prepare for a rebuild; raises ``damage`` again if that cannot help."""
        if not self._files.place.owns(damage):
            raise damage
        logger.warning("the index is damaged and will be rebuilt: %s", damage)
        self._files.repair_embeddings_if(damage)

    def _delete_leftovers(self, index: SearchIndex) -> None:
        """Delete what a killed rebuild or writer left behind."""
        if not self._files.place.has_new_index() and not index.has_leftovers():
            return
        with self._locks.try_locked(_REBUILD_LOCK) as is_held:
            if is_held:
                self._files.place.remove_new_index()
                with suppress(StoreLocked):
                    index.delete_leftovers()

    # -- the worker ---

    def mark_damage(self) -> None:
        """Have the index rebuilt by the next process that can."""
        # In a read-only home, nothing can be repaired.
        with suppress(OSError):
            (self._home / _DAMAGE_MARK).touch(mode=0o600)
            if self._start_worker is not None:
                self._start_worker()

    def is_damaged(self) -> bool:
        """Whether a search found damage that has not been repaired yet."""
        return (self._home / _DAMAGE_MARK).exists()

    def _wake_worker(self) -> None:
        """Start a worker if there is work; never raises into a search."""
        if self._start_worker is None:
            return
        try:
            if self._has_work():
                self._start_worker()
        except StoreProblem as exc:
            logger.debug("no worker is started: %s", exc)

    def _has_work(self) -> bool:
        """Whether there is something for the worker to do."""
        if self.is_damaged() or self._builder().is_behind():
            return True
        if not self._has_lasting_embedder or self._has_just_failed():
            return False
        try:
            embedder = self._files.embedder
        except (ProviderError, ConfigError):
            return False
        return embedder is not None and self._needs_vectors(embedder)

    def _needs_vectors(self, embedder: Embedder) -> bool:
        """Whether any units wait for a vector, or have one from another model."""
        index = self._files.index
        if index.list_to_embed(1) or index.list_passages_to_embed(1):
            return True
        return index.has_vectors() and not index.has_vectors_of(embedder.fingerprint)

    def note_recording(self) -> None:
        """Have recent recordings embedded soon, without looking at the index now."""
        if self._start_worker is None or not self._has_lasting_embedder:
            return
        self._has_recorded = True
        if time.monotonic() >= self._recording_due:
            self._ask_for_vectors()

    def _ask_for_vectors(self) -> None:
        if self._start_worker is not None and self._embedder_name != "none":
            self._start_worker()
        self._has_recorded = False
        self._recording_due = time.monotonic() + _RECORDING_S

    def note_pause(self) -> None:
        """Have the last messages embedded, too: there may be no more for a while."""
        if self._has_recorded:
            self._ask_for_vectors()

    def close(self) -> None:
        self.note_pause()

    def work(self) -> None:
        """Do the worker's work."""
        if self.is_damaged():
            self.rebuild()
        try:
            self._work()
        except StoreDamaged as exc:
            self._expect_own_damage(exc)
            self.rebuild()
            self._work()

    def _work(self) -> None:
        index = self._files.index
        index.check()
        # Everything is taken in before unused vectors are deleted. Which projects are
        # known depends on the current folder, so existing guidance is left to the
        # process that reads the sources.
        kinds = {file.kind for file in index.list_files()}
        is_cleared = UnitKind.GUIDANCE not in kinds
        builder = self._builder()
        for notice in self._leave_other_history(builder.origin()):
            logger.warning("%s", notice)
        self._take_all(builder, with_guidance=is_cleared)
        try:
            self.embed()
        except (ProviderError, ConfigError) as exc:
            logger.warning("%s", exc)
            self._note_failure(str(exc))
        index.tidy()

    def _note_failure(self, reason: str) -> None:
        """Remember that the embedder failed, so that it is not tried all the time."""
        with self._files.index.writing() as writer:
            writer.set_state(_FAILED_AT, self._clock().isoformat())
            writer.set_state(_FAILURE, reason)

    def _has_just_failed(self) -> bool:
        failed_at = self._files.index.get_state(_FAILED_AT)
        if not failed_at:
            return False
        ago = self._clock() - datetime.fromisoformat(failed_at)
        # A clock that was set back must not prolong the rest.
        return timedelta(0) <= ago < _EMBEDDER_REST

    # -- vectors ---

    def embed(self, *, on_embedded: OnCount | None = None) -> bool:
        """Take in what is new and make all missing vectors; False if some were refused.

        Other processes may do the same: they take turns.
        """
        # Slow to import, and most processes leave vectors to the worker.
        from backstory.index.vectors import VectorBuilder

        builder = self._builder()
        while True:
            for notice in self._leave_other_history(builder.origin()):
                logger.warning("%s", notice)
            self._take_all(builder, with_guidance=False)
            embedder = self._files.embedder
            if embedder is None:
                return True
            vectors = VectorBuilder(
                self._history,
                self._files.index,
                embedder,
                take_turn=partial(self._locks.locked, _VECTOR_LOCK),
            )
            is_complete = vectors.run(on_embedded=on_embedded)
            self._forget_failure()
            if not builder.is_behind():
                return is_complete

    def _forget_failure(self) -> None:
        index = self._files.index
        if index.get_state(_FAILED_AT):
            with index.writing() as writer:
                writer.set_state(_FAILED_AT, "")
                writer.set_state(_FAILURE, "")

    # -- rebuilding ---

    def rebuild(self, *, on_taken: OnCount | None = None) -> IndexReport:
        """Build a new index beside the old one, which is used until that is complete.

        Vectors come from the cache. If this is stopped at any time, nothing has
        changed. What only the old index knows is saved, unless it is damaged.
        """
        try:
            return self._rebuild(on_taken)
        except (StoreDamaged, StoreTooNew) as exc:
            if not self._files.repair_embeddings_if(exc):
                raise
            return self._rebuild(on_taken)

    def _rebuild(self, on_taken: OnCount | None) -> IndexReport:
        with self._locks.locked(_REBUILD_LOCK):
            problems = self._save_before_rebuild()
            new = self._files.make_new_index()
            try:
                builder = self._build(new)
                problems += self._take_all(builder, on_taken=on_taken)
                self._take_cached_vectors(new)
                self._files.put_in_place(new)
            finally:
                new.close()
                self._files.place.remove_new_index()
            (self._home / _DAMAGE_MARK).unlink(missing_ok=True)
            self._files.index.delete_unused_vectors()
            return IndexReport(problems=tuple(problems))

    def _save_before_rebuild(self) -> list[Problem]:
        if not self._files.place.has_index():
            return []
        try:
            is_same = self._builder().origin() is IndexOrigin.SAME
            if is_same and not self._history.has_damage():
                return []
            saved = self._save_lost_texts()
        except StoreProblem as exc:
            logger.info("%s", exc)
            return []
        return [Problem(describe_saved(saved))] if saved else []

    def salvage_texts(self) -> SavedTexts | None:
        """Save the texts of messages that are in the index, but not in the history."""
        if not self._files.place.has_index():
            return None
        return self._save_lost_texts()

    def _take_cached_vectors(
        self, index: SearchIndex, *, until: float = math.inf
    ) -> None:
        # Slow to import, and most processes leave vectors to the worker.
        from backstory.index.vectors import VectorBuilder

        with suppress(ProviderError, ConfigError):
            embedder = self._files.embedder
            if embedder is not None:
                vectors = VectorBuilder(self._history, index, embedder)
                vectors.run(is_cached_only=True, until=until)

    def list_models(self) -> list[str]:
        """The fingerprints of the models whose vectors are used, or will be."""
        found = []
        with suppress(StoreProblem):
            if self._files.place.has_index():
                found.append(self._files.index.vectors_made_by())
        with suppress(ProviderError, ConfigError):
            embedder = self._files.embedder
            found.append("" if embedder is None else embedder.fingerprint)
        return list(dict.fromkeys(filter(None, found)))

    def is_behind(self) -> bool:
        """Whether there is something that the index has not taken in yet."""
        return not self._files.place.has_index() or self._builder().is_behind()

    # -- status ---

    def status(self) -> IndexStatus:
        """How much is indexed and embedded, and what is wrong, if anything.

        Creates no file.
        """
        name = self._embedder_name
        if not self._files.place.has_index():
            is_behind = self._history.last_change_id() > 0
            return IndexStatus(embedder=name, is_behind=is_behind)
        try:
            index = self._files.index
            counts = index.counts()
            if counts.embedded and not self._has_own_vectors():
                # The vectors are from another model, so no search uses them.
                counts = replace(counts, embedded=0)
            failure = index.get_state(_FAILURE) or ""
            return IndexStatus(
                units=counts.units,
                with_meaning=counts.with_meaning,
                embedded=counts.embedded,
                size_bytes=index.size_bytes(),
                embedder=name,
                is_behind=self._builder().is_behind(),
                problem=_DAMAGED if self.is_damaged() else failure,
                in_background=self._start_worker is not None,
            )
        except (StoreFull, StoreLocked, StoreUnwritable) as exc:
            # Rebuilding the index would not help.
            return IndexStatus(embedder=name, problem=str(exc))
        except StoreProblem as exc:
            problem = f"{exc}; run 'backstory rebuild'"
            return IndexStatus(embedder=name, problem=problem)

    def list_problems(self) -> list[Problem]:
        """What is wrong with the history, as far as the index or a reading can tell."""
        problems = list_noted_damage(self._home)
        with suppress(StoreProblem):  # the status of the index reports it
            if self._files.place.has_index():
                is_lost = self._builder().origin() is IndexOrigin.LOST
                problems += [Problem(self._describe_loss())] if is_lost else []
        return problems + [
            Problem(_NOT_READ_IN, path=str(path))
            for path in list_unread_texts(self._home, self._history)
        ]

    def list_note_problems(self) -> list[Problem]:
        """What is wrong with notes now, and was with guidance when it was last read."""
        problems = list(iter_problems(self._find_notes()))
        with suppress(StoreProblem):
            if self._files.place.has_index():
                problems += self._builder().list_guidance_problems()
        return problems

    def _has_own_vectors(self) -> bool:
        if not self._files.place.has_embeddings():
            return False
        with suppress(ProviderError, ConfigError):
            embedder, index = self._files.embedder, self._files.index
            return embedder is None or index.has_vectors_of(embedder.fingerprint)
        return True


def describe_saved(saved: SavedTexts) -> str:
    """What was saved of lost messages, and how to index it."""
    return (
        f"texts that only the index had were saved to {saved.path} "
        f"({saved.messages:,}); read them with 'backstory index --path'"
    )


def to_notices(problems: Sequence[Problem]) -> list[str]:
    """Problems with notes, as a search reports them."""
    notices = [str(problem) for problem in problems[:_MAX_NOTICES]]
    if len(problems) > _MAX_NOTICES:
        more = len(problems) - _MAX_NOTICES
        notices.append(f"{more:,} more notes have problems; see 'backstory status'")
    return notices
