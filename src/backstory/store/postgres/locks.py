"""Locks between all processes of a tenant, on whatever machine they run.

A lock belongs to a transaction, which stays open as long as the lock is held and does
nothing else: it keeps no row from being vacuumed. The server ends it when its process
is gone, and a pooler such as PgBouncer hands its connection to nobody else.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

from psycopg.rows import TupleRow

from backstory.store.postgres.database import Tenant


class TenantLocks:
    """The ``Locks`` of one tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        with self._asked(name, "SELECT pg_advisory_xact_lock(%s, %s)"):
            yield

    @contextmanager
    def try_locked(self, name: str) -> Iterator[bool]:
        statement = "SELECT pg_try_advisory_xact_lock(%s, %s)"
        with self._asked(name, statement) as answer:
            yield answer == (True,)

    @contextmanager
    def _asked(self, name: str, statement: LiteralString) -> Iterator[TupleRow | None]:
        # Two numbers of 32 bits; no two of our names have the same.
        key = self._tenant.tenant_id, zlib.crc32(name.encode()) - 2**31
        server = self._tenant.database.server
        with server.translated():
            # Not one of the database's: whoever holds the lock may need all of them.
            db = server.connect()
        try:
            with server.translated():
                db.execute("SET LOCAL idle_in_transaction_session_timeout TO 0")
                answer = db.execute(statement, key).fetchone()
            yield answer
        finally:
            db.close()
