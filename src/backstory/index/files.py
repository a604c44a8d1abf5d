"""The index of one home, its cache of vectors and the embedder, opened when needed."""

import threading
from collections.abc import Callable
from pathlib import Path

from backstory.errors import StoreDamaged, StoreProblem, StoreTooNew
from backstory.providers.embedders.base import Embedder
from backstory.store.base.index import EmbeddingCache, SearchIndex
from backstory.store.base.index_place import IndexPlace
from backstory.system.fork_safety import block_forks, reset_in_child


class IndexFiles:
    """The index, the cache of vectors and the embedder of one home."""

    def __init__(
        self,
        home: Path,
        place: IndexPlace,
        load_embedder: Callable[[], Embedder | None],
    ) -> None:
        self.home = home
        self.place = place
        self._load_embedder = load_embedder
        self._embeddings: EmbeddingCache | None = None
        self._index: SearchIndex | None = None
        self._embedder: Embedder | None = None
        self._has_embedder = False
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Use a new lock in a forked child."""
        self._lock = threading.RLock()

    # -- opening ---

    @property
    def index(self) -> SearchIndex:
        """The index. Raises ``StoreProblem`` if it cannot be opened."""
        with block_forks(), self._lock:
            if self._index is None:
                self._index = self.place.open_index(self.embeddings)
            return self._index

    @property
    def embeddings(self) -> EmbeddingCache:
        """The cache of vectors; a damaged one is replaced by an empty one."""
        with block_forks(), self._lock:
            if self._embeddings is None:
                self._embeddings = self.place.open_embeddings()
            return self._embeddings

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
        """Close the index and the cache; the next use opens them again."""
        with self._lock:
            for opened in (self._index, self._embeddings):
                if opened is not None:
                    opened.close()
            self._index = self._embeddings = None

    # -- replacing ---

    def repair_embeddings_if(self, problem: StoreProblem) -> bool:
        """Repair the cache of vectors if it has the problem; returns whether it does.

        Vectors that cannot be read are made again; only time is lost.
        """
        return self.place.repair_embeddings_if(problem, self.close_files)

    def make_new_index(self) -> SearchIndex:
        """An empty index beside the current one."""
        return self.place.make_new_index(self.embeddings)

    def put_in_place(self, new: SearchIndex) -> None:
        """Replace the current index with a new one."""
        try:
            self.index.replace_with(new)
        except (StoreDamaged, StoreTooNew):
            # Not even the first page of the old one can be read, or its tables were
            # made by a newer version.
            with self._lock:
                if self._index is not None:
                    self._index.close()
                self._index = None
            self.place.reset_index()
            self.index.replace_with(new)
