"""Open what a server needs from a home, or from the database that it is in."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from backstory.address import DatabaseAddress
from backstory.store.base.access_tokens import AccessTokens
from backstory.store.base.jobs import JobQueue
from backstory.store.token_file import FileTokens
from backstory.stores import needing_psycopg, open_database


def open_access_tokens(
    home: Path,
    database: DatabaseAddress | None,
    *,
    clock: Callable[[], datetime],
    owner_url: str = "",
) -> AccessTokens:
    """The tokens for a server of this home, or of all tenants of a database.

    ``owner_url`` is for the role that owns the database's tables; without it, tokens
    can only be looked up.
    """
    if database is None:
        return FileTokens(home, clock)
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.access_tokens import PostgresTokens
    return PostgresTokens(open_database(database.url), owner_url=owner_url)


def open_jobs(database: DatabaseAddress) -> JobQueue:
    """The jobs of all tenants of a database."""
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.jobs import PostgresJobs
    return PostgresJobs(open_database(database.url))
