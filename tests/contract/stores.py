"""The histories there are, each with the summaries beside it: a new one is a row here.

The suites make as many as they need, and see of them what the promises say.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from backstory.store.base.history import HistoryStore
from backstory.store.base.summaries import SummaryStore
from backstory.store.sqlite.history import SqliteHistory
from backstory.store.sqlite.summaries import SqliteSummaryStore


class Stores(Protocol):
    """Makes stores of one kind, all of them new and empty."""

    def make_history(self) -> HistoryStore: ...

    def open_summaries(self, history: HistoryStore) -> SummaryStore:
        """The summaries that belong to a history."""
        ...

    def find_in_files(self, history: HistoryStore, needle: bytes) -> list[str]:
        """The files that a history is kept in and that contain some bytes."""
        ...

    @property
    def can_erase(self) -> bool:
        """Whether the store itself may erase what was deleted from its files."""
        ...


class SqliteStores:
    can_erase = True

    def __init__(self, make_folder: Callable[[], Path]) -> None:
        self._make_folder = make_folder

    def make_history(self) -> HistoryStore:
        return SqliteHistory(self._make_folder() / "history.db")

    def open_summaries(self, history: HistoryStore) -> SummaryStore:
        assert isinstance(history, SqliteHistory)
        return SqliteSummaryStore(history.path)

    def find_in_files(self, history: HistoryStore, needle: bytes) -> list[str]:
        assert isinstance(history, SqliteHistory)
        files = history.path.parent.iterdir()
        return [file.name for file in files if needle in file.read_bytes()]


@contextmanager
def sqlite_stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    yield SqliteStores(lambda: factory.mktemp("store"))


@contextmanager
def postgres_stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    # Slow to import, and most runs of the tests do not need it.
    from tests.store.postgres.stores import PostgresStores

    stores = PostgresStores(request.getfixturevalue("postgres"))
    yield stores
    stores.close()


STORES = [
    pytest.param(sqlite_stores, id="sqlite"),
    pytest.param(postgres_stores, id="postgres", marks=pytest.mark.postgres),
]
