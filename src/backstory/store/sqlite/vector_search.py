"""Find units by meaning. numpy is loaded only with the first search that needs it."""

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

import apsw

from backstory.store.base.index import BestPassage, EmbeddingCache, UnitFilter
from backstory.store.sqlite import units
from backstory.store.sqlite.index_connection import IndexConnection
from backstory.system.fork_safety import block_forks, reset_in_child

if TYPE_CHECKING:
    from backstory.store.base.index import Vector
    from backstory.store.sqlite.vectors import VectorPages


class VectorSearch:
    """Finds the units whose vectors are nearest."""

    def __init__(self, connection: IndexConnection, embeddings: EmbeddingCache) -> None:
        self._connection = connection
        self._embeddings = embeddings
        self._pages: VectorPages | None = None
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()

    @property
    def pages(self) -> "VectorPages":
        if self._pages is None:
            # A module that is half loaded at a fork would stay half loaded in the
            # child.
            with block_forks(), self._lock:
                if self._pages is None:
                    # numpy takes longer to load than a search by words takes.
                    from backstory.store.sqlite.vectors import VectorPages

                    self._pages = VectorPages(self._embeddings)
        return self._pages

    def name_vectors(self, fingerprint: str) -> str:
        """A name for a model's vectors with their numbers in this cache."""
        return f"{fingerprint} {self._embeddings.identity}"

    @staticmethod
    def parse_name(name: str) -> str:
        """The fingerprint of the model in such a name."""
        return name.rpartition(" ")[0]

    def read_pages(self) -> None:
        """Read the pages that are new or changed."""
        with self._connection.reading() as db:
            self.pages.refresh(db)

    def find_nearest(
        self, vector: "Vector", where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        with self._connection.reading() as db:
            self.pages.refresh(db)
            return self.pages.nearest(vector, where, limit)

    def find_cosines(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, float]:
        with self._connection.reading() as db:
            return self.pages.cosines(vector, units.find_embedding_ids(db, unit_ids))

    def find_best_passages(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, BestPassage]:
        with self._connection.reading() as db:
            numbers = units.find_embedding_ids(db, unit_ids, table="passages")
        return self.pages.best_passages(vector, numbers) if numbers else {}

    def verify(self, db: apsw.Connection) -> list[str]:
        """Check that the vectors are where the units say."""
        slots = db.execute("SELECT COUNT(slot) FROM units").get
        if not slots and not db.execute("SELECT 1 FROM vector_pages LIMIT 1").get:
            return []
        return self.pages.verify(db)
