"""Histories on PostgreSQL for the suites that every store passes: a tenant for each."""

from backstory.store.base.history import HistoryStore
from backstory.store.base.summaries import SummaryStore
from backstory.store.postgres.database import Database
from backstory.store.postgres.history import PostgresHistory
from backstory.store.postgres.summaries import PostgresSummaryStore
from tests.postgres_server import PostgresServer


class PostgresStores:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._database = Database(server.url())

    def make_history(self) -> HistoryStore:
        return PostgresHistory(self._database.tenant(self._server.create_tenant()))

    def open_summaries(self, history: HistoryStore) -> SummaryStore:
        assert isinstance(history, PostgresHistory)
        return PostgresSummaryStore(history.tenant)

    def find_in_files(self, history: HistoryStore, needle: bytes) -> list[str]:
        return self._server.find_in_files(needle)

    @property
    def can_erase(self) -> bool:
        # Before, only the owner of a table may.
        return self._server.version >= 17

    def close(self) -> None:
        self._database.close()
