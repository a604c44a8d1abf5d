"""Prepare a PostgreSQL database that memories are kept in, and list its tenants.

This is for the role that owns the tables. A memory works with another one, which sees
no more than the rows of its tenant.
"""

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from backstory.address import DatabaseAddress
from backstory.errors import ConfigError, StoreUnreachable
from backstory.stores import needing_psycopg
from backstory.values.structs import FrozenStruct

if TYPE_CHECKING:
    from backstory.store.postgres.tenants import TenantList


class PreparedDatabase(FrozenStruct):
    """A database that can be used now: by which role, and for which tenant."""

    name: str
    role: str
    tenant: str
    is_new_tenant: bool


def prepare(owner_url: str, address: DatabaseAddress) -> PreparedDatabase:
    """Bring the tables up to date, and let the role of ``address`` use them.

    Its tenant is made if there is none of that name. Safe to repeat.
    """
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.connecting import OWNER_OPTION, DatabaseServer
        from backstory.store.postgres.migrate import is_prepared, prepare_database
    role = DatabaseServer(address.url).user
    if not role:
        raise ConfigError(
            "store.url does not name the user that memories are opened as",
            hint="it looks like postgresql://user:password@host:5432/database",
        )
    name = DatabaseServer(owner_url, named_by=OWNER_OPTION).name
    prepare_database(owner_url, application_role=role)
    # Whoever owns the tables may have no password of the other role.
    with suppress(StoreUnreachable):
        if not is_prepared(address.url):
            raise ConfigError(
                f"{name} is ready, but store.url names another database",
                hint="name the same one in store.url and --owner",
            )
    is_new = address.tenant not in list_tenants(owner_url)
    if is_new:
        add_tenant(owner_url, address.tenant)
    return PreparedDatabase(name, role, address.tenant, is_new)


def check(url: str, *, named_by: str) -> None:
    """Raise what is wrong with a database, if a memory cannot be kept in it.

    ``named_by`` is the setting or the option that has its address.
    """
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.database import Database
    with closing(Database(url, named_by=named_by)) as database, database.connection():
        pass


def add_tenant(owner_url: str, name: str) -> None:
    """Make a tenant. Raises ``BadQuery`` if there is one of that name."""
    _open_list(owner_url).create(name)


def remove_tenant(owner_url: str, name: str) -> bool:
    """Delete a tenant and all that it has. Raises ``UnknownName``.

    Returns whether it is gone from the files of the server as well.
    """
    return _open_list(owner_url).remove(name)


def list_tenants(owner_url: str) -> list[str]:
    """The names of all tenants, in the order in which they were made."""
    return [each.name for each in _open_list(owner_url).list()]


def _open_list(owner_url: str) -> "TenantList":
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.tenants import TenantList
    return TenantList(owner_url)
