"""Prepare a PostgreSQL database that memories are kept in, and list its tenants.

This is for the role that owns the tables. A memory works with another one, which sees
no more than the rows of its tenant.
"""

from typing import TYPE_CHECKING

from backstory.address import DatabaseAddress
from backstory.errors import ConfigError
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
        from backstory.store.postgres.connecting import DatabaseServer
        from backstory.store.postgres.migrate import prepare_database
    server = DatabaseServer(address.url)
    if not server.user:
        raise ConfigError(
            "store.url does not name the user that memories are opened as",
            hint="it looks like postgresql://user:password@host:5432/database",
        )
    prepare_database(owner_url, application_role=server.user)
    is_new = address.tenant not in list_tenants(owner_url)
    if is_new:
        add_tenant(owner_url, address.tenant)
    return PreparedDatabase(server.name, server.user, address.tenant, is_new)


def add_tenant(owner_url: str, name: str) -> None:
    """Make a tenant. Raises ``BadQuery`` if there is one of that name."""
    _open_list(owner_url).create(name)


def list_tenants(owner_url: str) -> list[str]:
    """The names of all tenants, in the order in which they were made."""
    return [each.name for each in _open_list(owner_url).list()]


def _open_list(owner_url: str) -> "TenantList":
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.tenants import TenantList
    return TenantList(owner_url)
