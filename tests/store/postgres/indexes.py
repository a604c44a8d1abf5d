"""Indexes on PostgreSQL for the suites that every index passes."""

from pathlib import Path

from backstory.store.postgres.database import Database
from backstory.store.postgres.embeddings import PostgresEmbeddings
from backstory.store.postgres.index import PostgresIndex
from tests.postgres_server import PostgresServer


class PostgresIndexes:
    """Opens indexes by folder and name: a file there says which tenant it is."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._database = Database(server.url())

    def open(self, folder: Path, name: str, *, cache: str) -> PostgresIndex:
        note = folder / "tenant"
        if not note.exists():
            note.write_text(str(self._server.create_tenant()), encoding="utf-8")
        tenant = self._database.tenant(int(note.read_text(encoding="utf-8")))
        return PostgresIndex(tenant, PostgresEmbeddings(tenant, cache), name=name)

    def close(self) -> None:
        self._database.close()
