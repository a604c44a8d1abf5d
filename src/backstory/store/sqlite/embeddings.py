"""embeddings.db: vectors by the hash of their text and the model that made them.

They are costly to make and always the same, so they have a file of their own that
outlives the index: a rebuilt index finds all of them here.
"""

import threading
import weakref
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from backstory.errors import StoreProblem
from backstory.store.base.recent_vectors import RecentVectors
from backstory.store.sqlite.connection import (
    empty_log,
    is_large,
    open_database,
    set_durability,
    transaction,
    translated,
)
from backstory.store.sqlite.opening import Connections
from backstory.store.sqlite.readable_text import read_invalid_text
from backstory.store.sqlite.rows import to_dict, to_json
from backstory.system.fork_safety import reset_in_child

if TYPE_CHECKING:
    from backstory.store.base.index import Vector

MIGRATIONS = "embedding_migrations"
_REPAIRED_NAME = "repaired-embeddings.db"


class SqliteEmbeddings:
    """An ``EmbeddingCache`` in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = Connections(path, lambda: _open(path))
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._recent = RecentVectors()
        self._identities: weakref.WeakKeyDictionary[apsw.Connection, str] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def _db(self) -> apsw.Connection:
        return self._connections.current()

    @property
    def identity(self) -> str:
        with translated(self.path):
            db = self._db
            # Safe to remember: a file keeps its identity, and another file has another
            # connection.
            identity = self._identities.get(db)
            if identity is None:
                identity = self._identities[db] = _read_identity(db)
            return identity

    def find(self, fingerprint: str, hashes: Collection[bytes]) -> dict[bytes, int]:
        with translated(self.path):
            rows = self._db.execute(
                """
                SELECT content_hash, embedding_id FROM embeddings
                 WHERE model_id = (SELECT model_id FROM models WHERE fingerprint = ?)
                   AND content_hash IN (SELECT unhex(value) FROM json_each(?))
                """,
                (fingerprint, _hex_list(hashes)),
            )
            return to_dict(rows)

    def has_any(self, fingerprint: str) -> bool:
        with translated(self.path):
            found = self._db.execute(
                """
                SELECT EXISTS (
                    SELECT 1 FROM embeddings JOIN models USING (model_id)
                     WHERE fingerprint = ?)
                """,
                (fingerprint,),
            ).get
            return bool(found)

    def add(
        self, fingerprint: str, vectors: Mapping[bytes, "Vector"]
    ) -> dict[bytes, int]:
        with translated(self.path), self._lock, transaction(self._db):
            self._db.execute(
                "INSERT OR IGNORE INTO models (fingerprint) VALUES (?)", (fingerprint,)
            )
            model_id = self._db.execute(
                "SELECT model_id FROM models WHERE fingerprint = ?", (fingerprint,)
            ).get
            self._db.executemany(
                """
                INSERT OR IGNORE INTO embeddings (model_id, content_hash, vector)
                VALUES (?, ?, ?)
                """,
                [(model_id, key, each.tobytes()) for key, each in vectors.items()],
            )
            # Still in the transaction, because another process may delete unused
            # vectors.
            return self.find(fingerprint, vectors)

    def read(self, embedding_ids: Collection[int]) -> dict[int, bytes]:
        identity = self.identity
        found = self._recent.find(identity, embedding_ids)
        if missing := [each for each in embedding_ids if each not in found]:
            read = self._read(missing)
            self._recent.keep(identity, read)
            found |= read
        return found

    def _read(self, embedding_ids: Collection[int]) -> dict[int, bytes]:
        with translated(self.path):
            rows = self._db.execute(
                """
                SELECT embedding_id, vector FROM embeddings
                 WHERE embedding_id IN (SELECT value FROM json_each(?))
                """,
                (to_json(embedding_ids),),
            )
            return to_dict(rows)

    def delete(self, hashes: Collection[bytes]) -> None:
        with translated(self.path), self._lock:
            with transaction(self._db):
                self._db.execute(
                    """
                    DELETE FROM embeddings
                     WHERE content_hash IN (SELECT unhex(value) FROM json_each(?))
                    """,
                    (_hex_list(hashes),),
                )
            empty_log(self._db)
            self._recent.clear()

    def list_hashes(self) -> set[bytes]:
        with translated(self.path):
            rows = self._db.execute("SELECT DISTINCT content_hash FROM embeddings")
            return {key for (key,) in rows}

    @staticmethod
    def repair(path: Path) -> None:
        """Keep the vectors of a damaged file that can be read, and no others."""
        # Imported here because damage is rare.
        from backstory.store.sqlite.salvage import remove_database, salvage_database

        new = path.with_name(_REPAIRED_NAME)
        # The repaired file gets a new identity, so every index takes its vectors from
        # it again.
        with translated(path), suppress(OSError, StoreProblem):
            salvage_database(path, MIGRATIONS, new, without={"state"})
        remove_database(path)
        with suppress(FileNotFoundError):
            new.replace(path)
        remove_database(new)

    def size_bytes(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def close(self) -> None:
        self._connections.close()


def _read_identity(db: apsw.Connection) -> str:
    return str(db.execute("SELECT value FROM state WHERE name = 'identity'").get)


def _open(path: Path) -> apsw.Connection:
    db = open_database(path, MIGRATIONS)
    # A damaged name that is not UTF-8 is just an unknown one: its vectors are made
    # again.
    read_invalid_text(db)
    with translated(path):
        # What a power cut loses can be made again.
        set_durability(db, is_durable=False)
        if is_large(path):
            # Room for the inner pages of a million vectors, which every search needs.
            db.execute("PRAGMA cache_size = -8000")
    return db


def _hex_list(hashes: Collection[bytes]) -> str:
    return to_json(each.hex() for each in hashes)
