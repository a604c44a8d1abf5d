"""The derived files of one home, and the embedder: opened when they are first needed.

They can all be made again from the history and the notes, so a damaged file is deleted,
or left for a rebuild to replace.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from backstory.errors import StoreDamaged, StoreProblem, StoreTooNew
from backstory.providers.embedders.base import Embedder
from backstory.store.base.index import EmbeddingCache, SearchIndex
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.index import SqliteIndex
from backstory.system.fork_safety import block_forks, reset_in_child
from backstory.system.locks import locked

logger = logging.getLogger(__name__)

INDEX_NAME = "index.db"
EMBEDDINGS_NAME = "embeddings.db"
_NEW_NAME = "new-index.db"
_REPAIR_LOCK = "repair.lock"


class IndexFiles:
    """The index, the cache of vectors and the embedder of one home."""

    def __init__(
        self, home: Path, load_embedder: Callable[[], Embedder | None]
    ) -> None:
        self.home = home
        self._load_embedder = load_embedder
        self._embeddings: EmbeddingCache | None = None
        self._index: SearchIndex | None = None
        self._embedder: Embedder | None = None
        self._has_embedder = False
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start with a lock of its own in a forked child."""
        self._lock = threading.RLock()

    # -- opening ---

    @property
    def index(self) -> SearchIndex:
        """The index. Raises ``StoreProblem`` if it cannot be opened."""
        with block_forks(), self._lock:
            if self._index is None:
                self._index = SqliteIndex(self.home / INDEX_NAME, self.embeddings)
            return self._index

    @property
    def embeddings(self) -> EmbeddingCache:
        """The cache of vectors; a damaged one is replaced by an empty one."""
        with block_forks(), self._lock:
            if self._embeddings is None:
                self._embeddings = SqliteEmbeddings(self.home / EMBEDDINGS_NAME)
                if self.has_embeddings():
                    self._embeddings = self._replace_if_damaged(self._embeddings)
            return self._embeddings

    def _replace_if_damaged(self, embeddings: EmbeddingCache) -> EmbeddingCache:
        try:
            _ = embeddings.identity
        except StoreDamaged as exc:
            self.repair_embeddings_if(exc)
            return SqliteEmbeddings(self.home / EMBEDDINGS_NAME)
        except StoreProblem as exc:
            # Raised again when a vector is needed; search by words works without.
            logger.info("%s", exc)
        return embeddings

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors; None if it is turned off.

        Raises ``ProviderError``, or ``ConfigError`` if its settings cannot work.
        """
        with block_forks(), self._lock:
            if not self._has_embedder:
                self._embedder = self._load_embedder()
                self._has_embedder = True
            return self._embedder

    @embedder.setter
    def embedder(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._has_embedder = True

    def close(self) -> None:
        self.close_files()
        if self._embedder is not None:
            self._embedder.close()

    def close_files(self) -> None:
        """Close the files; the next use opens them again."""
        with self._lock:
            for opened in (self._index, self._embeddings):
                if opened is not None:
                    opened.close()
            self._index = self._embeddings = None

    # -- replacing ---

    def owns(self, path: Path | None) -> bool:
        """Whether ``path`` is one of the derived files."""
        return path is not None and path.name.startswith(("index", "embeddings"))

    def has_index(self) -> bool:
        return (self.home / INDEX_NAME).exists()

    def has_embeddings(self) -> bool:
        return (self.home / EMBEDDINGS_NAME).exists()

    def repair_embeddings_if(self, problem: StoreProblem) -> bool:
        """Repair the cache of vectors if the problem is with it; returns whether.

        Vectors that cannot be read are made again; only time is lost.
        """
        path = self.home / EMBEDDINGS_NAME
        if problem.path != path:
            return False
        logger.info("%s; vectors that cannot be read will be made again", problem)
        self.close_files()
        if isinstance(problem, StoreTooNew):
            with locked(self.home / _REPAIR_LOCK):
                _remove_database(path)
        else:
            repair_embeddings(self.home)
        return True

    def make_new_index(self) -> SearchIndex:
        """An empty index beside the current one."""
        self.remove_new_index()
        return SqliteIndex(self.home / _NEW_NAME, self.embeddings)

    def put_in_place(self, new: SearchIndex) -> None:
        """Replace the current index with a new one."""
        try:
            self.index.replace_with(new)
        except (StoreDamaged, StoreTooNew):
            # Not even the first page of the old one can be read, or its tables are
            # those of a newer version.
            with self._lock:
                if self._index is not None:
                    self._index.close()
                self._index = None
            SqliteIndex.reset(self.home / INDEX_NAME)
            self.index.replace_with(new)

    def has_new_index(self) -> bool:
        return any(self.home.glob(f"{Path(_NEW_NAME).stem}*"))

    def remove_new_index(self) -> None:
        """Delete an unfinished index with all its files."""
        path = self.home / _NEW_NAME
        _remove_database(path)
        for file in path.parent.glob(f"{path.stem}-*.text"):
            file.unlink(missing_ok=True)


def repair_embeddings(home: Path) -> None:
    """Correct the cache of vectors; those that cannot be read are left out of it."""
    with locked(home / _REPAIR_LOCK):
        SqliteEmbeddings.repair(home / EMBEDDINGS_NAME)


def _remove_database(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        with suppress(OSError):
            path.with_name(name).unlink()
