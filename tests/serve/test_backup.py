"""A backup by the database's own means, restored and used."""

from pathlib import Path

import pytest

from backstory import Memory
from backstory.store.postgres.access_tokens import PostgresTokens
from backstory.store.postgres.database import Database
from backstory.store.postgres.tenants import TenantList
from backstory.values.access import Grant, Scope
from tests.postgres_server import ADMIN, OWNER, PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("backup")]


def open_memory(
    postgres: PostgresServer, name: str, tenant: str, folder: Path
) -> Memory:
    chosen = [f"store.url={postgres.url(name=name)}", f"store.tenant={tenant}"]
    return Memory.open(folder, settings=["embedder.name=none", *chosen])


def test_a_dump_is_restored_with_all_tenants_tokens_and_notes(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    name = postgres.create_database()
    postgres.prepare(name)
    tokens = {}
    for tenant, word in (("anna", "apricot"), ("bo", "blueberry")):
        TenantList(postgres.url(OWNER, name)).create(tenant)
        with open_memory(postgres, name, tenant, tmp_path / tenant) as memory:
            memory.record("s", "user", f"the code word is {word}")
            memory.notebook.add_fact(f"likes {word}", "Taste", mask=False)
        database = Database(postgres.url(name=name))
        made = PostgresTokens(database, owner_url=postgres.url(OWNER, name)).create(
            "Anna", tenant=tenant, scope=Scope.READ
        )
        tokens[tenant] = made
        database.close()
    dump = postgres.folder / f"{name}.dump"

    as_owner = postgres.run_client(
        "pg_dump", "--format=custom", "--file", str(dump), name, role=OWNER
    )
    as_admin = postgres.run_client(
        "pg_dump", "--format=custom", "--file", str(dump), name, role=ADMIN
    )
    postgres.ask(f"CREATE DATABASE {name}_restored OWNER {OWNER}")
    restored = postgres.run_client(
        "pg_restore", "--exit-on-error", "--dbname", f"{name}_restored", str(dump)
    )

    # Row-level security holds for the owner, too: no dump without some tenants' rows.
    assert "row-level security" in as_owner
    assert (as_admin, restored) == ("", "")
    for tenant, word in (("anna", "apricot"), ("bo", "blueberry")):
        folder = tmp_path / f"{tenant} restored"
        with open_memory(postgres, f"{name}_restored", tenant, folder) as memory:
            found = [hit.text for hit in memory.search("code word").hits]
            assert found == [f"the code word is {word}"]
            assert f"likes {word}" in memory.notebook.read_memory()
            memory.record("s", "user", "after the restore")
            assert len(list(memory.messages("s"))) == 2
        token, listed = tokens[tenant]
        database = Database(postgres.url(name=f"{name}_restored"))
        grant = PostgresTokens(database, owner_url="").find_grant(token)
        database.close()
        assert grant == Grant(listed.token_id, tenant, Scope.READ)
