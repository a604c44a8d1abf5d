"""index.db: find units by words, by any part of their text, and by meaning.

``SqliteIndex`` is the front; each way to search has a module of its own.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from backstory.errors import StoreDamaged, StoreLocked
from backstory.store.base.index import (
    ActiveSession,
    Chunk,
    EmbeddingCache,
    IndexCounts,
    IndexedFile,
    IndexedText,
    LentView,
    Note,
    ToEmbed,
    TurnPart,
    Unit,
    UnitFilter,
)
from backstory.store.base.index_front import IndexFront
from backstory.store.sqlite import chunks, index_maintenance, passages, units
from backstory.store.sqlite.connection import BUSY_TIMEOUT_MS, transaction, translated
from backstory.store.sqlite.index_connection import IndexConnection
from backstory.store.sqlite.index_state import Derived, get_state, list_states
from backstory.store.sqlite.indexed_containers import list_files
from backstory.store.sqlite.second_reader import SecondReader
from backstory.store.sqlite.text_scan import TextScan
from backstory.store.sqlite.unit_counts import UNITS, count_units, get_count
from backstory.store.sqlite.vector_search import VectorSearch
from backstory.store.sqlite.words import WordSearch
from backstory.system.threads import count_cores
from backstory.values.units import Container, SessionRef

if TYPE_CHECKING:
    from backstory.store.base.index import Vector
    from backstory.store.sqlite.index_writer import SqliteIndexWriter


class SqliteIndex(IndexFront):
    """A ``SearchIndex`` in an SQLite file and a file of texts beside it."""

    def __init__(self, path: Path, embeddings: EmbeddingCache) -> None:
        self.path = path
        self.embeddings = embeddings
        self._connection = IndexConnection(path, self._verify)
        self._words = WordSearch(self._connection)
        self._texts = TextScan(self._connection)
        self._vectors = VectorSearch(self._connection, embeddings)
        self._with_tools: Derived[dict[SessionRef, bool]] = Derived()
        self._second_reader = SecondReader(path, count_cores())
        super().__init__(self._words, self._texts, self._vectors)

    @contextmanager
    def writing(
        self, *, timeout_s: float = BUSY_TIMEOUT_MS / 1000
    ) -> "Iterator[SqliteIndexWriter]":
        # Imported here because searches write nothing unless something is new.
        from backstory.store.sqlite.index_writer import SqliteIndexWriter

        with self._connection.reading() as db:
            db.set_busy_timeout(round(timeout_s * 1000))
            try:
                with transaction(db):
                    writer = SqliteIndexWriter(
                        self._connection, self._texts, self._vectors
                    )
                    yield writer
                    writer.flush()
                # If another process is writing now, this is left to the next writer.
                with suppress(StoreLocked), translated(self.path):
                    writer.clean_up()
                    if writer.deleted_hashes:
                        self.delete_unused_vectors(writer.deleted_hashes)
            finally:
                db.set_busy_timeout(BUSY_TIMEOUT_MS)

    def one_view(self) -> AbstractContextManager[None]:
        """Do nothing: in SQLite it would not be faster."""
        return nullcontext()

    def shared_view(self) -> AbstractContextManager[LentView]:
        return nullcontext(self._second_reader)

    # -- state ---

    def get_state(self, name: str) -> str | None:
        with self._connection.reading() as db:
            return get_state(db, name)

    def list_states(self) -> dict[str, str]:
        with self._connection.reading() as db:
            return list_states(db)

    def counts(self) -> IndexCounts:
        with self._connection.reading() as db:
            return count_units(db)

    def count_units(self) -> int:
        with self._connection.reading() as db:
            return get_count(db, UNITS)

    def list_files(self) -> list[IndexedFile]:
        with self._connection.reading() as db:
            return list_files(db)

    # -- what was found ---

    def list_newest(self, where: UnitFilter, limit: int) -> list[int]:
        if not where.kinds:
            return []
        with self._connection.reading() as db:
            places = units.newest_places(db, where)
            return [unit_id for unit_id, _, _ in islice(places, limit)]

    def count_by_session(
        self, spans: Sequence[tuple[int, int]], where: UnitFilter
    ) -> list[ActiveSession]:
        with self._connection.reading() as db:
            return units.count_by_session(db, spans, where)

    def list_notes(self, where: UnitFilter) -> dict[int, str]:
        if not where.kinds:
            return {}
        with self._connection.reading() as db:
            return units.list_notes(db, where)

    def get_units(self, unit_ids: Collection[int]) -> dict[int, Unit]:
        with self._connection.reading() as db:
            return units.get_units(db, unit_ids)

    def find_sessions_with_tools(
        self, sessions: Collection[SessionRef]
    ) -> frozenset[SessionRef]:
        with self._connection.reading() as db:
            known = self._with_tools.find(db)
            if known is None:
                self._with_tools.keep(db, known := {})
            # One by one: subtracting the keys would go through all that are known.
            if new := {each for each in sessions if each not in known}:
                found = units.find_sessions_with_tools(db, new)
                known |= {each: each in found for each in new}
            return frozenset(each for each in sessions if known[each])

    def find_turn_parts(self, unit_ids: Collection[int]) -> dict[int, TurnPart]:
        with self._connection.reading() as db:
            return units.find_turn_parts(db, unit_ids)

    def list_last_messages(self, limit: int) -> list[tuple[Unit, bytes | None]]:
        with self._connection.reading() as db:
            return units.list_last_messages(db, limit)

    def iter_texts(self) -> Iterator[tuple[Unit, str]]:
        yield from self._connection.scan(self._texts.list_all)

    def get_texts(self, unit_ids: Collection[int]) -> dict[int, IndexedText]:
        return self._texts.get_texts(unit_ids)

    def get_notes(self, unit_ids: Collection[int]) -> dict[int, Note]:
        with self._connection.reading() as db:
            return units.get_notes(db, unit_ids)

    def find_chunks(
        self, places: Collection[tuple[Container, int]]
    ) -> dict[tuple[Container, int], Chunk]:
        with self._connection.reading() as db:
            return chunks.find_chunks(db, places)

    # -- vectors ---

    def list_to_embed(
        self, limit: int, *, without: Collection[int] = ()
    ) -> list[ToEmbed]:
        with self._connection.reading() as db:
            return units.list_to_embed(db, limit, without)

    def list_passages_to_embed(
        self, limit: int, *, without: Collection[int] = ()
    ) -> list[ToEmbed]:
        with self._connection.reading() as db:
            return passages.list_to_embed(db, limit, without)

    def count_to_embed(self, where: UnitFilter) -> tuple[int, int]:
        with self._connection.reading() as db:
            return units.count_to_embed(db, where)

    def get_ready_to_compare(self) -> None:
        self._vectors.read_pages()

    def to_vector(self, stored: bytes) -> "Vector":
        return self._vectors.pages.to_vector(stored)

    def delete_unused_vectors(self, hashes: Collection[bytes] | None = None) -> None:
        if hashes is None:
            hashes = self.embeddings.list_hashes()
        with self._connection.reading() as db:
            unused = units.list_unused_hashes(db, hashes)
        if unused:
            self.embeddings.delete(unused)

    # -- maintenance ---

    def interrupt(self, thread_ids: Collection[int]) -> None:
        self._connection.interrupt(thread_ids)

    def get_ready(self, folded: str) -> None:
        self._texts.get_ready(folded)

    def check(self) -> None:
        with self._connection.reading() as db:
            units.read_notes_and_tables(db)
        self._texts.check()

    def verify(self) -> list[str]:
        try:
            return self._connection.scan(self._verify)
        except StoreDamaged as exc:
            return [str(exc)]

    def _verify(self, db: apsw.Connection) -> list[str]:
        # Imported here because only a check needs it.
        from backstory.store.sqlite.index_verify import verify_tables

        return [
            *verify_tables(db),
            *self._texts.verify(db),
            *self._vectors.verify(db),
        ]

    def tidy(self) -> None:
        with translated(self.path):
            db = self._connection.db
            if index_maintenance.tidy_words(db):
                self.delete_unused_vectors()
            index_maintenance.empty_log_if_due(db)

    def replace_with(self, other: "SqliteIndex") -> None:
        with translated(self.path):
            index_maintenance.replace_index(self._connection, other._connection)

    def has_leftovers(self) -> bool:
        name = self.get_state("text_file")
        return bool(index_maintenance.list_other_texts(self.path, name))

    def delete_leftovers(self) -> None:
        # In a write transaction, so that no other writer is about to use one of them.
        with self.writing(timeout_s=1.0) as writer:
            index_maintenance.delete_other_texts(self.path, writer.text_name)

    @staticmethod
    def reset(path: Path) -> None:
        """Turn a file into an empty database, whatever is in it."""
        index_maintenance.reset_database(path)

    def size_bytes(self) -> int:
        return index_maintenance.size_bytes(self.path) + self.embeddings.size_bytes()

    def close(self) -> None:
        self._connection.close()
        self._texts.close()
