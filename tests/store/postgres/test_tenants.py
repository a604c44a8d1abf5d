"""A tenant sees its own rows, whatever is asked through a connection."""

import pytest

from backstory.errors import BadQuery, StoreProblem, StoreUnwritable, UnknownName
from backstory.store.postgres.database import Database, Tenant, take_numbers
from backstory.store.postgres.tenants import TenantList, find_tenant
from tests.postgres_server import ADMIN, APPLICATION, OWNER, PASSWORD, PostgresServer

pytestmark = pytest.mark.postgres

COUNTERS = "SELECT tenant_id, last_message_id FROM counters"


def test_a_transaction_sees_the_rows_of_its_tenant(
    postgres: PostgresServer, database: Database
) -> None:
    one, two = (database.tenant(postgres.create_tenant()) for _ in range(2))

    with one.writing() as db:
        assert take_numbers(db, "last_message_id", 3) == 1
        assert take_numbers(db, "last_message_id", 2) == 4

    seen = []
    for each in (one, two):
        with each.reading() as db:
            seen += db.execute(COUNTERS).fetchall()
    assert seen == [(one.tenant_id, 5), (two.tenant_id, 0)]


def test_a_connection_that_was_given_back_belongs_to_nobody(
    database: Database, tenant: Tenant
) -> None:
    with tenant.writing() as db:
        bound = db.info.backend_pid

    with database.connection() as db:
        assert db.info.backend_pid == bound
        row = db.execute("SELECT current_setting('backstory.tenant', true)").fetchone()
        assert row == ("",)
        assert db.execute("SELECT * FROM backstory.counters").fetchall() == []


def test_a_connection_is_given_back_after_an_error(
    database: Database, tenant: Tenant
) -> None:
    def fail() -> None:
        with tenant.writing() as db:
            take_numbers(db, "last_message_id", 3)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(StoreProblem, match="division by zero"), tenant.reading() as db:
        db.execute("SELECT 1 / 0")

    with tenant.reading() as db:
        assert db.execute(COUNTERS).fetchall() == [(tenant.tenant_id, 0)]
    with database.connection() as db:
        assert db.execute("SELECT * FROM backstory.counters").fetchall() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE counters SET last_message_id = 9 WHERE tenant_id <> {own}",
        "UPDATE counters SET tenant_id = {other}",
        "INSERT INTO counters (tenant_id) VALUES ({other})",
        "DELETE FROM counters",
        "SELECT * FROM tenants",
        "TRUNCATE counters",
        "ALTER TABLE counters DISABLE ROW LEVEL SECURITY",
        "SET ROLE " + OWNER,
    ],
)
def test_no_statement_reaches_another_tenant(
    postgres: PostgresServer, tenant: Tenant, statement: str
) -> None:
    other = tenant.database.tenant(postgres.create_tenant())

    try:
        with tenant.writing() as db:
            written = statement.format(own=tenant.tenant_id, other=other.tenant_id)
            assert db.execute(written.encode()).rowcount == 0
    except StoreUnwritable:
        pass

    with other.reading() as db:
        assert db.execute(COUNTERS).fetchall() == [(other.tenant_id, 0)]


def test_a_transaction_for_reading_cannot_write(tenant: Tenant) -> None:
    with pytest.raises(StoreUnwritable), tenant.reading() as db:
        take_numbers(db, "last_message_id", 1)


def test_every_table_is_protected(postgres: PostgresServer) -> None:
    open_tables = postgres.ask(
        """
        SELECT relname FROM pg_class
         WHERE relnamespace = 'backstory'::regnamespace AND relkind IN ('r', 'p')
           AND NOT (relrowsecurity AND relforcerowsecurity)
        """,
        name="memory",
    )

    assert open_tables == []


def test_the_tenant_comes_first_in_every_key(postgres: PostgresServer) -> None:
    others = postgres.ask(
        """
        SELECT conrelid::regclass::text, conname
          FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
         WHERE relnamespace = 'backstory'::regnamespace AND contype IN ('p', 'u', 'f')
           AND (SELECT attname FROM pg_attribute
                 WHERE attrelid = conrelid AND attnum = conkey[1]) <> 'tenant_id'
         ORDER BY 2
        """,
        name="memory",
    )

    # They are of all tenants.
    assert [name for _, name in others] == [
        "access_tokens_pkey",
        "access_tokens_token_hash_key",
        "migrations_pkey",
        "tenants_name_key",
    ]


@pytest.mark.parametrize("role", [ADMIN, OWNER, "bypassing", "member"])
def test_a_role_that_could_see_other_tenants_is_refused(
    postgres: PostgresServer, role: str
) -> None:
    if role not in (ADMIN, OWNER):
        postgres.ask(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        what = {
            "bypassing": "ALTER ROLE bypassing BYPASSRLS",
            "member": f"GRANT {OWNER} TO member",
        }
        postgres.ask(what[role])

    opened = Database(postgres.url(role))

    with (
        pytest.raises(StoreUnwritable, match="rows of all tenants") as raised,
        opened.tenant(1).reading(),
    ):
        pass
    assert "must name a role that is not a superuser" in raised.value.hint


def test_tenants_are_found_by_name(
    postgres: PostgresServer, database: Database
) -> None:
    tenants = TenantList(postgres.url(OWNER))
    number = tenants.create("Röd & co")

    assert find_tenant(database, "Röd & co") == number
    assert ("Röd & co", number) in [(e.name, e.tenant_id) for e in tenants.list()]

    with pytest.raises(UnknownName):
        find_tenant(database, "Blå")
    for name in ("Röd & co", "", "x" * 201):
        with pytest.raises(BadQuery):
            tenants.create(name)


def test_only_the_owner_lists_tenants(postgres: PostgresServer) -> None:
    with pytest.raises(StoreUnwritable):
        TenantList(postgres.url(APPLICATION)).list()


def test_a_tenant_that_does_not_exist_has_nothing(database: Database) -> None:
    nobody = database.tenant(1_000_000)

    with nobody.reading() as db:
        assert db.execute(COUNTERS).fetchall() == []
    with pytest.raises(StoreProblem, match="no tenant 1000000"), nobody.writing():
        pass
