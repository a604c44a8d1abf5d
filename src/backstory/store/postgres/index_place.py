"""Where a tenant's index and its cache of vectors are: in the tables of all tenants."""

from collections.abc import Callable

from backstory.errors import StoreProblem
from backstory.store.base.index import EmbeddingCache
from backstory.store.postgres.database import Tenant
from backstory.store.postgres.embeddings import PostgresEmbeddings
from backstory.store.postgres.index import PostgresIndex
from backstory.store.postgres.index_connection import delete_index, has_index

_NAME = "index"
_NEW_NAME = "new index"


class PostgresIndexPlace:
    """An ``IndexPlace`` of one tenant."""

    is_shared = True
    index_path = None

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    @property
    def name(self) -> str:
        return f"{self._tenant.database.server.name}: the index"

    def open_embeddings(self) -> PostgresEmbeddings:
        return PostgresEmbeddings(self._tenant)

    def open_index(self, embeddings: EmbeddingCache) -> PostgresIndex:
        return PostgresIndex(self._tenant, embeddings, name=_NAME)

    def has_index(self) -> bool:
        with self._tenant.reading() as db:
            return has_index(db, _NAME)

    def has_embeddings(self) -> bool:
        """Always True: the table is there, however little is in it."""
        return True

    def owns(self, problem: StoreProblem) -> bool:
        """Always False: what is wrong with a server, no rebuild can mend."""
        return False

    def repair_embeddings_if(
        self, problem: StoreProblem, close: Callable[[], None]
    ) -> bool:
        return False

    # -- replacing the index ---

    def make_new_index(self, embeddings: EmbeddingCache) -> PostgresIndex:
        self.remove_new_index()
        new = PostgresIndex(self._tenant, embeddings, name=_NEW_NAME)
        new.begin_alone()
        return new

    def has_new_index(self) -> bool:
        with self._tenant.reading() as db:
            return has_index(db, _NEW_NAME)

    def remove_new_index(self) -> None:
        self._delete(_NEW_NAME)

    def reset_index(self) -> None:
        self._delete(_NAME)

    def _delete(self, name: str) -> None:
        with self._tenant.writing_apart(is_durable=False) as db:
            delete_index(db, name)
