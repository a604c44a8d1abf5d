"""Search one history with the index in SQLite and in PostgreSQL, beside each other.

    python -m bench.postgres 10000 [100000 ...]

Needs what ``make test-postgres`` installs. Times are without embedding the query, with
a server on the same machine. The hits of both are compared as well.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tests.postgres_server import PostgresServer, running_server

from backstory.index.build import IndexBuilder
from backstory.index.vectors import VectorBuilder
from backstory.memory import Memory
from backstory.providers.embedders.base import Embedder
from backstory.store.base.index import SearchIndex
from backstory.store.postgres.database import Database
from backstory.store.postgres.embeddings import PostgresEmbeddings
from backstory.store.postgres.index import PostgresIndex
from backstory.store.sqlite.history import SqliteHistory
from bench import search
from bench.measuring import seconds
from bench.search_corpus import NOW

SETS = 2

Hits = dict[str, list[str]]
Vector = NDArray[np.float32]


@dataclass
class KnownQueries:
    """An embedder that has embedded all queries before."""

    embedder: Embedder
    vectors: dict[str, Vector]

    @property
    def fingerprint(self) -> str:
        return self.embedder.fingerprint

    def embed_query(self, text: str) -> Vector:
        if text not in self.vectors:
            self.vectors[text] = self.embedder.embed_query(text)
        return self.vectors[text]

    def embed_texts(self, texts: Sequence[str]) -> Vector:
        return self.embedder.embed_texts(texts)

    def can_read(self, text: str) -> bool:
        return self.embedder.can_read(text)

    def close(self) -> None:
        self.embedder.close()


def _build(server: PostgresServer, built: search.Built) -> PostgresIndex:
    """The same index in PostgreSQL, with the vectors that SQLite has."""
    tenant = Database(server.url()).tenant(server.create_tenant())
    index = PostgresIndex(tenant, PostgresEmbeddings(tenant))
    history = SqliteHistory(built.kept / "history.db")
    took = seconds(lambda: IndexBuilder(history, index, lambda: NOW).catch_up())
    print(f"indexed: {built.messages / took:,.0f} messages/s")
    with search.open_built(built) as memory:
        _copy_vectors(memory, index)
        embedder = memory._parts.index_files.embedder
        assert embedder is not None
        took = seconds(lambda: VectorBuilder(history, index, embedder).run())
    print(f"vectors from the cache: {built.messages / took:,.0f} messages/s")
    history.close()
    print(f"counts: {index.counts()}, {index.size_bytes() / 1e6:,.0f} MB")
    server.ask("VACUUM ANALYZE", name="memory")
    return index


def _copy_vectors(memory: Memory, index: PostgresIndex) -> None:
    cache = memory._parts.index_files.embeddings
    embedder = memory._parts.index_files.embedder
    assert embedder is not None
    numbers = cache.find(embedder.fingerprint, cache.list_hashes())
    keys = list(numbers)
    for first in range(0, len(keys), 5_000):
        some = {key: numbers[key] for key in keys[first : first + 5_000]}
        stored = cache.read(list(some.values()))
        index.embeddings.add(
            embedder.fingerprint,
            {key: index.to_vector(stored[number]) for key, number in some.items()},
        )


def _search(
    built: search.Built, index: SearchIndex | None, vectors: dict[str, Vector]
) -> tuple[list[float], Hits]:
    """How long each query takes, and what it finds, in SQLite or another index."""
    with search.open_built(built) as memory:
        files = memory._parts.index_files
        if index is not None:
            files._index, files._embeddings = index, index.embeddings
        assert files.embedder is not None
        files.embedder = KnownQueries(files.embedder, vectors)
        for query in search.queries():
            memory.search(f"{query.text} before")
        times, found = [], {}
        for query in search.new_queries(SETS):
            times.append(
                1_000
                * seconds(
                    lambda text=query.text: found.update(  # type: ignore[misc]
                        {text: [hit.text for hit in memory.search(text).hits]}
                    )
                )
            )
    return times, found


def _print(name: str, times: Sequence[float]) -> None:
    p50, p95 = np.percentile(times, 50), np.percentile(times, 95)
    print(f"{name}: p50 {p50:.1f}, p95 {p95:.1f} ms")
    asked = search.new_queries(SETS)
    kinds = {query.kind for query in asked}
    for kind in sorted(kinds):
        some = [t for query, t in zip(asked, times, strict=True) if query.kind == kind]
        print(
            f"  {kind}: {np.percentile(some, 50):.1f} / {np.percentile(some, 95):.1f}"
        )


def main(sizes: Sequence[int]) -> None:
    with running_server() as server:
        for size in sizes:
            print(f"\n{size:,} messages")
            built = search.build(size)
            index = _build(server, built)
            vectors: dict[str, Vector] = {}
            _search(built, None, vectors)
            in_postgres, found = _search(built, index, vectors)
            in_sqlite, expected = _search(built, None, vectors)
            _print("PostgreSQL", in_postgres)
            _print("SQLite", in_sqlite)
            same = sum(found[text] == hits for text, hits in expected.items())
            alike = sum(
                len({*found[text]} & {*hits}) for text, hits in expected.items()
            )
            total = sum(map(len, expected.values()))
            print(
                f"{same} of {len(expected)} queries have the same hits in the same "
                f"order; {alike} of {total} hits are the same"
            )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10_000])
