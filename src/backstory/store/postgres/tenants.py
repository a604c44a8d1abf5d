"""Make, find and remove tenants: for the role that owns the tables.

Everybody else can only ask for the number of a tenant whose name they know.
"""

import shlex
from datetime import datetime
from functools import partial

from psycopg import errors, sql

from backstory.errors import BadQuery, UnknownName, show_value
from backstory.store.postgres.connecting import (
    OWNER_OPTION,
    Connection,
    DatabaseServer,
)
from backstory.store.postgres.database import Database, Tenant
from backstory.store.postgres.erase import HISTORY_TABLES, INDEX_TABLES, erase_deleted
from backstory.store.postgres.migrate import OWN_SCHEMA
from backstory.values.forgetting import Erasure
from backstory.values.structs import FrozenStruct


class TenantName(FrozenStruct):
    """A tenant, as its owner lists it."""

    tenant_id: int
    name: str
    created_at: datetime


def find_tenant(database: Database, name: str) -> int:
    """The number of a tenant. Raises ``UnknownName``."""
    with database.connection() as db, db.transaction():
        row = db.execute("SELECT backstory.find_tenant(%s)", (name,)).fetchone()
    if row is None or row[0] is None:
        raise UnknownName(
            f"{database.server.name}: there is no tenant {show_value(name)}",
            hint="whoever owns the tables runs: "
            f"backstory database add-tenant {shlex.quote(name)} "
            "--owner postgresql://owner@host/database",
        )
    number: int = row[0]
    return number


def named_tenant(database: Database, name: str) -> Tenant:
    """The rows of the tenant of a name, which is looked up when it is needed."""
    return Tenant(database, partial(find_tenant, database, name))


class TenantList:
    """All tenants of a database; ``url`` is of the role that owns the tables."""

    def __init__(self, url: str) -> None:
        self._server = DatabaseServer(url, named_by=OWNER_OPTION)

    def create(self, name: str) -> int:
        """Make a tenant; returns its number. Raises ``BadQuery`` for a taken name."""
        with self._server.translated(), self._server.connect() as db:
            number = _insert(db, name)
            db.execute(
                "SELECT set_config('backstory.tenant', %s, true)", (str(number),)
            )
            db.execute("INSERT INTO backstory.counters DEFAULT VALUES")
            return number

    def remove(self, name: str) -> bool:
        """Delete a tenant with all its rows and tokens. Raises ``UnknownName``.

        Returns whether the rows are gone from the files of the server as well.
        """
        tables = (*HISTORY_TABLES, *INDEX_TABLES)
        with self._server.translated(), self._server.connect() as db:
            deleted_by = _delete(db, _find(db, name))
            db.commit()
            return erase_deleted(db, tables, deleted_by=deleted_by) is Erasure.DONE

    def list(self) -> list[TenantName]:
        """All of them, in the order in which they were made."""
        with self._server.translated(), self._server.connect() as db:
            rows = db.execute(
                """
                SELECT tenant_id, name, created_at FROM backstory.tenants
                 ORDER BY tenant_id
                """
            )
            return [TenantName(*row) for row in rows]


def _insert(db: Connection, name: str) -> int:
    try:
        row = db.execute(
            "INSERT INTO backstory.tenants (name) VALUES (%s) RETURNING tenant_id",
            (name,),
        ).fetchone()
    except errors.UniqueViolation as exc:
        raise _taken(name) from exc
    except errors.CheckViolation as exc:
        raise _bad_name(name) from exc
    assert row is not None
    number: int = row[0]
    return number


def _find(db: Connection, name: str) -> int:
    row = db.execute(
        "SELECT tenant_id FROM backstory.tenants WHERE name = %s", (name,)
    ).fetchone()
    if row is None:
        raise UnknownName(
            f"there is no tenant {show_value(name)}",
            hint="'backstory database tenants' lists them",
        )
    number: int = row[0]
    return number


def _delete(db: Connection, tenant_id: int) -> int:
    """Delete all rows of a tenant; returns the number of the transaction."""
    # Triggers look for their tables in the path.
    db.execute(
        """
        SELECT set_config('backstory.tenant', %s, true),
               set_config('search_path', 'backstory, pg_temp', true)
        """,
        (str(tenant_id),),
    )
    # Wait for whoever is writing; nobody begins to write without this row.
    db.execute("SELECT 1 FROM counters WHERE tenant_id = %s FOR UPDATE", (tenant_id,))
    tables = db.execute(
        """
        SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
         WHERE relnamespace = 'backstory'::regnamespace AND relkind IN ('r', 'p')
           AND attname = 'tenant_id' AND relname <> 'tenants'
         ORDER BY relname
        """
    ).fetchall()
    for (table,) in [*tables, ("tenants",)]:
        # The owner could be a superuser, to whom row-level security does not apply.
        db.execute(
            sql.SQL("DELETE FROM {} WHERE tenant_id = %s").format(
                sql.Identifier(OWN_SCHEMA, table)
            ),
            (tenant_id,),
        )
    row = db.execute("SELECT pg_current_xact_id()::text").fetchone()
    assert row is not None
    return int(row[0])


def _bad_name(name: str) -> BadQuery:
    return BadQuery(
        f"{show_value(name)} cannot be the name of a tenant",
        hint="give it 1 to 200 characters",
    )


def _taken(name: str) -> BadQuery:
    return BadQuery(f"there is already a tenant {show_value(name)}")
