"""Where a home keeps its index and its cache of vectors, in any database.

Both can be made again from the history and the notes, so a damaged one is replaced.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from backstory.errors import StoreProblem
from backstory.store.base.index import EmbeddingCache, SearchIndex


class IndexPlace(Protocol):
    """Opens and replaces the index and the cache of one home."""

    @property
    def name(self) -> str:
        """What the index is called in a message for people."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other machines may use it as well."""
        ...

    @property
    def index_path(self) -> Path | None:
        """The file of the index, if it is a file."""
        ...

    def open_embeddings(self) -> EmbeddingCache:
        """The cache of vectors; a damaged one is replaced by an empty one."""
        ...

    def open_index(self, embeddings: EmbeddingCache) -> SearchIndex:
        """The index, made if there is none. Raises ``StoreProblem``."""
        ...

    def has_index(self) -> bool:
        """Whether there is an index, without making one."""
        ...

    def has_embeddings(self) -> bool:
        """Whether there is a cache of vectors, without making one."""
        ...

    def owns(self, problem: StoreProblem) -> bool:
        """Whether a problem is with the index or the cache, so that a rebuild helps."""
        ...

    def repair_embeddings_if(
        self, problem: StoreProblem, close: Callable[[], None]
    ) -> bool:
        """Repair the cache of vectors if the problem is with it, and return whether.

        ``close`` closes it and the index. Vectors that cannot be read are made again.
        """
        ...

    def make_new_index(self, embeddings: EmbeddingCache) -> SearchIndex:
        """An empty index beside the current one, for one builder at a time."""
        ...

    def has_new_index(self) -> bool:
        """Whether there is a new index, being built or left behind."""
        ...

    def remove_new_index(self) -> None:
        """Delete the new index, unless it has already replaced the current one."""
        ...

    def reset_index(self) -> None:
        """Replace the index with an empty one, whatever is wrong with it."""
        ...
