"""The files that a home's index and its cache of vectors are in."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from backstory.errors import StoreDamaged, StoreProblem, StoreTooNew
from backstory.store.base.index import EmbeddingCache
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.index import SqliteIndex
from backstory.system.locks import locked
from backstory.system.loggers import lazy_logger

logger = lazy_logger(__name__)

INDEX_NAME = "index.db"
EMBEDDINGS_NAME = "embeddings.db"
_NEW_NAME = "new-index.db"
_REPAIR_LOCK = "repair.lock"


class SqliteIndexFiles:
    """An ``IndexPlace`` in the folder of a home."""

    is_shared = False

    def __init__(self, home: Path) -> None:
        self._home = home
        self.index_path = home / INDEX_NAME
        self._embeddings_path = home / EMBEDDINGS_NAME
        self._new_path = home / _NEW_NAME

    @property
    def name(self) -> str:
        return str(self.index_path)

    def open_embeddings(self) -> EmbeddingCache:
        embeddings = SqliteEmbeddings(self._embeddings_path)
        if not self.has_embeddings():
            return embeddings
        try:
            _ = embeddings.identity
        except StoreDamaged as exc:
            self.repair_embeddings_if(exc, embeddings.close)
            return SqliteEmbeddings(self._embeddings_path)
        except StoreProblem as exc:
            # Raised again when a vector is needed; search by words works without.
            logger.info("%s", exc)
        return embeddings

    def open_index(self, embeddings: EmbeddingCache) -> SqliteIndex:
        return SqliteIndex(self.index_path, embeddings)

    def has_index(self) -> bool:
        return self.index_path.exists()

    def has_embeddings(self) -> bool:
        return self._embeddings_path.exists()

    def owns(self, problem: StoreProblem) -> bool:
        path = problem.path
        return path is not None and path.name.startswith(("index", "embeddings"))

    def repair_embeddings_if(
        self, problem: StoreProblem, close: Callable[[], None]
    ) -> bool:
        if problem.path != self._embeddings_path:
            return False
        logger.info("%s; vectors that cannot be read will be made again", problem)
        close()
        if isinstance(problem, StoreTooNew):
            with locked(self._home / _REPAIR_LOCK):
                _remove_database(self._embeddings_path)
        else:
            repair_embeddings(self._home)
        return True

    # -- replacing the index ---

    def make_new_index(self, embeddings: EmbeddingCache) -> SqliteIndex:
        self.remove_new_index()
        return SqliteIndex(self._new_path, embeddings)

    def has_new_index(self) -> bool:
        return any(self._home.glob(f"{self._new_path.stem}*"))

    def remove_new_index(self) -> None:
        _remove_database(self._new_path)
        for file in self._home.glob(f"{self._new_path.stem}-*.text"):
            file.unlink(missing_ok=True)

    def reset_index(self) -> None:
        SqliteIndex.reset(self.index_path)


def repair_embeddings(home: Path) -> None:
    """Repair the cache of vectors; those that cannot be read are left out."""
    with locked(home / _REPAIR_LOCK):
        SqliteEmbeddings.repair(home / EMBEDDINGS_NAME)


def _remove_database(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        with suppress(OSError):
            path.with_name(name).unlink()
