"""Lists arrive as they are sent, whatever numbers are in them."""

import pytest

from backstory.store.postgres.connecting import DatabaseServer
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", [1, -(1 << 63), (1 << 63) - 1]),
        ("smallint", [7]),
        ("integer", [0, -1]),
        ("bigint", []),
        ("bigint", [1, None]),
        ("boolean", [True, False]),
        ("text", ["1", "a,b", '{"}']),
    ],
)
def test_a_list_arrives_as_it_was_sent(
    postgres: PostgresServer, kind: str, values: list[object]
) -> None:
    with DatabaseServer(postgres.url()).connect() as db:
        row = db.execute(f"SELECT %s::{kind}[]".encode(), (values,)).fetchone()

    assert row == (values,)
