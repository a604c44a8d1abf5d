"""Which role may do what with access tokens."""

import psycopg
import pytest

from backstory.store.postgres.access_tokens import PostgresTokens
from backstory.store.postgres.database import Database
from backstory.store.postgres.tenants import TenantList
from backstory.values.access import Scope
from tests.postgres_server import APPLICATION, OWNER, PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("access-tokens")]


@pytest.fixture
def token(postgres: PostgresServer, database: Database) -> str:
    name = f"tenant {postgres.create_tenant()} of tokens"
    TenantList(postgres.url(OWNER)).create(name)
    tokens = PostgresTokens(database, owner_url=postgres.url(OWNER))
    return tokens.create("Anna", tenant=name, scope=Scope.READ)[0]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT token_hash FROM backstory.access_tokens",
        "SELECT COUNT(*) FROM backstory.access_tokens",
        "INSERT INTO backstory.access_tokens (name) VALUES ('x')",
        "UPDATE backstory.access_tokens SET scope = 'read-write'",
        "DELETE FROM backstory.access_tokens",
    ],
)
def test_the_application_can_neither_read_nor_change_the_table(
    postgres: PostgresServer, token: str, statement: str
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        postgres.ask(statement, name="memory", role=APPLICATION)


def test_a_role_that_was_granted_nothing_cannot_ask_about_tokens(
    postgres: PostgresServer, token: str
) -> None:
    postgres.ask("DROP ROLE IF EXISTS stranger")
    postgres.ask("CREATE ROLE stranger LOGIN PASSWORD 's3cret%walrus'")

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        postgres.ask(
            "SELECT backstory.has_access_tokens()", name="memory", role="stranger"
        )


def test_the_application_learns_nothing_without_the_whole_hash(
    postgres: PostgresServer, token: str
) -> None:
    for guess in ("NULL", "''", "'\\x00'", "decode(repeat('00', 32), 'hex')"):
        asked = f"SELECT * FROM backstory.use_access_token({guess})"
        assert postgres.ask(asked, name="memory", role=APPLICATION) == []


def test_a_tenant_that_is_deleted_takes_its_tokens_along(
    postgres: PostgresServer, database: Database, token: str
) -> None:
    tokens = PostgresTokens(database, owner_url=postgres.url(OWNER))
    grant = tokens.find_grant(token)
    assert grant is not None

    TenantList(postgres.url(OWNER)).remove(grant.tenant)

    assert tokens.find_grant(token) is None
