"""One transaction that writes to a search index."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from operator import itemgetter

from backstory.store.base.containers import to_number
from backstory.store.base.index import IndexedFile, MadePassages, MadeVector
from backstory.store.base.index_front import VECTORS_OF
from backstory.store.postgres import (
    index_chunks,
    indexed_containers,
    passages,
    text_grams,
    units,
    vectors,
)
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.folded_texts import size_bytes, to_stored
from backstory.store.postgres.index_connection import (
    IndexCounters,
    delete_rows,
    save_counters,
)
from backstory.store.postgres.index_states import (
    IS_ERASE_DUE,
    WAS_BLOCKED,
    get_state,
    set_state,
)
from backstory.store.postgres.postings import UnitWords, to_unit_words
from backstory.store.postgres.vectors import PostgresVectors
from backstory.store.postgres.word_writer import WordWriter
from backstory.store.postgres.words import PostgresWords
from backstory.text.words import fold, index_words
from backstory.values.identity import meaning_hash, passages_hash
from backstory.values.structs import Struct, field
from backstory.values.units import (
    Container,
    FileRef,
    NewChunk,
    NewUnit,
    SessionRef,
    first_note_id,
    is_session,
)


class _NewRows(Struct):
    """Rows of new units and chunks, and sessions that were indexed, to be stored."""

    of_units: list[units.UnitRow] = field(default_factory=list)
    of_notes: list[NewUnit] = field(default_factory=list)
    of_passages: list[tuple[int, int, bytes]] = field(default_factory=list)
    of_chunks: list[index_chunks.ChunkRow] = field(default_factory=list)
    of_sessions: dict[int, tuple[int, datetime]] = field(default_factory=dict)

    def store(self, db: Connection, index_id: int) -> None:
        # All titles and previews without grams are compared. Beside the messages of its
        # session, each would be on another page.
        units.insert_units(db, index_id, sorted(self.of_units, key=itemgetter(0)))
        units.insert_notes(db, index_id, self.of_notes)
        passages.insert_passages(db, index_id, self.of_passages)
        index_chunks.insert_chunks(db, index_id, self.of_chunks)
        indexed_containers.replace_sessions(db, index_id, self.of_sessions)


class PostgresIndexWriter:
    """An ``IndexWriter`` for one transaction.

    What is new is stored when something else is asked of the database, or at the end:
    a statement for many sessions takes little longer than one for a single session.
    """

    def __init__(
        self,
        db: Connection,
        counters: IndexCounters,
        word_search: PostgresWords,
        vector_search: PostgresVectors,
    ) -> None:
        self._connection = db
        self._new_rows = _NewRows()
        self._index_id = counters.index_id
        self._counters = counters
        self._word_search = word_search
        self._vector_search = vector_search
        self._words = WordWriter(db, counters.index_id, counters.tail_count)
        # Hashes of texts that may not need their vectors any more.
        self.deleted_hashes: set[bytes] = set()
        # Units whose texts are new, or gone.
        self._changed: set[int] = set()

    @property
    def _db(self) -> Connection:
        """The connection, after what is new has been stored."""
        if self._new_rows != _NewRows():
            new, self._new_rows = self._new_rows, _NewRows()
            new.store(self._connection, self._index_id)
        return self._connection

    def get_state(self, name: str) -> str | None:
        return get_state(self._db, self._index_id, name)

    def set_state(self, name: str, value: str) -> None:
        set_state(self._db, self._index_id, name, value)

    def _count(self, **more: int) -> None:
        """Add to the counters of the index."""
        self._counters = self._counters._replace(
            **{name: getattr(self._counters, name) + by for name, by in more.items()}
        )

    # -- units ---

    def replace_units(self, new: Iterable[NewUnit], *, are_new: bool = False) -> None:
        wanted = {unit.unit_id: unit for unit in new}
        stored = {} if are_new else units.find_stored(self._db, self._index_id, wanted)
        words = {unit_id: self._to_words(unit) for unit_id, unit in wanted.items()}
        rows: list[units.UnitRow] = []
        gone: list[int] = []
        recounted: dict[int, int] = {}
        for unit_id, unit in wanted.items():
            folded = fold(unit.text)
            text = to_stored(folded)
            key = None if unit.meaning is None else meaning_hash(unit.meaning)
            facts = (
                int(unit.kind),
                to_number(unit.container),
                unit.position,
                unit.said_at,
            )
            count = words[unit_id].word_count
            if unit_id in stored:
                count_before, *others = stored[unit_id]
                if unit.heading is None and tuple(others) == (text, key, *facts):
                    # Only the words around it may have changed.
                    recounted[unit_id] = count
                    self._count(word_count=count - count_before)
                    continue
                gone.append(unit_id)
            rows.append((unit_id, *facts, size_bytes(folded), count, key, text))
        self._delete(gone)
        self._words.delete(recounted)
        changed = {
            unit_id: count
            for unit_id, count in recounted.items()
            if count != stored[unit_id][0]
        }
        if changed:
            units.set_word_counts(self._db, self._index_id, changed)
        self._insert(rows, wanted)
        for unit_id, each in words.items():
            self._words.add(unit_id, each)

    def _insert(
        self, rows: Sequence[units.UnitRow], wanted: dict[int, NewUnit]
    ) -> None:
        added = [wanted[row[0]] for row in rows]
        self._new_rows.of_units += rows
        self._changed.update(row[0] for row in rows)
        self._new_rows.of_notes += [unit for unit in added if unit.heading is not None]
        self._new_rows.of_passages += [
            (unit.unit_id, to_number(unit.container), passages_hash(unit.passages))
            for unit in added
            if unit.passages
        ]
        self._count(unit_count=len(rows), word_count=sum(row[6] for row in rows))

    def _to_words(self, unit: NewUnit) -> UnitWords:
        tokenize = self._word_search.tokenize
        return to_unit_words(
            tokenize(index_words(unit.text)), tokenize(index_words(unit.around))
        )

    def replace_notes(self, file: FileRef, new: Sequence[NewUnit]) -> None:
        stored = units.find_stored_notes(self._db, self._index_id, file)
        fresh = [
            unit
            for unit in new
            if stored.pop((unit.position, unit.said_at, unit.heading, unit.text), 0)
            == 0
        ]
        self.delete_units(list(stored.values()))
        self.replace_units(fresh, are_new=True)

    def delete_units(self, unit_ids: Collection[int]) -> None:
        self._delete(unit_ids)
        # Titles and previews change all the time, and only repeat what messages say.
        is_content = not all(map(is_session, unit_ids))
        if is_content and self.get_state(IS_ERASE_DUE) != WAS_BLOCKED:
            self.set_state(IS_ERASE_DUE, "yes")

    def _delete(self, unit_ids: Collection[int]) -> None:
        if not unit_ids:
            return
        stored = units.find_word_counts(self._db, self._index_id, unit_ids)
        if not stored:
            return
        had_vectors, hashes = units.delete_units(self._db, self._index_id, stored)
        self._words.delete(stored)
        self._changed.update(stored)
        self.deleted_hashes |= hashes
        self._count(
            unit_count=-len(stored),
            word_count=-sum(stored.values()),
            vector_count=-had_vectors,
        )

    def clear(self) -> None:
        self._new_rows = _NewRows()
        delete_rows(self._db, self._index_id)
        self._words.clear()
        self._counters = IndexCounters(self._index_id)

    def find_new_sessions(self, session_ids: Collection[int]) -> set[int]:
        return units.find_new_sessions(self._db, self._index_id, session_ids)

    def list_message_units(self, session_id: int, first: int, last: int) -> list[int]:
        return units.list_message_units(
            self._db, self._index_id, session_id, first, last
        )

    def delete_container(self, container: Container) -> None:
        self.delete_units(units.list_unit_ids(self._db, self._index_id, container))
        index_chunks.delete_chunks(self._db, self._index_id, container)
        if isinstance(container, SessionRef):
            indexed_containers.delete_session(
                self._db, self._index_id, container.session_id
            )

    # -- chunks ---

    def list_chunks(self, session_id: int) -> list[tuple[int, int]]:
        return index_chunks.list_chunks(
            self._db, self._index_id, SessionRef(session_id)
        )

    def replace_chunks(
        self,
        container: Container,
        new: Sequence[NewChunk],
        *,
        first: int = 0,
        before: int | None = None,
        are_new: bool = False,
    ) -> None:
        if not are_new:
            index_chunks.delete_chunks(
                self._db, self._index_id, container, first=first, before=before
            )
        first_id = self._counters.last_chunk_id + 1
        self._new_rows.of_chunks += index_chunks.to_rows(
            container, new, first_id=first_id
        )
        self._count(last_chunk_id=len(new))

    # -- what has been indexed ---

    def note_session(self, session_id: int, change_id: int, now: datetime) -> None:
        self._new_rows.of_sessions[session_id] = change_id, now

    def replace_file(self, file: IndexedFile, now: datetime) -> int:
        new_id = self._counters.last_file_id + 1
        file_id = indexed_containers.replace_file(
            self._db, self._index_id, file, now, new_id=new_id
        )
        self._count(last_file_id=int(file_id == new_id))
        return file_id

    def set_signature(self, file_id: int, signature: str) -> None:
        indexed_containers.set_signature(self._db, self._index_id, file_id, signature)

    def delete_file(self, file_id: int) -> None:
        self.delete_container(FileRef(file_id))
        indexed_containers.delete_file(self._db, self._index_id, file_id)

    def next_note_id(self) -> int:
        last = units.last_note_id(self._db, self._index_id)
        return max(first_note_id(), last + 1)

    # -- vectors ---

    def set_vectors(self, fingerprint: str, made: Sequence[MadeVector]) -> int:
        name = self._vector_search.name_vectors(fingerprint)
        if self.get_state(VECTORS_OF) != name:
            vectors.drop_vectors(self._db, self._index_id)
            self._counters = self._counters._replace(vector_count=0)
            self.set_state(VECTORS_OF, name)
        # A unit may have been changed or deleted while its vector was made.
        taken = self._vector_search.insert(self._db, self._index_id, made)
        self._count(vector_count=taken)
        return taken

    def set_passages(self, fingerprint: str, made: Sequence[MadePassages]) -> int:
        name = self._vector_search.name_vectors(fingerprint)
        if self.get_state(VECTORS_OF) != name:
            return 0
        return passages.set_embeddings(self._db, self._index_id, made)

    # -- the end ---

    def flush(self) -> None:
        """Write what is still in memory, before the transaction is committed."""
        self._words.store()
        text_grams.refresh(self._db, self._index_id, self._changed)
        save_counters(
            self._db, self._counters._replace(tail_count=self._words.tail_count)
        )
