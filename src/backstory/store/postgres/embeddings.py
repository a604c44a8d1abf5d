"""The tables ``embedding_caches`` and ``embeddings``: vectors that were made once.

They are costly to make and always the same, so they outlive the index: a rebuilt one
finds all of them here.
"""

import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backstory.store.base.recent_vectors import RecentVectors
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import Tenant
from backstory.store.postgres.rows import key_of, looked_up, to_dict
from backstory.system.fork_safety import reset_in_child

if TYPE_CHECKING:
    from backstory.store.base.index import Vector

_ID_BITS = 30
_READ = "SELECT embedding_id, vector FROM " + looked_up(
    "embeddings", "embedding_id, vector", key="embedding_id", within="cache_id"
)


class PostgresEmbeddings:
    """An ``EmbeddingCache`` of a tenant."""

    def __init__(self, tenant: Tenant, name: str = "embeddings") -> None:
        self.tenant = tenant
        self.name = name
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._recent = RecentVectors()
        self._known: tuple[int, str] | None = None

    @property
    def identity(self) -> str:
        return self._find_cache()[1]

    @property
    def cache_id(self) -> int:
        """The number that its rows have."""
        return self._find_cache()[0]

    def _find_cache(self) -> tuple[int, str]:
        # Not under a lock: two threads find the same.
        known = self._known
        if known is None:
            with self.tenant.writing_apart(is_durable=False) as db:
                db.execute(
                    """
                    INSERT INTO embedding_caches (name, cache_id) VALUES (%s, %s)
                        ON CONFLICT (tenant_id, name) DO NOTHING
                    """,
                    (self.name, secrets.randbits(_ID_BITS)),
                )
                row = db.execute(
                    "SELECT cache_id, identity FROM embedding_caches WHERE name = %s",
                    (self.name,),
                ).fetchone()
            assert row is not None
            known = self._known = (row[0], row[1])
        return known

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, int]]:
        cache_id = self.cache_id
        with self.tenant.reading() as db:
            yield db, cache_id

    def find(self, fingerprint: str, hashes: Collection[bytes]) -> dict[bytes, int]:
        with self._reading() as (db, cache_id):
            return _find(db, cache_id, key_of(fingerprint), hashes)

    def has_any(self, fingerprint: str) -> bool:
        with self._reading() as (db, cache_id):
            row = db.execute(
                """
                SELECT EXISTS (SELECT 1 FROM embeddings
                                WHERE cache_id = %s AND model_key = %s)
                """,
                (cache_id, key_of(fingerprint)),
            ).fetchone()
            return row == (True,)

    def add(
        self, fingerprint: str, vectors: Mapping[bytes, "Vector"]
    ) -> dict[bytes, int]:
        if not vectors:
            return {}
        cache_id, model_key = self.cache_id, key_of(fingerprint)
        with self.tenant.writing_apart(is_durable=False) as db:
            # This also locks the row, so that nobody deletes what is found here.
            row = db.execute(
                """
                UPDATE embedding_caches SET last_embedding_id = last_embedding_id + %s
                 WHERE cache_id = %s RETURNING last_embedding_id
                """,
                (len(vectors), cache_id),
            ).fetchone()
            assert row is not None
            first = row[0] - len(vectors) + 1
            db.execute(
                """
                INSERT INTO embeddings (cache_id, model_key, embedding_id, content_hash,
                                        vector)
                SELECT %s, %s, * FROM unnest(%s::bigint[], %b::bytea[], %b::bytea[])
                    ON CONFLICT (tenant_id, cache_id, model_key, content_hash)
                    DO NOTHING
                """,
                (
                    cache_id,
                    model_key,
                    list(range(first, row[0] + 1)),
                    list(vectors),
                    [each.tobytes() for each in vectors.values()],
                ),
            )
            return _find(db, cache_id, model_key, vectors)

    def read(self, embedding_ids: Collection[int]) -> dict[int, bytes]:
        identity = self.identity
        found = self._recent.find(identity, embedding_ids)
        if missing := [each for each in embedding_ids if each not in found]:
            with self._reading() as (db, cache_id):
                rows = db.execute(
                    _READ.encode(), (list({*missing}), cache_id), binary=True
                )
                read = {number: bytes(vector) for number, vector in rows}
            self._recent.keep(identity, read)
            found |= read
        return found

    def delete(self, hashes: Collection[bytes]) -> None:
        cache_id = self.cache_id
        with self.tenant.writing_apart(is_durable=False) as db:
            db.execute(
                "SELECT 1 FROM embedding_caches WHERE cache_id = %s FOR UPDATE",
                (cache_id,),
            )
            db.execute(
                """
                DELETE FROM embeddings
                 WHERE cache_id = %s AND content_hash = ANY(%b::bytea[])
                """,
                (cache_id, list(hashes)),
            )
        self._recent.clear()

    def list_hashes(self) -> set[bytes]:
        with self._reading() as (db, cache_id):
            rows = db.execute(
                "SELECT DISTINCT content_hash FROM embeddings WHERE cache_id = %s",
                (cache_id,),
            )
            return {key for (key,) in rows}

    def size_bytes(self) -> int:
        """How much its own rows take; tables are shared with other tenants."""
        with self._reading() as (db, cache_id):
            row = db.execute(
                """
                SELECT COALESCE(SUM(octet_length(vector) + octet_length(content_hash)
                                    + octet_length(model_key) + 40), 0)::bigint
                  FROM embeddings WHERE cache_id = %s
                """,
                (cache_id,),
            ).fetchone()
            assert row is not None
            return int(row[0])

    def close(self) -> None:
        """Nothing to do: the connections belong to the database."""


def _find(
    db: Connection, cache_id: int, model_key: bytes, hashes: Collection[bytes]
) -> dict[bytes, int]:
    # Without it, the planner may read all of a new tenant again for each, by a smaller
    # index, and sort the one that is left.
    db.execute("SET LOCAL enable_sort TO off")
    rows = db.execute(
        """
        SELECT content_hash, embedding_id
          FROM unnest(%b::bytea[]) AS wanted (hash)
         CROSS JOIN LATERAL (
               SELECT content_hash, embedding_id FROM embeddings
                WHERE cache_id = %s AND model_key = %s
                  AND content_hash BETWEEN wanted.hash AND wanted.hash
                ORDER BY content_hash LIMIT 1) AS embeddings
        """,
        (list({*hashes}), cache_id, model_key),
    )
    return to_dict(rows)
