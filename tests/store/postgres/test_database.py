"""Connections: refused, lost, shared by threads, and never by processes."""

import os
import threading
from collections.abc import Callable

import pytest

from backstory.errors import (
    ConfigError,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreProblem,
    StoreUnreachable,
    StoreUnwritable,
)
from backstory.store.postgres.database import Database, Tenant, take_numbers
from tests.postgres_server import PASSWORD, PostgresServer
from tests.processes import comes_true, end_of, in_child

# The same as long as a connection stays in one transaction.
_TRANSACTION = "SELECT pg_backend_pid(), now()"

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda url: url.replace("s3cret", "wrong"),
            "refuses the user or the password",
        ),
        (lambda url: url.replace("backstory_app", "nobody"), "refuses the user"),
        (lambda url: url.replace("/memory", "/nowhere"), "no such database or user"),
        (lambda url: url.replace("host=", "host=/nowhere"), "no connection"),
        (lambda url: "postgresql://u:s3cret@127.0.0.1:1/memory", "no connection"),
    ],
)
def test_a_refused_connection_says_why_and_never_the_password(
    postgres: PostgresServer, change: Callable[[str], str], words: str
) -> None:
    with (
        pytest.raises(StoreUnreachable, match=words) as raised,
        Database(change(postgres.url())).tenant(1).reading(),
    ):
        pass
    assert "store.url" in raised.value.hint
    assert "s3cret" not in f"{raised.value} {raised.value.hint}"
    assert PASSWORD not in f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize("url", ["postgresql://u:%zz@h/d", "postgresql://u:p@h/d?zz=1"])
def test_a_malformed_address_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Database(url)
    assert "zz" not in str(raised.value)
    # Nor is it what the error was made from.
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("port", ["abc", "0", "65536", "9" * 99, "1,g:x", "-1"])
def test_a_port_that_is_none_is_told_before_anybody_is_asked(port: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Database(f"postgresql://u:p@h:{port}/d", named_by="--to")
    # It may be part of a password, and is not repeated.
    assert str(raised.value) == (
        "--to is not the address of a PostgreSQL database: its port is not a number "
        "from 1 to 65535"
    )


def test_a_server_that_takes_no_more_connections_is_not_said_to_be_away(
    postgres: PostgresServer,
) -> None:
    postgres.ask(f"CREATE ROLE many LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 0")
    database = Database(postgres.url("many"))
    try:
        with (
            pytest.raises(StoreUnreachable, match="too many connections") as raised,
            database.tenant(1).reading(),
        ):
            pass
    finally:
        postgres.ask("DROP ROLE many")

    assert raised.value.hint == (
        "let fewer processes use it at once, or raise max_connections there"
    )


@pytest.mark.parametrize(
    ("code", "problem", "words"),
    [
        ("53100", StoreFull, "the server's disk is full"),
        ("55P03", StoreLocked, "others are writing"),
        ("40P01", StoreLocked, "others are writing"),
        ("42501", StoreUnwritable, "the role may not do this"),
        ("25006", StoreUnwritable, "the server is read-only"),
        ("XX001", StoreDamaged, "it is damaged"),
        ("57P01", StoreUnreachable, "no connection, or it was lost"),
        ("25P03", StoreUnreachable, "the connection was lost"),
        ("53300", StoreUnreachable, "too many connections"),
        ("22000", StoreProblem, "it refused"),
    ],
)
def test_what_the_server_says_becomes_a_problem_of_ours(
    tenant: Tenant, code: str, problem: type[StoreProblem], words: str
) -> None:
    statement = f"""
        DO $$ BEGIN
            RAISE EXCEPTION 'said' USING ERRCODE = '{code}', DETAIL = 'a row';
        END $$
    """

    with pytest.raises(StoreProblem, match=words) as raised, tenant.reading() as db:
        db.execute(statement.encode())

    assert type(raised.value) is problem
    # Details quote rows.
    assert "a row" not in f"{raised.value} {raised.value.hint}"


def test_writers_of_a_tenant_take_turns(postgres: PostgresServer) -> None:
    database = Database(postgres.url())
    one, two = (database.tenant(postgres.create_tenant()) for _ in range(2))

    with one.writing():
        with (
            pytest.raises(StoreLocked, match="others are writing"),
            one.writing(wait_s=0.05),
        ):
            pass
        with two.writing(wait_s=0.05):
            pass
        with one.reading():
            pass
    with one.writing(wait_s=0.05):
        pass
    database.close()


def test_a_process_has_no_more_connections_than_it_may(
    postgres: PostgresServer,
) -> None:
    database = Database(postgres.url(), max_connections=2)
    tenants = [database.tenant(postgres.create_tenant()) for _ in range(3)]

    with (
        tenants[0].reading(),
        tenants[1].reading(),
        pytest.raises(StoreLocked, match="all 2 connections"),
        tenants[2].writing(wait_s=0.05),
    ):
        pass
    with tenants[2].reading():
        pass
    database.close()


def test_connections_are_given_in_the_order_in_which_they_were_asked_for(
    postgres: PostgresServer,
) -> None:
    database = Database(postgres.url(), max_connections=1)
    tenant = database.tenant(postgres.create_tenant())
    came: list[str] = []
    is_over = threading.Event()

    def read(name: str) -> None:
        with tenant.reading():
            came.append(name)
            is_over.wait(10)

    threads = []
    with tenant.reading():
        for number in range(3):
            threads.append(threading.Thread(target=read, args=(f"thread {number}",)))
            threads[-1].start()
            assert comes_true(lambda: len(database._turns._waiting) == len(threads))
        with pytest.raises(StoreLocked), tenant.writing(wait_s=0.05):
            pass
    is_over.set()
    read("the first one again")
    for thread in threads:
        thread.join()
    assert came == ["thread 0", "thread 1", "thread 2", "the first one again"]
    database.close()


def test_threads_share_connections(postgres: PostgresServer, tenant: Tenant) -> None:
    pids = set()

    def count() -> None:
        for _ in range(20):
            with tenant.writing() as db:
                pids.add(db.info.backend_pid)
                take_numbers(db, "last_message_id", 1)

    threads = [threading.Thread(target=count) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with tenant.writing() as db:
        assert take_numbers(db, "last_message_id", 1) == 601
    assert len(pids) <= 10


def test_a_thread_lends_its_view_to_those_that_it_waits_for(tenant: Tenant) -> None:
    found: list[object] = []
    with tenant.one_view():
        with tenant.reading() as db:
            found.append(db.execute(_TRANSACTION).fetchone())
        with tenant.shared_view() as lent:

            def work() -> None:
                with lent.using(), tenant.reading() as db:
                    found.append(db.execute(_TRANSACTION).fetchone())

            for _ in range(2):
                _run(work)
        with tenant.reading() as db:
            found.append(db.execute(_TRANSACTION).fetchone())
    assert len(found) == 4
    assert len(set(found)) == 1
    assert not tenant.database._busy


def test_who_finds_a_lent_view_in_use_has_another(tenant: Tenant) -> None:
    found: list[object] = []
    with tenant.one_view(), tenant.shared_view() as lent, lent.using():
        with tenant.reading() as db:
            found.append(db.execute(_TRANSACTION).fetchone())

        def work() -> None:
            with lent.using(), tenant.reading() as db:
                found.append(db.execute(_TRANSACTION).fetchone())

        _run(work)
    assert len(set(found)) == 2
    assert not tenant.database._busy


def test_who_finds_a_lent_view_in_use_waits_for_it_if_no_connection_is_free(
    postgres: PostgresServer,
) -> None:
    database = Database(postgres.url(), max_connections=1)
    tenant = database.tenant(postgres.create_tenant())
    found: list[object] = []

    def work() -> None:
        with lent.using(), tenant.reading() as db:
            found.append(db.execute(_TRANSACTION).fetchone())

    with tenant.shared_view() as lent:
        with lent.using():
            waiting = threading.Thread(target=work)
            waiting.start()
            with tenant.reading() as db:
                found.append(db.execute(_TRANSACTION).fetchone())
        waiting.join()
    assert len(found) == 2
    assert len(set(found)) == 1
    assert not database._busy
    database.close()


def test_nobody_waits_for_a_view_that_was_taken_back(postgres: PostgresServer) -> None:
    database = Database(postgres.url(), max_connections=1)
    tenant = database.tenant(postgres.create_tenant())
    told: list[str] = []
    with tenant.shared_view() as lent, lent.using():

        def work() -> None:
            try:
                with lent.using():
                    told.append("has it")
            except StoreLocked as exc:
                told.append(str(exc))

        waiting = threading.Thread(target=work)
        waiting.start()
        assert not told
        lent.take_back()
        waiting.join()
    assert told == ["whoever lent the view waits no longer"]
    database.close()


def test_a_lent_view_that_comes_back_late_is_ended(tenant: Tenant) -> None:
    is_begun, may_end = threading.Event(), threading.Event()
    with tenant.one_view():
        with tenant.shared_view() as lent:

            def work() -> None:
                with lent.using(), tenant.reading():
                    is_begun.set()
                    may_end.wait(10)

            late = threading.Thread(target=work)
            late.start()
            assert is_begun.wait(10)
        with tenant.reading():
            assert len(tenant.database._busy) == 2
        may_end.set()
        late.join()
        assert len(tenant.database._busy) == 1
    assert not tenant.database._busy


def test_a_lent_view_that_failed_is_replaced(tenant: Tenant) -> None:
    with tenant.one_view(), tenant.shared_view() as lent:

        def fail() -> None:
            with lent.using(), pytest.raises(StoreProblem), tenant.reading() as db:
                db.execute("SELECT 1 / 0")

        def work() -> None:
            with lent.using(), tenant.reading() as db:
                found.append(db.execute("SELECT 1").fetchone())

        found: list[object] = []
        _run(fail)
        _run(work)
    assert found == [(1,)]
    assert not tenant.database._busy


def test_a_second_view_is_only_for_a_connection_to_spare(
    postgres: PostgresServer,
) -> None:
    database = Database(postgres.url(), max_connections=4)
    tenant = database.tenant(postgres.create_tenant())
    found: list[object] = []
    with tenant.shared_view() as lent, lent.using():
        with tenant.reading() as db:
            found.append(db.execute(_TRANSACTION).fetchone())

        def work() -> None:
            with lent.using_spare() as is_there, tenant.reading() as db:
                assert is_there
                found.append(db.execute(_TRANSACTION).fetchone())
                assert len(database._busy) == 2
                with lent.using_spare() as is_there:
                    found.append(is_there)

        _run(work)
        assert len(database._busy) == 1

        def waste() -> None:
            with lent.using_spare() as is_there:
                found.append(is_there)

        _run(waste)
        assert len(database._busy) == 1
    assert len(set(found)) == 4
    assert found[2:] == [False, True]
    assert not database._busy
    database.close()


def _run(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_connection_that_was_lost_in_the_meantime_is_replaced(
    postgres: PostgresServer, database: Database, tenant: Tenant
) -> None:
    with tenant.reading(), tenant.reading(), tenant.reading():
        pass
    postgres.kill()
    postgres.start()

    with database.connection() as db:
        assert db.execute("SELECT 1").fetchall() == [(1,)]
    postgres.kill()
    postgres.start()
    with tenant.writing() as db:
        assert take_numbers(db, "last_message_id", 1) == 1


def test_a_connection_that_is_lost_in_a_transaction_undoes_it(
    postgres: PostgresServer, tenant: Tenant
) -> None:
    def lose() -> None:
        with tenant.writing() as db:
            take_numbers(db, "last_message_id", 1)
            postgres.kill()
            take_numbers(db, "last_message_id", 1)

    try:
        with pytest.raises(StoreUnreachable, match="no connection, or it was lost"):
            lose()
        with pytest.raises(StoreUnreachable, match="no connection"), tenant.reading():
            pass
    finally:
        postgres.start()

    with tenant.writing() as db:
        assert take_numbers(db, "last_message_id", 1) == 1


def test_what_was_committed_survives_a_crash_of_the_server(
    postgres: PostgresServer, tenant: Tenant
) -> None:
    for _ in range(3):
        with tenant.writing() as db:
            take_numbers(db, "last_message_id", 1)
        postgres.kill()
        postgres.start()

    with tenant.writing() as db:
        assert take_numbers(db, "last_message_id", 1) == 4


def test_a_child_has_connections_of_its_own(
    postgres: PostgresServer, tenant: Tenant
) -> None:
    def own_pid(db_of: Tenant) -> int:
        with db_of.reading() as db:
            return db.info.backend_pid

    before = own_pid(tenant)
    reading, writing = os.pipe()
    child = in_child(lambda: os.write(writing, str(own_pid(tenant)).encode()))
    assert end_of(child) == "well"

    assert int(os.read(reading, 20)) not in (before, own_pid(tenant))
    os.close(reading)
    os.close(writing)


def test_a_fork_in_the_middle_of_a_transaction_leaves_the_parents_connection_alone(
    tenant: Tenant,
) -> None:
    def count_in_child() -> None:
        # The parent holds the lock of its own tenant.
        with tenant.reading() as db:
            assert db.execute("SELECT last_message_id FROM counters").fetchone() == (0,)

    with tenant.writing() as db:
        take_numbers(db, "last_message_id", 1)
        assert end_of(in_child(count_in_child)) == "well"
        assert take_numbers(db, "last_message_id", 1) == 2

    with tenant.writing() as db:
        assert take_numbers(db, "last_message_id", 1) == 3
