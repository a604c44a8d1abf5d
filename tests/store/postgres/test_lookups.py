"""What is looked up by number or key is not searched for among all rows of a tenant.

The planner expects a tenant to be about as large as most are; one that is much larger
must not be read whole for that.
"""

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import numpy as np
import pytest

from backstory.index.build import IndexBuilder
from backstory.index.vectors import VectorBuilder
from backstory.store.base.history import Batch, KeptMessage
from backstory.store.base.index import Words
from backstory.store.postgres.database import Database, Tenant
from backstory.store.postgres.embeddings import PostgresEmbeddings
from backstory.store.postgres.history import PostgresHistory
from backstory.store.postgres.index import PostgresIndex
from backstory.store.postgres.rows import key_of
from backstory.store.postgres.summaries import PostgresSummaryStore
from backstory.store.postgres.tenants import TenantList
from backstory.values.history import NewMessage, Role
from backstory.values.identity import meaning_hash
from backstory.values.moments import Moment
from backstory.values.units import SessionRef
from tests.index_builders import ANYTHING, NOW, WordEmbedder
from tests.postgres_server import OWNER, PostgresServer
from tests.processes import comes_true

pytestmark = pytest.mark.postgres

Found = TypeVar("Found")

_TURN = (Role.USER, Role.ASSISTANT, Role.TOOL_CALL, Role.TOOL_RESULT, Role.ASSISTANT)
_SESSIONS = 1_000
_ASKED = 100
# Of the 5,000 messages and 6,000 units, and of 1,000 sessions.
_MOST_READ = 800
# Where all that waits to be embedded is counted: units, passages, sessions.
_MOST_COUNTED = 10_000


@dataclass(frozen=True)
class Stored:
    """A tenant that is much larger than all others of its database."""

    database: Database
    history: PostgresHistory
    index: PostgresIndex
    # Of another tenant of that size: nothing of it is embedded.
    waiting: PostgresIndex
    name: str


def fill(tenant: Tenant, sessions: int) -> tuple[PostgresHistory, PostgresIndex]:
    history = write_messages(tenant, sessions)
    index = PostgresIndex(tenant, PostgresEmbeddings(tenant))
    IndexBuilder(history, index, lambda: NOW).catch_up()
    return history, index


def write_messages(tenant: Tenant, sessions: int) -> PostgresHistory:
    history = PostgresHistory(tenant)
    batch = Batch("here")
    for number in range(sessions):
        for place, role in enumerate(_TURN):
            message = NewMessage(
                f"s{number}",
                f"m{place}",
                role,
                f"the {role} said {number} things about whale{number}. "
                * (40 if place == len(_TURN) - 1 else 1),
                sent=Moment(NOW),
                tool_name="grep" if role is Role.TOOL_CALL else None,
                call_id=f"c{number}" if role is Role.TOOL_CALL else None,
            )
            batch.messages.append(KeptMessage(message))
    history.write(batch, now=NOW)
    return history


@pytest.fixture(scope="module")
def stored(postgres: PostgresServer) -> Iterator[Stored]:
    name = postgres.create_database()
    postgres.prepare(name)
    tenants = TenantList(postgres.url(OWNER, name))
    database = Database(postgres.url(name=name))
    for number in range(40):
        fill(database.tenant(tenants.create(f"small {number}")), 3)
    postgres.ask("ANALYZE", name=name)
    history, index = fill(database.tenant(tenants.create("large")), _SESSIONS)
    VectorBuilder(history, index, WordEmbedder()).run()
    _, waiting = fill(database.tenant(tenants.create("waiting")), _SESSIONS)
    yield Stored(database, history, index, waiting, name)
    database.close()


def count_read(postgres: PostgresServer, name: str) -> dict[str, int]:
    """How many entries of each index were read so far."""
    rows = postgres.ask(
        """
        SELECT relname, SUM(idx_tup_read)::bigint FROM pg_stat_user_indexes
         GROUP BY relname
        """,
        name=name,
    )
    return dict(rows)


_SOME = range(1, 10 * _ASKED, 10)
_PLACES = [(session_id, 1) for session_id in _SOME]
_QUERY = np.ones(64, np.float32)

# What is looked up, and how much of it is there.
LOOK_UPS: dict[str, tuple[Callable[[Stored], Sized], int]] = {
    "messages": (lambda s: s.history.get_messages(_SOME), _ASKED),
    "ranges": (lambda s: s.history.get_ranges([(n, 0, 2) for n in _SOME]), _ASKED),
    "neighbours": (lambda s: s.history.find_neighbours(_PLACES), _ASKED),
    "replies": (lambda s: s.history.find_replies([(n, 0) for n in _SOME]), _ASKED),
    "tool names": (
        lambda s: s.history.find_tool_names([(n, f"c{n - 1}") for n in _SOME]),
        _ASKED,
    ),
    "sessions": (lambda s: s.history.get_sessions(_SOME), _ASKED),
    "titles": (lambda s: s.history.get_titles(_SOME), 0),
    "short ids": (lambda s: s.history.short_ids(_SOME), _ASKED),
    "units": (lambda s: s.index.get_units(_SOME), _ASKED),
    "texts": (lambda s: s.index.get_texts(_SOME), _ASKED),
    "notes": (lambda s: s.index.get_notes(_SOME), 0),
    "turns": (lambda s: s.index.find_turn_parts(_SOME), _ASKED),
    "sessions with tools": (
        lambda s: s.index.find_sessions_with_tools([SessionRef(n) for n in _SOME]),
        _ASKED,
    ),
    "chunks": (
        lambda s: s.index.find_chunks([(SessionRef(n), at) for n, at in _PLACES]),
        _ASKED,
    ),
    "vectors": (lambda s: s.index.cosines(_QUERY, _SOME), _ASKED),
    "passages": (
        lambda s: s.index.find_best_passages(
            _QUERY, range(len(_TURN), len(_TURN) * _ASKED, len(_TURN))
        ),
        _ASKED - 1,
    ),
    "known vectors": (
        lambda s: s.index.embeddings.find(
            "words-64", [meaning_hash(f"not there {n}") for n in range(_ASKED)]
        ),
        0,
    ),
    "words": (
        lambda s: s.index.match_words(Words((("whale7",), ("things",))), ANYTHING, 9),
        9,
    ),
    "numbers of units": (lambda s: s.index.count_documents([("whale7",)]), 1),
    "any part": (lambda s: s.index.find_few("whale77", ANYTHING, 9) or (), 9),
    "sessions that are quiet": (
        lambda s: PostgresSummaryStore(s.history.tenant).list_quiet(
            before=NOW - timedelta(days=1), read_since=None
        ),
        0,
    ),
    "by day": (
        lambda s: s.index.count_by_session(
            [(n, n + 1) for n in range(_ASKED)], ANYTHING
        ),
        0,
    ),
    "passages that wait": (
        lambda s: s.waiting.list_passages_to_embed(_ASKED),
        _ASKED,
    ),
    "a new message": (lambda s: take_in(s, ["s7"]), 1),
    "new messages of ten sessions": (
        lambda s: take_in(s, [f"s{n}" for n in range(20, 30)]),
        10,
    ),
}


def count_entries(
    postgres: PostgresServer, stored: Stored, look_up: Callable[[Stored], Found]
) -> tuple[Found, dict[str, int]]:
    """What is found, and how many index entries of each table were read for it."""
    stored.database.close()
    before = wait_for_counts(postgres, stored.name)
    found = look_up(stored)
    # The server counts what a connection has read when it is closed.
    stored.database.close()
    after = wait_for_counts(postgres, stored.name)
    return found, {table: after[table] - before[table] for table in after}


@pytest.mark.parametrize("name", LOOK_UPS)
def test_a_large_tenant_is_not_read_whole_for_what_is_looked_up(
    postgres: PostgresServer, stored: Stored, name: str
) -> None:
    look_up, expected = LOOK_UPS[name]

    found, read = count_entries(postgres, stored, look_up)

    assert len(found) == expected
    assert {table: count for table, count in read.items() if count > _MOST_READ} == {}


COUNTS: dict[str, tuple[Callable[[Stored], object], object]] = {
    "vectors that wait": (
        lambda s: s.waiting.count_to_embed(ANYTHING),
        (2 * _SESSIONS, 2 * _SESSIONS),
    ),
    "what is there": (lambda s: s.waiting.counts().units, 6 * _SESSIONS),
    "sessions to be logged": (
        lambda s: len(
            PostgresSummaryStore(s.waiting._transactions.tenant).list_quiet(
                before=NOW + timedelta(days=1), read_since=None
            )
        ),
        _SESSIONS,
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_is_counted_is_read_once(
    postgres: PostgresServer, stored: Stored, name: str
) -> None:
    count, expected = COUNTS[name]

    found, read = count_entries(postgres, stored, count)

    assert found == expected
    assert sum(read.values()) <= _MOST_COUNTED


@pytest.fixture(scope="module")
def uncounted(postgres: PostgresServer) -> Iterator[Stored]:
    """A tenant of a database whose rows the planner has never counted."""
    name = postgres.create_database()
    postgres.prepare(name)
    tenants = TenantList(postgres.url(OWNER, name))
    database = Database(postgres.url(name=name))
    history, index = fill(database.tenant(tenants.create("one")), _SESSIONS)
    # With so many more, in such an order, the index that has the keys is deeper than
    # others: it seems better to read the tenant by one of these, and to sort.
    other = tenants.create("other")
    postgres.ask(
        f"""
        INSERT INTO backstory.units (tenant_id, index_id, unit_id, kind, source_id,
                                     position, said_at, text_bytes, word_count, folded)
        SELECT {other}, 1, number, 1, number * 7919 % 36000, 0, -number, 1, 1, 'a'
          FROM generate_series(1, 36000) AS number
        """,
        name=name,
    )
    yield Stored(database, history, index, index, name)
    database.close()


@pytest.mark.parametrize(
    "name", ["turns", "sessions with tools", "a new message", "units"]
)
def test_nor_if_the_planner_has_never_counted_its_rows(
    postgres: PostgresServer, uncounted: Stored, name: str
) -> None:
    look_up, expected = LOOK_UPS[name]

    found, read = count_entries(postgres, uncounted, look_up)

    assert len(found) == expected
    assert {table: count for table, count in read.items() if count > _MOST_READ} == {}


def test_the_first_vectors_of_a_new_tenant_are_not_compared_with_each_other(
    postgres: PostgresServer,
) -> None:
    name = postgres.create_database()
    postgres.prepare(name)
    tenants = TenantList(postgres.url(OWNER, name))
    database = Database(postgres.url(name=name))
    other = tenants.create("other")
    # With so many, the index that has the hashes is deeper than others: of a tenant
    # with one row, it would be better to read them all, and to sort.
    postgres.ask(
        f"""
        INSERT INTO backstory.embeddings (tenant_id, cache_id, embedding_id, model_key,
                                          content_hash, vector)
        SELECT {other}, 1, number, '\\x{key_of("model").hex()}',
               decode(md5(number::text), 'hex'), ''
          FROM generate_series(1, 40000) AS number
        """,
        name=name,
    )
    postgres.ask("VACUUM ANALYZE", name=name)
    cache = PostgresEmbeddings(database.tenant(tenants.create("new")))
    count = 1_000
    vectors = {key_of(f"text {n}"): np.ones(64, np.float32) for n in range(count)}
    before = wait_for_counts(postgres, name)
    added = len(cache.add("model", vectors))
    database.close()
    after = wait_for_counts(postgres, name)

    assert added == count
    assert after["embeddings"] - before["embeddings"] <= 2 * count


def test_the_first_sessions_of_a_new_tenant_are_not_read_whole_for_each(
    postgres: PostgresServer,
) -> None:
    name = postgres.create_database()
    postgres.prepare(name)
    tenants = TenantList(postgres.url(OWNER, name))
    database = Database(postgres.url(name=name))
    other = tenants.create("other")
    # With so many, the index by session is deeper than that by number.
    postgres.ask(
        f"""
        SET session_replication_role TO replica;
        INSERT INTO backstory.messages (tenant_id, message_id, session_id, native_key,
                                        native_id, position, role, text)
        SELECT {other}, number, number / 100, decode(md5(number::text), 'hex'),
               number, number % 100, 'user', repeat('a', 300)
          FROM generate_series(1, 60000) AS number
        """,
        name=name,
    )
    postgres.ask("VACUUM ANALYZE", name=name)
    new = database.tenant(tenants.create("new"))
    before = wait_for_counts(postgres, name)
    write_messages(new, 300)
    database.close()
    after = wait_for_counts(postgres, name)

    assert after["messages"] - before["messages"] <= 10 * 300 * len(_TURN)


def wait_for_counts(postgres: PostgresServer, name: str) -> dict[str, int]:
    """What was read so far: a connection tells it when it ends."""

    def have_ended() -> bool:
        ((connections,),) = postgres.ask(
            f"""
            SELECT COUNT(*) FROM pg_stat_activity
             WHERE datname = '{name}' AND application_name = 'backstory'
            """
        )
        return bool(connections == 0)

    assert comes_true(have_ended)
    return count_read(postgres, name)


def take_in(stored: Stored, sessions: list[str]) -> list[str]:
    """Store and index one more message of each of these sessions."""
    batch = Batch("here")
    for session in sessions:
        squid = NewMessage(session, "new", Role.USER, "A squid?", sent=Moment(NOW))
        batch.messages.append(KeptMessage(squid))
    stored.history.write(batch, now=NOW)
    IndexBuilder(stored.history, stored.index, lambda: NOW).catch_up()
    return sessions
