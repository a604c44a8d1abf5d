"""Databases are prepared once, by whoever comes first, and never backwards."""

import threading
from contextlib import closing
from unittest.mock import patch

import pytest

from backstory.errors import StoreProblem, StoreTooNew, StoreUnwritable
from backstory.store.postgres import migrate
from backstory.store.postgres.connecting import PREPARE_HINT
from backstory.store.postgres.database import Database
from backstory.store.postgres.migrate import list_migrations, prepare_database
from backstory.store.postgres.tenants import TenantList
from tests.postgres_server import ADMIN, APPLICATION, OWNER, PostgresServer

pytestmark = pytest.mark.postgres


def open_first(postgres: PostgresServer, name: str) -> None:
    url = postgres.url(name=name)
    with closing(Database(url)) as database, database.tenant(1).reading():
        pass


def test_of_many_at_once_one_prepares_a_database(postgres: PostgresServer) -> None:
    name = postgres.create_database()
    versions: list[int] = []

    def prepare() -> None:
        versions.append(
            prepare_database(postgres.url(OWNER, name), application_role=APPLICATION)
        )

    threads = [threading.Thread(target=prepare) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    latest = len(list_migrations())
    assert versions == [latest] * 5
    assert postgres.ask(
        "SELECT count(*), max(version) FROM backstory.migrations", name=name
    ) == [(latest, latest)]
    open_first(postgres, name)


def test_a_database_that_was_not_prepared_is_refused(postgres: PostgresServer) -> None:
    name = postgres.create_database()

    with pytest.raises(StoreProblem, match="no tables of Backstory"):
        open_first(postgres, name)


def test_a_database_that_cannot_hold_every_text_is_not_prepared(
    postgres: PostgresServer,
) -> None:
    name = "in_latin"
    postgres.ask(
        f"CREATE DATABASE {name} OWNER {OWNER} ENCODING 'LATIN1' TEMPLATE template0"
    )
    postgres.ask("CREATE EXTENSION vector", name=name)

    with pytest.raises(StoreProblem, match="its encoding is not UTF8"):
        postgres.prepare(name)


def test_older_code_works_until_a_migration_says_otherwise(
    postgres: PostgresServer,
) -> None:
    name = postgres.create_database()
    postgres.prepare(name)
    number = TenantList(postgres.url(OWNER, name)).create("one")
    latest = len(list_migrations())
    later = "INSERT INTO backstory.migrations VALUES ({}, 'later', {})"

    # It expanded the schema.
    postgres.ask(later.format(latest + 1, latest), name=name)
    opened = Database(postgres.url(name=name))
    with opened.tenant(number).writing():
        pass
    opened.close()

    # It contracted the schema.
    postgres.ask(later.format(latest + 2, latest + 1), name=name)
    with pytest.raises(StoreTooNew, match=rf"schema {latest + 2}, this .* {latest}\)"):
        open_first(postgres, name)
    with pytest.raises(StoreTooNew):
        postgres.prepare(name)


def test_code_that_needs_more_than_there_is_says_so(postgres: PostgresServer) -> None:
    name = postgres.create_database()
    postgres.prepare(name)
    latest = len(list_migrations())
    postgres.ask(
        f"DELETE FROM backstory.migrations WHERE version = {latest}", name=name
    )

    with pytest.raises(StoreProblem, match=f"this version needs {latest}") as raised:
        open_first(postgres, name)
    assert raised.value.hint == PREPARE_HINT


def test_an_index_from_before_words_shared_rows_is_made_anew(
    postgres: PostgresServer,
) -> None:
    name = postgres.create_database()
    before = list_migrations()[:9]
    with patch.object(migrate, "list_migrations", lambda: before):
        postgres.prepare(name)
    for tenant_id in (1, 2):
        TenantList(postgres.url(OWNER, name)).create(f"tenant {tenant_id}")
        for statement in (
            f"INSERT INTO backstory.indexes VALUES ({tenant_id}, 'index', 7)",
            f"""
            INSERT INTO backstory.units
            VALUES ({tenant_id}, 7, 1, 1, 1, 1, NULL, 3, 1, NULL, 'sea')
            """,
        ):
            postgres.ask(statement, name=name)

    postgres.prepare(name)

    for table in ("indexes", "units"):
        assert postgres.ask(f"SELECT 1 FROM backstory.{table}", name=name) == []
    wanted = postgres.ask("SELECT tenant_id, kind FROM backstory.jobs", name=name)
    assert sorted(wanted) == [(1, "index"), (2, "index")]


def test_the_application_must_have_a_role_that_is_bound(
    postgres: PostgresServer,
) -> None:
    url = postgres.url(OWNER, postgres.create_database())

    with pytest.raises(StoreProblem, match="no role 'nobody'"):
        prepare_database(url, application_role="nobody")
    for role in (ADMIN, OWNER):
        with pytest.raises(StoreUnwritable, match="rows of all tenants"):
            prepare_database(url, application_role=role)


def test_a_table_that_is_not_protected_any_more_is_noticed(
    postgres: PostgresServer,
) -> None:
    name = postgres.create_database()
    postgres.prepare(name)
    postgres.ask(
        "ALTER TABLE backstory.counters NO FORCE ROW LEVEL SECURITY", name=name
    )

    with pytest.raises(StoreProblem, match="not protected by row-level security"):
        open_first(postgres, name)
