"""What the tests of the PostgreSQL store share: a database, and tenants in it."""

from collections.abc import Iterator

import pytest

from backstory.store.postgres.database import Database, Tenant
from tests.postgres_server import PostgresServer


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    opened = Database(postgres.url())
    yield opened
    opened.close()


@pytest.fixture
def tenant(postgres: PostgresServer, database: Database) -> Tenant:
    return database.tenant(postgres.create_tenant())
