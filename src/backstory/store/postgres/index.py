"""A search index of a tenant: find units by words, by any part, and by meaning.

``PostgresIndex`` is the front; each way of finding has a module of its own.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

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
from backstory.store.postgres import (
    index_chunks,
    passages,
    text_grams,
    units,
    vectors,
    word_rows,
)
from backstory.store.postgres.database import WAIT_S, Tenant
from backstory.store.postgres.erase import (
    HISTORY_TABLES,
    INDEX_TABLES,
    erase_deleted,
)
from backstory.store.postgres.index_connection import (
    IndexTransactions,
    replace_index,
    save_counters,
)
from backstory.store.postgres.index_states import (
    IS_ERASE_DUE,
    WAS_BLOCKED,
    get_state,
    set_state,
)
from backstory.store.postgres.index_verify import read_tables, verify_index
from backstory.store.postgres.index_writer import PostgresIndexWriter
from backstory.store.postgres.indexed_containers import list_files
from backstory.store.postgres.text_search import TextSearch
from backstory.store.postgres.vectors import PostgresVectors
from backstory.store.postgres.words import PostgresWords
from backstory.values.forgetting import Erasure
from backstory.values.units import Container, SessionRef

if TYPE_CHECKING:
    from backstory.store.base.index import Vector

# What a row takes beside its text: its other columns, and its entries in indexes.
_BYTES_A_UNIT = 300


class PostgresIndex(IndexFront):
    """A ``SearchIndex`` of a tenant; a tenant may have several, by name."""

    def __init__(
        self, tenant: Tenant, embeddings: EmbeddingCache, *, name: str = "index"
    ) -> None:
        self.embeddings = embeddings
        self._transactions = IndexTransactions(tenant, name)
        self._words = PostgresWords(self._transactions)
        self._texts = TextSearch(self._transactions, self._words)
        self._vectors = PostgresVectors(self._transactions, embeddings)
        super().__init__(self._words, self._texts, self._vectors)

    @contextmanager
    def writing(self, *, timeout_s: float = WAIT_S) -> Iterator[PostgresIndexWriter]:
        # Asked for now: later, it would take a connection while this one is in use.
        _ = self.embeddings.identity
        with self._transactions.writing(wait_s=timeout_s) as (db, counters):
            writer = PostgresIndexWriter(db, counters, self._words, self._vectors)
            yield writer
            writer.flush()
        if writer.deleted_hashes:
            with suppress(StoreLocked):
                self.delete_unused_vectors(writer.deleted_hashes)

    def one_view(self) -> AbstractContextManager[None]:
        return self._transactions.tenant.one_view()

    def shared_view(self) -> AbstractContextManager[LentView]:
        return self._transactions.tenant.shared_view()

    def begin_alone(self) -> None:
        """Make the index, if there is none, and let no other process begin it anew."""
        with self._transactions.writing(wait_s=WAIT_S) as (_, counters):
            self._transactions.own_id = counters.index_id

    # -- state ---

    def get_state(self, name: str) -> str | None:
        with self._transactions.reading() as (db, counters):
            return self._transactions.list_states(db, counters).get(name)

    def list_states(self) -> dict[str, str]:
        with self._transactions.reading() as (db, counters):
            return dict(self._transactions.list_states(db, counters))

    def counts(self) -> IndexCounts:
        with self._transactions.reading() as (db, counters):
            index_id = counters.index_id
            unit_count, with_meaning, messages = units.count_kinds(db, index_id)
            in_passages = passages.count_embedded(db, index_id)
            waiting = passages.count_waiting(db, index_id)
            return IndexCounts(
                unit_count,
                with_meaning + in_passages + waiting,
                counters.vector_count + in_passages,
                messages,
            )

    def count_units(self) -> int:
        with self._transactions.reading() as (_, counters):
            return counters.unit_count

    def list_files(self) -> list[IndexedFile]:
        with self._transactions.reading() as (db, counters):
            return list_files(db, counters.index_id)

    # -- what was found ---

    def list_newest(self, where: UnitFilter, limit: int) -> list[int]:
        if not where.kinds:
            return []
        with self._transactions.reading() as (db, counters):
            return units.list_newest(db, counters.index_id, where, limit)

    def count_by_session(
        self, spans: Sequence[tuple[int, int]], where: UnitFilter
    ) -> list[ActiveSession]:
        with self._transactions.reading() as (db, counters):
            return units.count_by_session(db, counters.index_id, spans, where)

    def list_notes(self, where: UnitFilter) -> dict[int, str]:
        if not where.kinds:
            return {}
        with self._transactions.reading() as (db, counters):
            return units.list_notes(db, counters.index_id, where)

    def get_units(self, unit_ids: Collection[int]) -> dict[int, Unit]:
        with self._transactions.reading() as (db, counters):
            return units.get_units(db, counters.index_id, unit_ids)

    def find_sessions_with_tools(
        self, sessions: Collection[SessionRef]
    ) -> frozenset[SessionRef]:
        with self._transactions.reading() as (db, counters):
            return units.find_sessions_with_tools(db, counters.index_id, sessions)

    def find_turn_parts(self, unit_ids: Collection[int]) -> dict[int, TurnPart]:
        with self._transactions.reading() as (db, counters):
            return units.find_turn_parts(db, counters.index_id, unit_ids)

    def list_last_messages(self, limit: int) -> list[tuple[Unit, bytes | None]]:
        with self._transactions.reading() as (db, counters):
            return units.list_last_messages(db, counters.index_id, limit)

    def iter_texts(self) -> Iterator[tuple[Unit, str]]:
        with self._transactions.reading() as (db, counters):
            texts = units.list_texts(db, counters.index_id)
        for each in texts:
            yield each.unit, each.folded

    def get_texts(self, unit_ids: Collection[int]) -> dict[int, IndexedText]:
        with self._transactions.reading() as (db, counters):
            texts = units.list_texts(db, counters.index_id, unit_ids)
        return {each.unit.unit_id: each for each in texts}

    def get_notes(self, unit_ids: Collection[int]) -> dict[int, Note]:
        with self._transactions.reading() as (db, counters):
            return units.get_notes(db, counters.index_id, unit_ids)

    def find_chunks(
        self, places: Collection[tuple[Container, int]]
    ) -> dict[tuple[Container, int], Chunk]:
        with self._transactions.reading() as (db, counters):
            return index_chunks.find_chunks(db, counters.index_id, places)

    # -- vectors ---

    def list_to_embed(
        self, limit: int, *, without: Collection[int] = ()
    ) -> list[ToEmbed]:
        with self._transactions.reading() as (db, counters):
            return vectors.list_to_embed(db, counters.index_id, limit, without)

    def list_passages_to_embed(
        self, limit: int, *, without: Collection[int] = ()
    ) -> list[ToEmbed]:
        with self._transactions.reading() as (db, counters):
            return passages.list_to_embed(db, counters.index_id, limit, without)

    def count_to_embed(self, where: UnitFilter) -> tuple[int, int]:
        with self._transactions.reading() as (db, counters):
            return vectors.count_to_embed(db, counters.index_id, where)

    def get_ready_to_compare(self) -> None:
        """The server compares vectors, or there were searches before this one."""

    def to_vector(self, stored: bytes) -> "Vector":
        return np.frombuffer(stored, np.float32)

    def delete_unused_vectors(self, hashes: Collection[bytes] | None = None) -> None:
        if hashes is None:
            hashes = self.embeddings.list_hashes()
        with self._transactions.reading() as (db, _):
            unused = units.list_unused_hashes(db, hashes)
        if unused:
            self.embeddings.delete(unused)

    # -- maintenance ---

    def interrupt(self, thread_ids: Collection[int]) -> None:
        self._transactions.interrupt(thread_ids)

    def get_ready(self, folded: str) -> None:
        """The server has it all."""

    def check(self) -> None:
        with self._transactions.reading() as (db, counters):
            read_tables(db, counters.index_id)

    def verify(self) -> list[str]:
        try:
            with self._transactions.reading() as (db, counters):
                return verify_index(db, counters)
        except StoreDamaged as exc:
            return [str(exc)]

    def tidy(self) -> None:
        with self._transactions.writing(wait_s=WAIT_S) as (db, counters):
            if word_rows.clean_segments(db, counters.index_id):
                save_counters(db, counters)
            unfinished = text_grams.list_missing(db, counters.index_id)
            due = get_state(db, counters.index_id, IS_ERASE_DUE)
            if due:
                unfinished += text_grams.list_with_changed(db, counters.index_id)
        for segment_id in unfinished:
            # One by one, so that others can write in between.
            with self._transactions.writing(wait_s=WAIT_S) as (db, counters):
                text_grams.make_grams(db, counters.index_id, segment_id)
                save_counters(db, counters)
        if not due:
            return
        self.delete_unused_vectors()
        tables = INDEX_TABLES if due != WAS_BLOCKED else HISTORY_TABLES + INDEX_TABLES
        with self._transactions.tenant.database.connection() as db:
            outcome = erase_deleted(db, tables)
        # Who may still see what was deleted here keeps it in the history as well, which
        # is not looked at again.
        left = WAS_BLOCKED if outcome is Erasure.BLOCKED else ""
        if left != due:
            with self._transactions.writing(wait_s=WAIT_S) as (db, counters):
                set_state(db, counters.index_id, IS_ERASE_DUE, left)
                save_counters(db, counters)

    def replace_with(self, other: "PostgresIndex") -> None:
        old, new = self._transactions, other._transactions
        with old.tenant.writing_apart(is_durable=False) as db:
            replace_index(db, old.name, new)

    def has_leftovers(self) -> bool:
        """Always False: the server undoes what a killed writer has done."""
        return False

    def delete_leftovers(self) -> None:
        """There are none; but whoever writes is waited for, as it is promised."""
        with self._transactions.writing(wait_s=1.0):
            pass

    def size_bytes(self) -> int:
        """How much its own rows take, roughly; tables are shared with others."""
        with self._transactions.reading() as (db, counters):
            size = units.sum_text_bytes(db, counters.index_id)
            size += word_rows.size_bytes(db, counters.index_id)
        return size + counters.unit_count * _BYTES_A_UNIT + self.embeddings.size_bytes()

    def close(self) -> None:
        """Nothing to do: the connections belong to the database."""
