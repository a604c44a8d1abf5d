"""The table ``notes``: MEMORY.md, the daily logs and the records beside them."""

import secrets

from backstory.store.base.notes import NoteEntry
from backstory.store.postgres.database import Tenant

# Random, so that a note that was deleted and made again has no version it had before.
_VERSION_BITS = 62
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class PostgresNotes:
    """A ``NoteStore`` for one tenant of a database."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant

    def list_entries(self) -> list[NoteEntry]:
        with self.tenant.reading() as db:
            rows = db.execute(
                """
                SELECT name, version, modified_at, octet_length(content)
                  FROM notes ORDER BY name
                """
            )
            return [NoteEntry(*row) for row in rows]

    def read(self, name: str) -> tuple[int, bytes] | None:
        with self.tenant.reading() as db:
            row = db.execute(
                "SELECT version, content FROM notes WHERE name = %s", (name,)
            ).fetchone()
            return None if row is None else (row[0], bytes(row[1]))

    def replace(self, name: str, content: bytes, *, version: int | None) -> bool:
        new_version = secrets.randbits(_VERSION_BITS)
        with self.tenant.writing_apart() as db:
            if version is None:
                changed = db.execute(
                    f"""
                    INSERT INTO notes (name, version, modified_at, content)
                    VALUES (%s, %s, {_NOW}, %s)
                        ON CONFLICT (tenant_id, name) DO NOTHING
                    """.encode(),
                    (name, new_version, content),
                )
            else:
                changed = db.execute(
                    f"""
                    UPDATE notes
                       SET version = %s, modified_at = {_NOW}, content = %s
                     WHERE name = %s AND version = %s
                    """.encode(),
                    (new_version, content, name, version),
                )
            return changed.rowcount == 1

    def delete(self, name: str) -> None:
        with self.tenant.writing_apart() as db:
            db.execute("DELETE FROM notes WHERE name = %s", (name,))
