"""One transaction on index.db and the file of folded texts next to it."""

import os
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

import apsw

from backstory.store.base.containers import to_number
from backstory.store.base.index import IndexedFile, MadePassages, MadeVector
from backstory.store.sqlite import (
    chunks,
    indexed_containers,
    passages,
    units,
    words,
)
from backstory.store.sqlite.folded_text import FoldedText, to_stored
from backstory.store.sqlite.index_connection import IndexConnection
from backstory.store.sqlite.index_state import (
    MUCH,
    SLOTS,
    SOME,
    VECTOR_COLUMNS,
    get_state,
    set_state,
)
from backstory.store.sqlite.text_blocks import (
    add_to_blocks,
    count_wipes,
    wipe_deleted,
)
from backstory.store.sqlite.text_scan import TextScan
from backstory.store.sqlite.unit_counts import UNITS, UNITS_WITH_MEANING, get_count
from backstory.store.sqlite.vector_search import VectorSearch
from backstory.text.words import fold, index_words
from backstory.values.identity import meaning_hash, passages_hash
from backstory.values.units import (
    Container,
    FileRef,
    NewChunk,
    NewUnit,
    SessionRef,
    UnitKind,
    first_note_id,
    first_session_unit_id,
    is_session,
)

# Words wait in memory, up to this many characters, before they are stored.
_MAX_PENDING_CHARS = 16 * 1024 * 1024
# Deleting more than one unit in this many counts as MUCH.
_MUCH_OF = 100


class SqliteIndexWriter:
    """An ``IndexWriter`` for one transaction."""

    def __init__(
        self,
        connection: IndexConnection,
        text_scan: TextScan,
        vector_search: VectorSearch,
    ) -> None:
        self._path = connection.path
        self._db = db = connection.db
        self._text_scan = text_scan
        self._vector_search = vector_search
        self._texts: list[bytes] = []
        self._text_name = get_state(db, "text_file") or self._name_text_file()
        self._text_start = self._text_end = int(get_state(db, "text_bytes") or 0)
        self._unit_count = get_count(db, UNITS)
        self._with_meaning = get_count(db, UNITS_WITH_MEANING)
        self._counts_before = self._counts
        # Hashes of texts that may not need their vectors any more.
        self.deleted_hashes: set[bytes] = set()
        self._old_text_name: str | None = None
        # Where passages may have begun to wait for their vectors.
        self._passages_in: set[int] = set()
        self._pending_words: dict[int, tuple[int, str, str]] = {}
        self._pending_chars = 0

    @property
    def _counts(self) -> dict[str, int]:
        return {UNITS: self._unit_count, UNITS_WITH_MEANING: self._with_meaning}

    def _name_text_file(self) -> str:
        name = f"{self._path.stem}-{os.urandom(4).hex()}.text"
        set_state(self._db, "text_file", name)
        return name

    @property
    def text_name(self) -> str:
        """The name of the file of texts that this transaction writes to."""
        return self._text_name

    def get_state(self, name: str) -> str | None:
        return get_state(self._db, name)

    def set_state(self, name: str, value: str) -> None:
        set_state(self._db, name, value)

    # -- units ---

    def replace_units(self, new: Iterable[NewUnit], *, are_new: bool = False) -> None:
        wanted = {unit.unit_id: unit for unit in new}
        stored = {} if are_new else units.find_stored(self._db, wanted)
        rows: list[units.UnitRow] = []
        texts: list[bytes] = []
        gone: list[int] = []
        text_at = self._text_end
        for unit_id, unit in wanted.items():
            text = to_stored(fold(unit.text))
            key = None if unit.meaning is None else meaning_hash(unit.meaning)
            facts = (
                unit.kind,
                to_number(unit.container),
                unit.position,
                unit.said_at,
            )
            if unit_id in stored:
                if self._is_stored(unit, text, (key, *facts), stored[unit_id]):
                    continue
                gone.append(unit_id)
            rows.append((unit_id, *facts, text_at, len(text), key))
            texts.append(text)
            text_at += len(text) + 1
        if stored:
            self.delete_units(gone)
            # Of the others, only the words around them may have changed.
            words.delete_words(self._db, stored.keys() - set(gone))
        units.insert_units(self._db, rows)
        units.insert_notes(self._db, wanted.values())
        cut = [
            (unit_id, passages_hash(wanted[unit_id].passages))
            for unit_id, *_ in rows
            if wanted[unit_id].passages
        ]
        passages.insert_passages(self._db, cut)
        # A session's passages need vectors from its first tool message on.
        cut_units = {unit_id for unit_id, _ in cut}
        self._passages_in |= {
            source_id
            for unit_id, kind, source_id, *_ in rows
            if kind is UnitKind.OTHER or unit_id in cut_units
        }
        self._texts += texts
        self._text_end = text_at
        self._unit_count += len(rows)
        self._with_meaning += sum(key is not None for *_, key in rows)
        self._add_words(wanted.values())

    # Any: SQLite rows carry no types; the schema does.
    def _is_stored(
        self,
        unit: NewUnit,
        text: bytes,
        facts: tuple[Any, ...],
        stored: tuple[Any, ...],
    ) -> bool:
        """Whether a unit is stored as it is; the words around it may differ."""
        text_at, text_bytes, _, *stored_facts = stored
        if unit.heading is not None or facts != tuple(stored_facts):
            return False
        if len(text) != text_bytes or text_at + text_bytes > self._text_start:
            return False
        view = self._text_scan.open_file(self._db).view(self._text_start)
        return view[text_at : text_at + text_bytes] == text

    def _add_words(self, new: Collection[NewUnit]) -> None:
        # Rows rather than the units: so many objects would slow the garbage collector
        # down.
        rows = [
            (unit.unit_id, index_words(unit.text), index_words(unit.around))
            for unit in new
        ]
        self._pending_words |= {row[0]: row for row in rows}
        self._pending_chars += sum(len(text) + len(around) for _, text, around in rows)
        if self._pending_chars > _MAX_PENDING_CHARS:
            self._store_words()

    def _store_words(self) -> None:
        # In the order of their numbers: when a number is lower than the last one, FTS5
        # writes out what it holds in memory, and has to merge it later.
        words.insert_words(self._db, sorted(self._pending_words.values()))
        self._pending_words.clear()
        self._pending_chars = 0

    def replace_notes(self, file: FileRef, new: Sequence[NewUnit]) -> None:
        stored = units.find_stored_notes(self._db, file)
        fresh = [
            unit
            for unit in new
            if stored.pop((unit.position, unit.said_at, unit.heading, unit.text), 0)
            == 0
        ]
        if stored:
            self._delete(stored.values())
            lost: set[str] = set()
            for _, _, heading, text in stored:
                lost.update(_lines(heading, text))
            for unit in new:
                lost.difference_update(_lines(unit.heading, unit.text))
            if lost:
                self._note_deletion(MUCH)
        self.replace_units(fresh, are_new=True)

    def delete_units(self, unit_ids: Collection[int]) -> None:
        deleted = self._delete(unit_ids)
        # Units of sessions do not count: titles and previews change all the time, and
        # only repeat what messages say.
        self._note_deletion(SOME, sum(not is_session(unit_id) for unit_id in deleted))

    def _delete(self, unit_ids: Collection[int]) -> Collection[int]:
        """Delete units; returns those that existed."""
        stored = units.find_stored(self._db, unit_ids)
        if not stored:
            return ()
        self._db.executemany(
            "INSERT OR REPLACE INTO wipes (text_at, text_bytes) VALUES (?, ?)",
            [(at, length) for at, length, *_ in stored.values() if length],
        )
        for _, _, slot, key, *_ in stored.values():
            if key is not None:
                self.deleted_hashes.add(key)
                self._with_meaning -= 1
            if slot is not None:
                _free_slot(self._db, slot)
        self.deleted_hashes.update(passages.list_hashes(self._db, stored))
        units.delete_units(self._db, stored)
        for unit_id in stored:
            self._pending_words.pop(unit_id, None)
        self._unit_count -= len(stored)
        return stored.keys()

    def _note_deletion(self, what: str, count: int = 1) -> None:
        """Record that words of deleted units are still to be erased."""
        before = get_state(self._db, "deleted")
        if not count or before == MUCH:
            return
        if before:
            count += int(get_state(self._db, "deleted_units") or 0)
        if count * _MUCH_OF > self._unit_count:
            what = MUCH
        set_state(self._db, "deleted", what)
        set_state(self._db, "deleted_units", str(count))

    def clear(self) -> None:
        for table in (
            "notes",
            "passages",
            "units",
            "chunks",
            "index_state",
            "wipes",
            "text_blocks",
            "state",
        ):
            self._db.execute(f"DELETE FROM {table}")
        self._db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self.drop_vectors()
        # New texts go to another file; readers may still use the old one. An index that
        # was copied over another one has given its texts away.
        if self._text_name.startswith(f"{self._path.stem}-"):
            self._old_text_name = self._text_name
        self._text_name = self._name_text_file()
        self._texts.clear()
        self._pending_words.clear()
        self._text_start = self._text_end = 0
        self._unit_count = self._with_meaning = 0
        # The table has none of the counts now, so all are written.
        self._counts_before = {}

    def find_new_sessions(self, session_ids: Collection[int]) -> set[int]:
        return units.find_new_sessions(self._db, session_ids)

    def list_message_units(self, session_id: int, first: int, last: int) -> list[int]:
        return units.list_message_units(self._db, session_id, first, last)

    def delete_container(self, container: Container) -> None:
        unit_ids = units.list_unit_ids(self._db, container)
        if unit_ids:
            self._delete(unit_ids)
            self._note_deletion(MUCH)
        chunks.delete_chunks(self._db, container)
        if isinstance(container, SessionRef):
            indexed_containers.delete_session(self._db, container.session_id)

    # -- chunks ---

    def list_chunks(self, session_id: int) -> list[tuple[int, int]]:
        return chunks.list_chunks(self._db, SessionRef(session_id))

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
            chunks.delete_chunks(self._db, container, first=first, before=before)
        chunks.insert_chunks(self._db, container, new)

    # -- what has been indexed ---

    def note_session(self, session_id: int, change_id: int, now: datetime) -> None:
        indexed_containers.replace_session(self._db, session_id, change_id, now)

    def replace_file(self, file: IndexedFile, now: datetime) -> int:
        return indexed_containers.replace_file(self._db, file, now)

    def set_signature(self, file_id: int, signature: str) -> None:
        indexed_containers.set_signature(self._db, file_id, signature)

    def delete_file(self, file_id: int) -> None:
        self.delete_container(FileRef(file_id))
        indexed_containers.delete_file(self._db, file_id)

    def next_note_id(self) -> int:
        last: int | None = self._db.execute(
            "SELECT MAX(unit_id) FROM units WHERE unit_id < ?",
            (first_session_unit_id(),),
        ).get
        return max(first_note_id(), (last or 0) + 1)

    # -- vectors ---

    def set_vectors(self, fingerprint: str, made: Sequence[MadeVector]) -> int:
        name = self._vector_search.name_vectors(fingerprint)
        if get_state(self._db, "vectors_of") != name:
            self.drop_vectors()
            set_state(self._db, "vectors_of", name)
        # A unit may have been changed or deleted while its vector was made.
        wanted = units.list_wanting(self._db, [each.unit_id for each in made])
        fitting = [
            each for each in made if wanted.get(each.unit_id) == each.meaning_hash
        ]
        # numpy takes longer to load than most commands take as a whole.
        from backstory.store.sqlite.vectors import write_vectors

        write_vectors(self._db, fitting)
        return len(fitting)

    def set_passages(self, fingerprint: str, made: Sequence[MadePassages]) -> int:
        name = self._vector_search.name_vectors(fingerprint)
        if get_state(self._db, "vectors_of") != name:
            return 0
        count = passages.set_embeddings(self._db, made)
        passages.note_done(self._db)
        return count

    def drop_vectors(self) -> None:
        passages.drop_embeddings(self._db)
        self._db.execute("DELETE FROM vector_pages")
        self._db.execute("DELETE FROM free_slots")
        self._db.execute(
            "UPDATE units SET embedding_id = NULL, slot = NULL WHERE slot IS NOT NULL"
        )
        set_state(self._db, "next_slot", "0")
        set_state(self._db, "vectors_of", "")
        set_state(self._db, "vector_reset", os.urandom(4).hex())

    # -- the end ---

    def flush(self) -> None:
        """Write the texts, before the transaction that refers to them is committed."""
        file = FoldedText(self._path.with_name(self._text_name))
        if self._texts:
            data = b"\0".join([*self._texts, b""])
            file.append(self._text_start, data)
            add_to_blocks(self._db, self._text_start, data)
            set_state(self._db, "text_bytes", str(self._text_end))
        count_wipes(self._db, file, self._text_end)
        self._store_words()
        passages.note_waiting(self._db, self._passages_in)
        for name, count in self._counts.items():
            if count != self._counts_before.get(name):
                set_state(self._db, name, str(count))

    def clean_up(self) -> None:
        """Wipe deleted texts; if this is interrupted, the next writer does it."""
        if self._old_text_name is not None:
            self._path.with_name(self._old_text_name).unlink(missing_ok=True)
        wipe_deleted(self._db, self._path.parent)


# -- pieces ---------------------------------------------------------------------------


def _lines(heading: str | None, text: str) -> list[str]:
    return [heading or "", *text.splitlines()]


def _free_slot(db: apsw.Connection, slot: int) -> None:
    """Erase a slot, so that another unit can use it."""
    page_id, place = divmod(slot, SLOTS)
    for column in VECTOR_COLUMNS:
        with db.blob_open("main", "vector_pages", column, page_id, True) as blob:
            width = blob.length() // SLOTS
            blob.seek(place * width)
            blob.write(bytes(width))
    db.execute("INSERT OR IGNORE INTO free_slots (slot) VALUES (?)", (slot,))
    db.execute(
        """
        UPDATE vector_pages
           SET version = (SELECT MAX(version) + 1 FROM vector_pages)
         WHERE page_id = ?
        """,
        (page_id,),
    )
