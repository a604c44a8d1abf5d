"""The history under stress: clients and servers that die, and many clients at once."""

import os
import random
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime

import pytest

from backstory.errors import StoreUnreachable
from backstory.store.base.history import (
    Batch,
    Change,
    HistoryStore,
    KeptMessage,
    SessionFilter,
    SourceKey,
    SourceState,
)
from backstory.store.postgres.database import Database, Tenant
from backstory.store.postgres.history import PostgresHistory
from backstory.values.history import NewMessage, Role
from tests.postgres_server import PostgresServer
from tests.processes import comes_true, end_of, in_child, kill_sometime

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)
SIZE = 20


def a_batch(number: int, *, session: str = "s1") -> Batch:
    """The messages of one part of a file, and how far it has been read then."""
    first = number * SIZE
    return Batch(
        "host",
        read_from="/a.jsonl",
        messages=[
            KeptMessage(NewMessage(session, f"m{each}", Role.USER, f"text {each}"))
            for each in range(first, first + SIZE)
        ],
        progress=SourceState(
            SourceKey("/a.jsonl", session), "host", "x", "signed", read_to=number + 1
        ),
    )


def read_on(store: HistoryStore, batches: int, *, session: str = "s1") -> None:
    """Read the rest of a file of so many batches, from where it was left."""
    key = SourceKey("/a.jsonl", session)
    state = store.list_sources().get(key)
    for number in range(0 if state is None else state.read_to, batches):
        store.write(a_batch(number, session=session), now=NOW)


def texts(store: HistoryStore, session: str = "s1") -> list[str]:
    return [
        message.text
        for found in store.find_sessions(session)
        for message in store.iter_messages(found.session_id)
    ]


def all_texts(batches: int) -> list[str]:
    return [f"text {each}" for each in range(batches * SIZE)]


def test_a_reader_that_is_killed_loses_and_doubles_nothing(tenant: Tenant) -> None:
    store = PostgresHistory(tenant)
    chance = random.Random(os.environ.get("SOAK", "1"))
    batches = 12
    attempt = 0
    while kill_sometime(lambda: read_on(store, batches), chance, attempt=attempt):
        attempt += 1
        # What is there is whole batches.
        assert len(texts(store)) % SIZE == 0

    assert attempt > 2
    assert texts(store) == all_texts(batches)
    assert store.verify() == []


def test_a_server_that_is_killed_loses_and_doubles_nothing(
    postgres: PostgresServer, tenant: Tenant
) -> None:
    store = PostgresHistory(tenant)
    batches = 60
    lost = 0
    is_over = threading.Event()

    def read() -> None:
        nonlocal lost
        while not is_over.is_set():
            try:
                read_on(store, batches)
                is_over.set()
            except StoreUnreachable:
                lost += 1
                is_over.wait(0.01)

    reading = threading.Thread(target=read)
    reading.start()
    for goal in range(5, 20, 5):
        assert comes_true(lambda goal=goal: len(texts(store)) >= goal * SIZE)  # type: ignore[misc]
        postgres.kill()
        postgres.start()
    reading.join()

    assert lost >= 3
    assert texts(store) == all_texts(batches)
    assert store.verify() == []


def test_what_was_made_durable_survives_a_crash(
    postgres: PostgresServer, tenant: Tenant
) -> None:
    store = PostgresHistory(tenant)
    store.write(a_batch(0), now=NOW, is_durable=False)
    store.make_durable()

    postgres.kill()
    postgres.start()

    assert texts(store) == all_texts(1)


def in_processes(count: int, work: Callable[[int], None]) -> list[str]:
    """Run it in so many processes at once; returns how they ended."""
    children = [in_child(lambda number=number: work(number)) for number in range(count)]  # type: ignore[misc]
    return [end_of(child) for child in children]


def test_fifty_clients_at_once_write_what_one_would(
    postgres: PostgresServer, tenant: Tenant
) -> None:
    """Each reads a file of its own and the same others, and follows the changes."""

    def read_and_follow(number: int) -> None:
        with closing(Database(postgres.url(), max_connections=2)) as database:
            store = PostgresHistory(database.tenant(tenant.tenant_id))
            followed: list[Change] = []
            read_on(store, 2, session=f"own{number}")
            for step in range(3):
                # Each begins with another one, and all meet.
                read_on(store, 3, session=f"s{(number + step) % 3}")
                after = followed[-1].change_id if followed else 0
                followed += store.list_changes(after, 1_000_000)
            # No change became visible after a later one.
            assert followed == store.list_changes(0, len(followed))

    assert set(in_processes(50, read_and_follow)) == {"well"}

    store = PostgresHistory(tenant)
    assert [texts(store, f"s{each}") for each in range(3)] == [all_texts(3)] * 3
    own = {each: texts(store, f"own{each}") for each in range(50)}
    assert own == dict.fromkeys(range(50), all_texts(2))
    changes = store.list_changes(0, 1_000_000)
    assert [each.change_id for each in changes] == list(range(1, len(changes) + 1))
    assert store.verify() == []


def test_fifty_tenants_at_once_have_their_own(postgres: PostgresServer) -> None:
    numbers = [postgres.create_tenant() for _ in range(50)]

    def write_own(number: int) -> None:
        with closing(Database(postgres.url(), max_connections=2)) as database:
            store = PostgresHistory(database.tenant(numbers[number]))
            for each in range(3):
                text = f"of tenant {number}, {each}"
                message = NewMessage("s1", f"m{each}", Role.USER, text)
                store.write(Batch("host", messages=[KeptMessage(message)]), now=NOW)

    assert set(in_processes(50, write_own)) == {"well"}

    with closing(Database(postgres.url())) as database:
        for each, number in enumerate(numbers):
            store = PostgresHistory(database.tenant(number))
            assert texts(store) == [f"of tenant {each}, {n}" for n in range(3)]
            (session,) = store.list_sessions(SessionFilter())
            assert (session.session_id, store.last_change_id()) == (1, 3)


def test_a_session_is_found_by_a_name_that_no_index_could_hold(tenant: Tenant) -> None:
    store = PostgresHistory(tenant)
    name = "".join(random.Random(7).choices("abcdefgh", k=20_000))
    message = KeptMessage(NewMessage(name, name, Role.USER, "hello"))
    store.write(Batch(name, read_from=name, messages=[message]), now=NOW)

    (session,) = store.find_sessions(name[:5_000])
    assert (session.native_id, session.host) == (name, name)
    assert store.find_message(session.session_id, name) is not None


def test_no_text_is_in_the_statistics_of_the_planner(
    postgres: PostgresServer, tenant: Tenant
) -> None:
    store = PostgresHistory(tenant)
    store.write(a_batch(0), now=NOW)
    postgres.ask("ANALYZE", name="memory")

    known = postgres.ask(
        """
        SELECT tablename, attname FROM pg_stats JOIN information_schema.columns
            ON table_schema = schemaname AND table_name = tablename
           AND column_name = attname
         WHERE schemaname = 'backstory' AND data_type = 'text'
           AND tablename NOT IN ('tenants', 'migrations', 'access_tokens')
        """,
        name="memory",
    )
    assert known == []
