"""The search indexes there are: a new one is one more row here."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backstory.store.base.index import SearchIndex
from tests.index_builders import an_index

if TYPE_CHECKING:
    from tests.postgres_server import PostgresServer

OpenIndex = Callable[..., SearchIndex]
# Given a fixture by its name, makes what opens an index.
MakeOpener = Callable[[pytest.FixtureRequest], OpenIndex]


def sqlite_opener(request: pytest.FixtureRequest) -> OpenIndex:
    return an_index


def postgres_opener(request: pytest.FixtureRequest) -> OpenIndex:
    # Slow to import, and most runs of the tests do not need it.
    from tests.store.postgres.indexes import PostgresIndexes

    server: PostgresServer = request.getfixturevalue("postgres")
    indexes = PostgresIndexes(server)
    request.addfinalizer(indexes.close)

    def open_index(
        folder: Path, name: str = "index", *, cache: str = "embeddings"
    ) -> SearchIndex:
        return indexes.open(folder, name, cache=cache)

    return open_index


def large_postgres_opener(request: pytest.FixtureRequest) -> OpenIndex:
    """Indexes that keep the signs of their vectors in memory, as large ones do."""
    from backstory.store.postgres.index import PostgresIndex

    open_usual = postgres_opener(request)

    def open_index(*where: object, **more: str) -> SearchIndex:
        index = open_usual(*where, **more)
        assert isinstance(index, PostgresIndex)
        index._vectors.few = 0
        index._vectors.searches_before_keeping = 0
        return index

    return open_index


# Each opens the index of that name in a folder, and its cache of vectors.
INDEXES = [
    pytest.param(sqlite_opener, id="sqlite"),
    pytest.param(postgres_opener, id="postgres", marks=pytest.mark.postgres),
]
# Those, and those that find vectors in another way.
VECTOR_INDEXES = [
    *INDEXES,
    pytest.param(
        large_postgres_opener, id="large postgres", marks=pytest.mark.postgres
    ),
]
