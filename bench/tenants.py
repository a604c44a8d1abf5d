"""Many tenants in one PostgreSQL database: how fast they read, index and search.

    python -m bench.tenants [--share 0.05]

Needs what ``make test-postgres`` installs. The database has 1,000 tenants with ten
million messages: eight with a million, eleven with 100,000 and 981 with 1,000. Only one
of each size is filled as reading and indexing do. The others are copies that the
superuser makes inside the database: all rows of such a tenant, under another number.
So tenants of a size have the same texts, but each has its own rows, pages and caches.

The database is on disk, with the usual safety while it is measured, and its server is
on this machine. All takes about an hour of two cores, and 60 GB of disk while it runs;
``--share`` makes all but the smallest tenants smaller, and these fewer.

Times of searches are without embedding the query; SQLite is measured as well.
"""

import argparse
import gc
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from tests.postgres_server import ADMIN, OWNER, PostgresServer, running_server

from backstory.database import add_tenant
from backstory.index.build import IndexBuilder
from backstory.index.vectors import VectorBuilder
from backstory.memory import Memory
from backstory.store.base.history import Batch, KeptMessage
from bench import search
from bench.history import open_memory
from bench.measuring import seconds
from bench.postgres import KnownQueries, Vector
from bench.search_corpus import NOW, SearchCorpus

LARGE, MEDIUM, SMALL = 1_000_000, 100_000, 1_000
LARGE_TENANTS, MEDIUM_TENANTS, SMALL_TENANTS = 8, 11, 981
CLIENTS = 50
# The clients are shared out among this many processes, because each has one GIL.
CLIENT_PROCESSES = 5
CLIENT_S = 30.0
_START_S = 300.0
QUERIES = 100
_BATCH = 5_000
# Their rows belong to nobody else, or to no tenant's memory.
_NOT_COPIED = ("tenants", "access_tokens")
# A fork would copy locks that other threads hold.
_CONTEXT = get_context("spawn")
OPTIONS = (
    "shared_buffers=2GB",
    "maintenance_work_mem=1GB",
    "max_wal_size=4GB",
    "max_connections=400",
    "logging_collector=off",
)


@dataclass(frozen=True)
class Name:
    """A tenant, and how many messages it has."""

    name: str
    messages: int


@dataclass(frozen=True)
class Took:
    """How many seconds each part of building a tenant took."""

    history: float
    words: float
    vectors: float


# -- building -------------------------------------------------------------------------


@contextmanager
def open_tenant(url: str, name: str) -> Iterator[Memory]:
    settings = [f"store.url={url}", f"store.tenant={name}", "embedder.name=minilm"]
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        home = Path(folder)
        memory = open_memory(home, home, settings=settings, clock=lambda: NOW)
        with memory:
            yield memory


def build(url: str, tenant: Name) -> Took:
    """Fill a tenant like reading and indexing do, with made-up vectors."""
    # As the command line has it: see cli/__init__.py.
    gc.set_threshold(100_000)
    with open_tenant(url, tenant.name) as memory:
        # Any: the parts of a memory are not public.
        parts: Any = memory._parts
        index = parts.index_files.index
        wrote = seconds(lambda: _write(parts.history, tenant.messages))
        indexed = seconds(
            lambda: IndexBuilder(parts.history, index, lambda: NOW).catch_up()
        )

        def add_vectors() -> None:
            search.make_vectors(index)
            search.make_passages(parts.history, index)
            VectorBuilder(parts.history, index, parts.index_files.embedder).run()

        return Took(wrote, indexed, seconds(add_vectors))


# Any: a history of either store.
def _write(history: Any, messages: int) -> None:
    batches: dict[str, Batch] = {}
    for session in SearchCorpus().iter_sessions(messages):
        batch = batches.setdefault(session.host, Batch(session.host))
        batch.facts.append(session.facts)
        batch.messages += [KeptMessage(message) for message in session.messages]
        if len(batch.messages) >= _BATCH:
            history.write(batches.pop(session.host), now=NOW)
    for batch in batches.values():
        history.write(batch, now=NOW)


def _print_built(tenant: Name, took: Took) -> None:
    whole = took.history + took.words
    print(
        f"{tenant.messages:,} messages: history {tenant.messages / took.history:,.0f}/s"
        f", words {tenant.messages / took.words:,.0f}/s, both "
        f"{tenant.messages / whole:,.0f}/s; vectors that are made already "
        f"{tenant.messages / took.vectors:,.0f}/s",
        flush=True,
    )


# -- copying --------------------------------------------------------------------------


@contextmanager
def _cheap_writing(server: PostgresServer) -> Iterator[None]:
    """Have pages that are written for the first time not logged as a whole."""
    for value in ("off", "on"):
        server.ask(f"ALTER SYSTEM SET full_page_writes TO {value}")
        server.ask("SELECT pg_reload_conf()")
        if value == "off":
            yield
    server.ask("CHECKPOINT")


def copy_tenant(server: PostgresServer, name: str, copies: Sequence[str]) -> None:
    """Make tenants with the same rows as the one of that name."""
    with psycopg.connect(server.url(ADMIN, "memory")) as db:
        # No triggers: what they would write is copied. And rows are copied in the order
        # in which they are on disk, not in that of their keys.
        for setting in (
            "session_replication_role TO replica",
            "search_path TO backstory",
            "enable_seqscan TO off",
            "enable_indexscan TO off",
        ):
            db.execute(f"SET {setting}".encode())
        tables = db.execute(
            """
            SELECT relname, string_agg(quote_ident(attname), ', ')
              FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
             WHERE relnamespace = 'backstory'::regnamespace AND relkind = 'r'
               AND attnum > 0 AND NOT attisdropped AND relname <> ALL(%s)
             GROUP BY relname
            HAVING bool_or(attname = 'tenant_id')
            """,
            (list(_NOT_COPIED),),
        ).fetchall()
        row = db.execute("SELECT find_tenant(%s)", (name,)).fetchone()
        assert row is not None
        for copy in copies:
            made = db.execute(
                "INSERT INTO tenants (name) VALUES (%s) RETURNING tenant_id", (copy,)
            ).fetchone()
            assert made is not None
            for table, columns in tables:
                values = columns.replace("tenant_id", str(made[0]))
                db.execute(
                    f"""
                    INSERT INTO {table} ({columns})
                    SELECT {values} FROM {table} WHERE tenant_id = {row[0]}
                    """.encode()
                )
            db.commit()


def _copy_all(
    server: PostgresServer, copies: Sequence[tuple[Name, Sequence[Name]]]
) -> None:
    """Copy tenants, two at a time."""
    shares = [
        (tenant.name, [each.name for each in some[first::2]])
        for tenant, some in copies
        for first in (0, 1)
    ]
    with _cheap_writing(server), ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda share: copy_tenant(server, *share), shares))
        server.ask("VACUUM ANALYZE", name="memory")


# -- searching ------------------------------------------------------------------------


def time_searches(memory: Memory, vectors: dict[str, Vector]) -> list[float]:
    """How many milliseconds each new query takes in a memory that has searched."""
    files = memory._parts.index_files
    assert files.embedder is not None
    files.embedder = KnownQueries(files.embedder, vectors)
    asked = [each.text for each in islice(search.new_queries(2), QUERIES)]
    for text in asked:
        files.embedder.embed_query(text)
    for query in search.queries():
        memory.search(f"{query.text} before")
    return [1_000 * seconds(partial(memory.search, text)) for text in asked]


def measure(url: str, tenant: Name, vectors: dict[str, Vector]) -> list[float]:
    with open_tenant(url, tenant.name) as memory:
        times = time_searches(memory, vectors)
    _print_times(f"PostgreSQL, {tenant.messages:,} messages", times)
    return times


def _measure_sqlite(messages: int, vectors: dict[str, Vector]) -> None:
    with search.open_built(search.build(messages)) as memory:
        times = time_searches(memory, vectors)
    _print_times(f"SQLite, {messages:,} messages", times)


def _print_times(name: str, times: Sequence[float]) -> None:
    p50, p95 = np.percentile(times, [50, 95])
    print(f"{name}: p50 {p50:.1f}, p95 {p95:.1f} ms", flush=True)


# -- many clients ---------------------------------------------------------------------


def search_for_a_while(
    url: str, names: Sequence[str], vectors: dict[str, Vector]
) -> list[float]:
    """Search in several tenants at once, each from a thread of its own."""
    start = threading.Barrier(len(names), timeout=_START_S)
    asked = [each.text for each in search.new_queries(2)][:QUERIES]
    until = 0.0

    def ask(name: str) -> list[float]:
        nonlocal until
        with open_tenant(url, name) as memory:
            files = memory._parts.index_files
            assert files.embedder is not None
            files.embedder = KnownQueries(files.embedder, vectors)
            memory.search(asked[0])
            start.wait()
            until = time.monotonic() + CLIENT_S
            times: list[float] = []
            while time.monotonic() < until:
                text = asked[len(times) % len(asked)]
                times.append(1_000 * seconds(partial(memory.search, text)))
            return times

    with ThreadPoolExecutor(len(names)) as pool:
        return [each for times in pool.map(ask, names) for each in times]


def _measure_clients(
    url: str, tenants: Sequence[Name], vectors: dict[str, Vector]
) -> None:
    names = [tenants[place % len(tenants)].name for place in range(CLIENTS)]
    shares = [names[first::CLIENT_PROCESSES] for first in range(CLIENT_PROCESSES)]
    with ProcessPoolExecutor(CLIENT_PROCESSES, mp_context=_CONTEXT) as pool:
        ask = partial(search_for_a_while, url, vectors=vectors)
        took = pool.map(ask, shares)
        times = [each for some in took for each in some]
    print(f"{CLIENTS} clients: {len(times) / CLIENT_S:,.0f} searches/s")
    _print_times(f"{CLIENTS} clients", times)


# -- all of it ------------------------------------------------------------------------


def _build_one(server: PostgresServer, tenant: Name) -> None:
    add_tenant(server.url(OWNER), tenant.name)
    with ProcessPoolExecutor(1, mp_context=_CONTEXT) as pool:
        _print_built(tenant, pool.submit(build, server.url(), tenant).result())
    server.ask("VACUUM ANALYZE", name="memory")


def _print_size(server: PostgresServer, tenants: Sequence[Name]) -> None:
    ((size,),) = server.ask("SELECT pg_database_size('memory')")
    total = sum(each.messages for each in tenants)
    print(
        f"\n{total:,} messages of {len(tenants):,} tenants, {size / 1e9:.1f} GB",
        flush=True,
    )


def main(share: float) -> None:
    sizes = {
        Name("small", SMALL): round(SMALL_TENANTS * share),
        Name("medium", round(MEDIUM * share)): MEDIUM_TENANTS,
        Name("large", round(LARGE * share)): LARGE_TENANTS,
    }
    copies = [
        (
            first,
            [Name(f"{first.name} {n}", first.messages) for n in range(2, count + 1)],
        )
        for first, count in sizes.items()
    ]
    small, medium, _ = (some for _, some in copies)
    tenants = [*sizes, medium[0], *small, *medium[1:], *copies[-1][1]]
    vectors: dict[str, Vector] = {}
    with running_server(options=OPTIONS, is_in_memory=False) as server:
        alone = {}
        for tenant in sizes:
            _build_one(server, tenant)
            print("alone, or with smaller ones:", flush=True)
            alone[tenant] = measure(server.url(), tenant, vectors)
        _print_size(server, list(sizes))
        took = seconds(lambda: _copy_all(server, copies))
        _print_size(server, tenants)
        print(f"copied and vacuumed in {took / 60:.0f} minutes", flush=True)
        for tenant in sizes:
            times = measure(server.url(), tenant, vectors)
            slower = statistics.median(times) / statistics.median(alone[tenant])
            print(f"  {slower:.2f} times as long as alone", flush=True)
        _measure_clients(server.url(), tenants[:CLIENTS], vectors)
    for tenant in sizes:
        _measure_sqlite(tenant.messages, vectors)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--share", type=float, default=1.0)
    main(parser.parse_args(sys.argv[1:]).share)
