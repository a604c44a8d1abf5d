"""Search one memory in SQLite and in PostgreSQL, side by side.

    python -m bench.postgres 10000 [100000 ...]

Needs what ``make test-postgres`` installs. The memory is built in files, and moved to a
server on the same machine. Times are without embedding the query. The hits of both are
compared as well.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tests.postgres_server import OWNER, PostgresServer, running_server

from backstory.memory import Memory
from backstory.providers.embedders.base import Embedder
from backstory.store.postgres.tenants import TenantList
from bench import search
from bench.history import open_memory
from bench.measuring import seconds
from bench.search_corpus import NOW

SETS = 2

Hits = dict[str, list[str]]
Vector = NDArray[np.float32]


@dataclass
class KnownQueries:
    """An embedder that has embedded all queries already."""

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

    def get_ready(self) -> None:
        self.embedder.get_ready()

    def close(self) -> None:
        self.embedder.close()


def _open(server: PostgresServer, built: search.Built) -> Memory:
    """The memory of a tenant of its own."""
    name = f"{built.messages:,} messages"
    return open_memory(
        built.kept / "home",
        built.kept / "postgres",
        settings=[
            "embedder.name=minilm",
            f"store.url={server.url()}",
            f"store.tenant={name}",
        ],
        clock=lambda: NOW,
    )


def _move(server: PostgresServer, built: search.Built) -> None:
    TenantList(server.url(OWNER)).create(f"{built.messages:,} messages")
    with search.open_built(built) as memory, _open(server, built) as copy:
        took = seconds(lambda: memory.move_to(copy))
        print(f"moved and indexed: {built.messages / took:,.0f} messages/s")
        took = seconds(copy.rebuild)
        print(f"indexed, with known vectors: {built.messages / took:,.0f} messages/s")
        took = seconds(memory.rebuild)
        print(f"  the same in SQLite: {built.messages / took:,.0f} messages/s")
    server.ask("VACUUM ANALYZE", name="memory")


def _search(memory: Memory, vectors: dict[str, Vector]) -> tuple[list[float], Hits]:
    """How long each query takes, and what it finds."""
    files = memory._parts.index_files
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
            _move(server, built)
            vectors: dict[str, Vector] = {}
            with search.open_built(built) as memory:
                _search(memory, vectors)
            with _open(server, built) as memory:
                in_postgres, found = _search(memory, vectors)
            with search.open_built(built) as memory:
                in_sqlite, expected = _search(memory, vectors)
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
