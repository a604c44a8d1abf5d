"""A history, summaries and an index of every kind there is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex
from tests.contract.indexes import INDEXES, OpenIndex
from tests.contract.stores import STORES, Stores
from tests.index_builders import close_index


@pytest.fixture(scope="session", params=STORES)
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    """Makes stores; for the whole session, as one law makes many."""
    with request.param(request) as made:
        yield made


@pytest.fixture
def store(stores: Stores) -> Iterator[HistoryStore]:
    """An empty history."""
    opened = stores.make_history()
    yield opened
    opened.close()


@pytest.fixture(scope="session", params=INDEXES)
def make(request: pytest.FixtureRequest) -> OpenIndex:
    """Opens indexes in any folder; for the whole session, as one law makes many."""
    opener: OpenIndex = request.param(request)
    return opener


@pytest.fixture
def open_index(make: OpenIndex, tmp_path: Path) -> Iterator[OpenIndex]:
    """Opens the same index once more with each call, or one of another name."""
    opened: list[SearchIndex] = []

    def open_once_more(*names: str, **more: str) -> SearchIndex:
        opened.append(make(tmp_path, *names, **more))
        return opened[-1]

    yield open_once_more
    for each in opened:
        close_index(each)


@pytest.fixture
def index(open_index: OpenIndex) -> SearchIndex:
    return open_index()
