"""Lookup: the index of one home, kept in step and searched.

The index is derived: when it is missing it is made, when it is behind it catches up
before the search, and when it is damaged the history is searched without it until it
has been made again.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from backstory.cataloguing import Catalogue, OnTaken
from backstory.embedders import load_embedder
from backstory.embedders.base import Embedder
from backstory.embedding import Embedding, OnEmbedded
from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreDamaged,
    StoreLocked,
    StoreProblem,
)
from backstory.excerpts import EXCERPT_CHARS, excerpt
from backstory.files import locked, try_locked
from backstory.hosts.base import Machine
from backstory.model import (
    Episode,
    EpisodeResult,
    Hit,
    HitSource,
    IndexStatus,
    Message,
    Problem,
    RecallResult,
    Role,
    SearchResult,
    Strength,
)
from backstory.notes import NoteKind, find_guidance, find_memory_notes
from backstory.querying import parse_query
from backstory.ranking import Weights
from backstory.searching import Request, Searcher
from backstory.settings import Settings
from backstory.store.base import HistoryStore
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.index import SqliteIndex
from backstory.words import fold

logger = logging.getLogger(__name__)

INDEX_NAME = "index.db"
EMBEDDINGS_NAME = "embeddings.db"
_NEW_NAME = "new-index.db"
_REBUILD_LOCK = "rebuild.lock"
_WORKER_LOCK = "worker.lock"
# Left behind by a search that met damage, for whoever may take the time to repair it.
_DAMAGE_MARK = "index-damaged"
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
_GUIDANCE = frozenset({NoteKind.FILE})
# Where the key of a provider is, when no setting says so.
_KEY_VARIABLES = {
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}


class Lookup:
    """Finds things in one home."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        machine: Machine,
        history: HistoryStore,
        *,
        clock: Callable[[], datetime],
        start_worker: Callable[[], None] | None = None,
    ) -> None:
        self.home = home
        self._settings = settings
        self._machine = machine
        self._history = history
        self._clock = clock
        self._start_worker = start_worker
        self._embeddings: SqliteEmbeddings | None = None
        self._index: SqliteIndex | None = None
        self._searcher: Searcher | None = None
        self._guidance_due = 0.0

    # -- putting it together ---

    @property
    def index(self) -> SqliteIndex:
        """The index. Raises ``StoreDamaged`` when it cannot be opened as one."""
        if self._index is None:
            self._index = SqliteIndex(self.home / INDEX_NAME, self._cache())
        return self._index

    def _cache(self) -> SqliteEmbeddings:
        if self._embeddings is None:
            path = self.home / EMBEDDINGS_NAME
            cache = SqliteEmbeddings(path)
            try:
                _ = cache.identity
            except StoreDamaged:
                # What it held is made again; nothing but time is lost.
                logger.info("%s is damaged; vectors are made again", path)
                cache.close()
                _remove_database(path)
                cache = SqliteEmbeddings(path)
            self._embeddings = cache
        return self._embeddings

    def _drop_cache_if(self, damage: StoreDamaged) -> bool:
        """Delete the cache of vectors if that is what is damaged."""
        if self._embeddings is None or damage.path != self._embeddings.path:
            return False
        self.close()
        self._embeddings = self._index = self._searcher = None
        _remove_database(self.home / EMBEDDINGS_NAME)
        return True

    def _catalogue(self) -> Catalogue:
        return Catalogue(self._history, self.index, self._clock)

    def _search(self) -> Searcher:
        if self._searcher is None:
            self._searcher = Searcher(
                self._history,
                self.index,
                lambda: self.embedder,
                clock=self._clock,
                timeout_s=self._settings.number("search.timeout_seconds"),
                on_damage=self._mark_damage,
            )
        return self._searcher

    @cached_property
    def embedder(self) -> Embedder | None:
        """What makes vectors; None when nothing is to. Raises ``ProviderError``."""
        name = self._settings.text("embedder.name")
        return load_embedder(
            name,
            model=self._settings.text("embedder.model"),
            url=self._settings.text("embedder.url"),
            key=self._key(name),
            timeout_s=self._settings.number("embedder.timeout_seconds"),
        )

    def _key(self, name: str) -> str:
        chosen = self._settings.text("embedder.key")
        if not chosen:
            # A key from the environment goes to its provider, and to nobody else.
            is_elsewhere = bool(self._settings.text("embedder.url"))
            variables = () if is_elsewhere else _KEY_VARIABLES.get(name, ())
            found = (self._machine.environ.get(each, "") for each in variables)
            return next(filter(None, found), "")
        if not chosen.startswith("env:"):
            raise ConfigError(
                "embedder.key must name an environment variable, not be the key itself",
                hint='write embedder.key = "env:NAME"',
            )
        return self._machine.environ.get(chosen.removeprefix("env:"), "")

    def close(self) -> None:
        if self._searcher is not None:
            self._searcher.close()
        if self._index is not None:
            self._index.close()
        if self._embeddings is not None:
            self._embeddings.close()
        if "embedder" in self.__dict__ and self.embedder is not None:
            self.embedder.close()

    # -- keeping in step ---

    def update(
        self,
        projects: list[str],
        exclude: Callable[[Path], bool],
        on_taken: OnTaken | None = None,
    ) -> list[Problem]:
        """Take in all that is new, guidance files too; repair what is damaged."""
        is_damaged = (self.home / _DAMAGE_MARK).exists()
        if not is_damaged:
            try:
                return self._update(projects, exclude, on_taken)
            except StoreDamaged as exc:
                logger.info("the index is damaged and is made again: %s", exc)
                self._drop_cache_if(exc)
        self.rebuild(projects=projects, exclude=exclude)
        return self._update(projects, exclude, on_taken)

    def _update(
        self,
        projects: list[str],
        exclude: Callable[[Path], bool],
        on_taken: OnTaken | None,
    ) -> list[Problem]:
        catalogue = self._catalogue()
        catalogue.catch_up(on_taken=on_taken)
        problems = catalogue.take_notes(find_memory_notes(self.home), _NOTES)
        if time.monotonic() >= self._guidance_due:
            guidance = find_guidance(
                projects, user_home=self._machine.home, exclude=exclude
            )
            problems += catalogue.take_notes(guidance, _GUIDANCE)
            self._guidance_due = time.monotonic() + _GUIDANCE_S
        self.index.tidy()
        self._sweep()
        self._wake_worker()
        return problems

    def _sweep(self) -> None:
        """Remove what a rebuild or a writer left behind when it was killed."""
        with try_locked(self.home / _REBUILD_LOCK) as is_free:
            if is_free:
                _remove_index(self.home / _NEW_NAME)
                with suppress(StoreLocked):
                    self.index.sweep()

    def _catch_up(self) -> list[str]:
        """Take in what is new before a search, if that is quickly done."""
        catalogue = self._catalogue()
        notices = []
        try:
            is_whole = catalogue.catch_up(
                until=time.monotonic() + _CATCH_UP_S, timeout_s=_WAIT_S
            )
            if not is_whole:
                notices.append(
                    "the index is still being made; older things may be missing"
                )
            catalogue.take_notes(
                find_memory_notes(self.home), _NOTES, timeout_s=_WAIT_S
            )
        except StoreLocked:
            # Whoever is writing takes in the same things.
            logger.debug("another process is writing the index")
        except StoreDamaged:
            raise
        except StoreProblem as exc:
            notices.append(f"what is new could not be taken in: {exc}")
        self._wake_worker()
        return notices

    def _wake_worker(self) -> None:
        if not self._may_start_worker() or not self._has_work():
            return
        # Only whoever gets the lock may start one, and not while one is running.
        with try_locked(self.home / _WORKER_LOCK) as is_free:
            if not is_free:
                return
        if self._start_worker is not None:
            self._start_worker()

    def _may_start_worker(self) -> bool:
        return self._start_worker is not None and self._settings.flag(
            "embedder.in_background"
        )

    def _has_work(self) -> bool:
        """Whether there is something to do that can wait."""
        if self._catalogue().is_behind():
            return True
        try:
            embedder = self.embedder
        except (ProviderError, ConfigError):
            return False
        if embedder is None or self._has_just_failed():
            return False
        return self._needs_vectors(embedder)

    def _needs_vectors(self, embedder: Embedder) -> bool:
        """Whether units wait for a vector, or have one of another model."""
        if self.index.list_to_embed(1):
            return True
        has_foreign = bool(self.index.get_state("vectors_of"))
        return has_foreign and not self.index.has_vectors_of(embedder.fingerprint)

    def work(self, projects: list[str], exclude: Callable[[Path], bool]) -> None:
        """Do what is left to do, in a process of its own: one at a time for a home."""
        with try_locked(self.home / _WORKER_LOCK) as is_free:
            if not is_free:
                return
            if (self.home / _DAMAGE_MARK).exists():
                self.rebuild(projects=projects, exclude=exclude)
            try:
                self.embed()
            except (ProviderError, ConfigError) as exc:
                logger.warning("%s", exc)
                self._note_failure(str(exc))
            except StoreDamaged as exc:
                self._drop_cache_if(exc)
                self._mark_damage()
                return
            self.index.tidy()

    def _note_failure(self, reason: str) -> None:
        """Remember that the embedder failed, so that it is not asked all the time."""
        with self.index.writing() as writer:
            writer.set_state(_FAILED_AT, self._clock().isoformat())
            writer.set_state(_FAILURE, reason)

    def _has_just_failed(self) -> bool:
        failed_at = self.index.get_state(_FAILED_AT)
        return bool(failed_at) and (
            self._clock() - datetime.fromisoformat(failed_at or "") < _EMBEDDER_REST
        )

    def embed(self, *, on_embedded: OnEmbedded | None = None) -> bool:
        """Make the vectors that are missing; returns whether all are there now."""
        self._catalogue().catch_up()
        embedder = self.embedder
        if embedder is None:
            return True
        is_whole = Embedding(self._history, self.index, embedder).run(
            on_embedded=on_embedded
        )
        if self.index.get_state(_FAILED_AT):
            with self.index.writing() as writer:
                writer.set_state(_FAILED_AT, "")
                writer.set_state(_FAILURE, "")
        return is_whole

    def rebuild(
        self,
        *,
        projects: list[str],
        exclude: Callable[[Path], bool],
        on_taken: OnTaken | None = None,
    ) -> list[Problem]:
        """Make the index again beside the old one, which serves until the new is whole.

        No vector is made that the cache has. Stopped at any point, nothing has changed.
        """
        try:
            return self._rebuild(projects, exclude, on_taken)
        except StoreDamaged as exc:
            if not self._drop_cache_if(exc):
                raise
            return self._rebuild(projects, exclude, on_taken)

    def _rebuild(
        self,
        projects: list[str],
        exclude: Callable[[Path], bool],
        on_taken: OnTaken | None,
    ) -> list[Problem]:
        with locked(self.home / _REBUILD_LOCK):
            new_path = self.home / _NEW_NAME
            _remove_index(new_path)
            new = SqliteIndex(new_path, self._cache())
            try:
                catalogue = Catalogue(self._history, new, self._clock)
                catalogue.catch_up(on_taken=on_taken)
                problems = catalogue.take_notes(find_memory_notes(self.home), _NOTES)
                problems += catalogue.take_notes(
                    find_guidance(
                        projects, user_home=self._machine.home, exclude=exclude
                    ),
                    _GUIDANCE,
                )
                with suppress(ProviderError, ConfigError):
                    if self.embedder is not None:
                        Embedding(self._history, new, self.embedder).run(
                            is_cached_only=True
                        )
                self._put_in_place(new)
            finally:
                new.close()
                _remove_index(new_path)
            (self.home / _DAMAGE_MARK).unlink(missing_ok=True)
            self.index.forget_unused()
            return problems

    def _put_in_place(self, new: SqliteIndex) -> None:
        try:
            self.index.replace_with(new)
        except StoreDamaged:
            # So damaged that not even its first page can be read.
            if self._index is not None:
                self._index.close()
            self._index = self._searcher = None
            SqliteIndex.reset(self.home / INDEX_NAME)
            self.index.replace_with(new)

    # -- searching ---

    def search(self, request: Request) -> SearchResult:
        with self._noticing_damage():
            notices = self._catch_up()
            result = self._search().search(request)
            return SearchResult(result.query, result.hits, (*notices, *result.notices))
        return self._search_without_index(request)

    def recall(self, request: Request) -> RecallResult:
        with self._noticing_damage():
            notices = self._catch_up()
            found, more = self._search().recall(request)
            is_empty = not found and not int(self.index.get_state("units") or 0)
            return RecallResult(
                request.text, tuple(found), (*notices, *more), is_empty_index=is_empty
            )
        return RecallResult(request.text, (), (_DAMAGED_ALL,))

    def episodes(self, request: Request) -> EpisodeResult:
        with self._noticing_damage():
            notices = self._catch_up()
            episodes, more = self._search().find_episodes(request)
            return EpisodeResult(request.text, tuple(episodes), (*notices, *more))
        spoken = self._find_without_index(
            request, lambda message: message.role in (Role.USER, Role.ASSISTANT)
        )
        sessions = self._history.get_sessions({m.session_id for m in spoken})
        episodes = [
            Episode(
                sessions[message.session_id],
                message,
                *self._history.find_beside(message.session_id, message.position),
            )
            for message in spoken
        ]
        return EpisodeResult(request.text, tuple(episodes), (_DAMAGED,))

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        """Let the search go on without the index when it turns out to be damaged."""
        try:
            yield
        except StoreDamaged as exc:
            logger.info("%s", exc)
            self._mark_damage()

    def _mark_damage(self) -> None:
        """See to it that the index is made again, if need be by somebody else."""
        with suppress(OSError):
            (self.home / _DAMAGE_MARK).touch(mode=0o600)
        if self._start_worker is not None and self._may_start_worker():
            self._start_worker()

    def _search_without_index(self, request: Request) -> SearchResult:
        """Read all messages for the text as it stands: slow, and always possible."""
        query = parse_query(request.text, today=self._clock().astimezone().date())
        messages = self._find_without_index(request, lambda message: True)
        sessions = self._history.get_sessions({m.session_id for m in messages})
        hits = tuple(
            Hit(
                HitSource.MESSAGE,
                request.weights.of(HitSource.MESSAGE),
                Strength.STRONG,
                message.text,
                excerpt(message.text, query, max_chars=EXCERPT_CHARS),
                said=message.sent,
                role=message.role,
                session=sessions[message.session_id],
                message_id=message.message_id,
                position=message.position,
                project=sessions[message.session_id].project,
            )
            for message in messages
        )
        return SearchResult(request.text, hits, (_DAMAGED,))

    def _find_without_index(
        self, request: Request, where: Callable[[Message], bool]
    ) -> list[Message]:
        return self._history.find_text(
            fold(request.text.strip()),
            limit=request.limit,
            where=lambda message: request.keeps(message) and where(message),
            until=time.monotonic() + self._settings.number("search.timeout_seconds"),
        )

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

    # -- how things stand ---

    def status(self) -> IndexStatus:
        """How much is indexed and embedded; what is wrong, if anything is."""
        name = self._settings.text("embedder.name")
        try:
            counts = self.index.counts()
            with suppress(ProviderError, ConfigError):
                embedder = self.embedder
                if embedder is not None and not self.index.has_vectors_of(
                    embedder.fingerprint
                ):
                    # They are of another model, and no search uses them.
                    counts = replace(counts, embedded=0)
            return IndexStatus(
                units=counts.units,
                with_meaning=counts.with_meaning,
                embedded=counts.embedded,
                size_bytes=self.index.size_bytes(),
                embedder=name,
                is_behind=self._catalogue().is_behind(),
                problem=self.index.get_state(_FAILURE) or "",
            )
        except StoreProblem as exc:
            return IndexStatus(embedder=name, problem=str(exc))


_DAMAGED = (
    "the index is damaged, so only the exact text was looked for; "
    "run 'backstory rebuild'"
)
_DAMAGED_ALL = (
    "the index is damaged, so nothing could be searched; run 'backstory rebuild'"
)


def _remove_index(path: Path) -> None:
    """Delete an index that was not finished, with all its files."""
    _remove_database(path)
    for file in path.parent.glob(f"{path.stem}-*.text"):
        file.unlink(missing_ok=True)


def _remove_database(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
