"""index.db: everything that is found, by words, by any part of its text, by meaning.

Beside it lies the file of folded texts, named in the table ``state`` so that an index
that was made anew never meets the texts of an old one.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from backstory.errors import StoreDamaged, StoreLocked
from backstory.identity import meaning_hash
from backstory.moments import Moment
from backstory.store.index import (
    Chunk,
    IndexCounts,
    IndexedFile,
    MadeVector,
    Note,
    ToEmbed,
    Unit,
    UnitFilter,
    Words,
)
from backstory.store.sqlite import units
from backstory.store.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    forget_deleted,
    open_database,
    set_durability,
    transaction,
    translated,
)
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.folded_text import (
    FoldedText,
    contains,
    find_records,
    to_stored,
)
from backstory.store.sqlite.opening import Connections
from backstory.units import (
    NewChunk,
    NewUnit,
    UnitKind,
    first_note_id,
    first_session_unit_id,
    is_session,
)
from backstory.words import fold

if TYPE_CHECKING:
    from backstory.store.index import Vector
    from backstory.store.sqlite.vectors import VectorPages

Found = TypeVar("Found")

MIGRATIONS = "backstory.store.sqlite.index_migrations"
# How many vectors stand in one row of ``vector_pages``.
SLOTS = 1024
VECTOR_COLUMNS = ("units", "embeddings", "codes", "kinds", "sources", "said")
# So many texts with the wanted part are looked up one by one; of more, the newest are
# found faster by going through the texts from the newest on.
_MAX_LOOKED_UP = 400
# Words wait in memory until there are so many bytes of them: 1.5 x faster to file.
_WORDS_BUFFER = 16 * 1024 * 1024
# Counts of rarer words are quickly made, and may be wrong a moment later.
_FREQUENT = 2_000
# What has been deleted since the words were last tidied. To tidy is to write all of
# them anew: for some messages that were changed, a large index waits until it happens
# by itself.
_SOME = "some"
_WHOLE_SOURCES = "whole sources"
_LARGE = 50_000
_VECTORS = "backstory.store.sqlite.vectors"
_FILE_KINDS = {
    "memory": UnitKind.MEMORY,
    "daily_log": UnitKind.DAILY_LOG,
    "file": UnitKind.FILE,
}
_FILE_TYPES = {kind: name for name, kind in _FILE_KINDS.items()}


class SqliteIndex:
    """A ``SearchIndex`` in an SQLite file and a file of texts beside it."""

    def __init__(self, path: Path, embeddings: SqliteEmbeddings) -> None:
        self.path = path
        self.embeddings = embeddings
        self._connections = Connections(path, lambda: _open(path))
        self._text: FoldedText | None = None
        self._tokenize: Callable[[str], list[str]] | None = None
        self._counted: tuple[int, dict[str, int]] = (0, {})
        self._connections.current()

    @property
    def _db(self) -> apsw.Connection:
        return self._connections.current()

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        try:
            with translated(self.path):
                yield self._db
        except StoreDamaged as exc:
            if exc.path == self.path:
                exc.hint = "run 'backstory rebuild'; nothing is lost"
            raise
        except (TypeError, ValueError, IndexError) as exc:
            # SQLite does not notice every damage; then rows hold what they cannot.
            raise StoreDamaged(
                f"{self.path}: a row makes no sense ({exc})", path=self.path
            ) from exc

    # -- writing ---

    @contextmanager
    def writing(
        self, *, timeout_s: float = BUSY_TIMEOUT_MS / 1000
    ) -> Iterator["SqliteIndexWriter"]:
        db = self._db
        db.set_busy_timeout(round(timeout_s * 1000))
        try:
            with translated(self.path), transaction(db):
                writer = SqliteIndexWriter(self, db)
                yield writer
                writer.flush()
            # Where another writer is at work, it stays due, and the next one does it.
            with suppress(StoreLocked), translated(self.path):
                writer.clean_up()
        finally:
            db.set_busy_timeout(BUSY_TIMEOUT_MS)

    # -- state ---

    def get_state(self, name: str) -> str | None:
        with self._reading() as db:
            return get_state(db, name)

    def counts(self) -> IndexCounts:
        with self._reading() as db:
            return units.count_units(db)

    def list_files(self) -> list[IndexedFile]:
        with self._reading() as db:
            return _list_files(db)

    def get_files(self, source_ids: Collection[int]) -> dict[int, IndexedFile]:
        wanted = {-source_id for source_id in source_ids}
        return {
            -file.file_id: file for file in self.list_files() if file.file_id in wanted
        }

    # -- words ---

    def count_documents(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        with self._reading() as db:
            return [
                sum(self._count_spelling(db, spelling) for spelling in spellings)
                for spellings in words
            ]

    def _count_spelling(self, db: apsw.Connection, spelling: str) -> int:
        """In how many units all words of a spelling may stand side by side: at most."""
        # The counts of frequent words take long and change little.
        size = int(get_state(db, "units") or 0).bit_length()
        if self._counted[0] != size or len(self._counted[1]) > 10_000:
            self._counted = (size, {})
        counted = self._counted[1]
        if spelling in counted:
            return counted[spelling]
        counts = [units.count_word(db, token) for token in self.tokenize(spelling)]
        count = min(counts, default=0)
        if count >= _FREQUENT:
            counted[spelling] = count
        return count

    def tokenize(self, text: str) -> list[str]:
        """The words of a text as the index spells them."""
        if self._tokenize is None:
            made = self._db.fts5_tokenizer(
                "porter", ["unicode61", "remove_diacritics", "2"]
            )

            def tokenize(text: str) -> list[str]:
                # Any: what it gives depends on the flags below.
                found: Any = made(
                    text.encode("utf-8", errors="replace"),
                    apsw.FTS5_TOKENIZE_QUERY,
                    None,
                    include_offsets=False,
                    include_colocated=False,
                )
                return list(found)

            self._tokenize = tokenize
        return self._tokenize(text)

    def match_words(
        self, words: Words, where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        if not words.needed or not where.kinds:
            return []
        with self._reading() as db:
            return units.match_words(db, words, where, limit)

    def find_all_words(
        self, words: Sequence[tuple[str, ...]], where: UnitFilter, limit: int
    ) -> list[int]:
        if not words or not where.kinds:
            return []
        with self._reading() as db:
            return units.find_all_words(db, words, where, limit)

    def score_words(self, words: Words, unit_ids: Collection[int]) -> dict[int, float]:
        if not words.needed or not unit_ids:
            return {}
        with self._reading() as db:
            return units.score_words(db, words, unit_ids)

    # -- any part of a text ---

    def find_text(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        few = self.find_few(folded, where, limit)
        if few is not None:
            return few
        needle = to_stored(folded)

        def find(db: apsw.Connection) -> list[int]:
            view = self._texts(db)
            places = units.newest_places(db, *units.where_clause(where))
            having = (
                unit_id
                for unit_id, place, length in places
                if contains(view, needle, place, length)
            )
            return list(islice(having, limit))

        return self._scan(find)

    def find_few(self, folded: str, where: UnitFilter, limit: int) -> list[int] | None:
        needle = to_stored(folded)
        if not needle or not where.kinds or limit <= 0:
            return []

        def find(db: apsw.Connection) -> list[int] | None:
            places = find_records(self._texts(db), needle, _MAX_LOOKED_UP + 1)
            if len(places) > _MAX_LOOKED_UP:
                return None
            found = units.find_all_at(db, places, *units.where_clause(where))
            found.sort(key=lambda unit: (unit[1] is not None, unit[1], unit[0]))
            return [unit_id for unit_id, _ in reversed(found[-limit:])]

        return self._scan(find)

    def having_text(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        needle = to_stored(folded)

        def find(db: apsw.Connection) -> list[int]:
            view = self._texts(db)
            return [
                unit_id
                for unit_id, place, length in units.list_places(db, unit_ids)
                if contains(view, needle, place, length)
            ]

        return self._scan(find)

    def _scan(self, find: Callable[[apsw.Connection], Found]) -> Found:
        """Look through the texts; again, if the index was replaced just then."""
        name = self.get_state("text_file")
        try:
            with self._reading() as db, _snapshot(db):
                return find(db)
        except StoreDamaged:
            if self.get_state("text_file") == name:
                raise
        with self._reading() as db, _snapshot(db):
            return find(db)

    def _texts(self, db: apsw.Connection) -> memoryview:
        """All texts, as this moment's transaction knows them."""
        end = int(get_state(db, "text_bytes") or 0)
        return self._text_file(db).view(end) if end else memoryview(b"")

    def _text_file(self, db: apsw.Connection) -> FoldedText:
        name = get_state(db, "text_file")
        if name is None:
            raise StoreDamaged(f"{self.path}: it does not name its file of texts")
        texts = self._text
        if texts is None or texts.path.name != name:
            texts = self._text = FoldedText(self.path.with_name(name))
        return texts

    # -- what was found ---

    def get_units(self, unit_ids: Collection[int]) -> dict[int, Unit]:
        with self._reading() as db:
            return units.get_units(db, unit_ids)

    def get_notes(self, unit_ids: Collection[int]) -> dict[int, Note]:
        with self._reading() as db:
            return units.get_notes(db, unit_ids)

    def find_chunk(self, source_id: int, position: int) -> Chunk | None:
        with self._reading() as db:
            return units.find_chunk(db, source_id, position)

    # -- vectors ---

    @cached_property
    def _vectors(self) -> "VectorPages":
        # numpy takes longer to load than a search by words takes as a whole.
        pages: VectorPages = import_module(_VECTORS).VectorPages(self.embeddings)
        return pages

    def has_vectors_of(self, fingerprint: str) -> bool:
        return self.get_state("vectors_of") == self.vectors_name(fingerprint)

    def vectors_name(self, fingerprint: str) -> str:
        """What a model's vectors are called here: their numbers are the cache's."""
        return f"{fingerprint} {self.embeddings.identity}"

    def list_to_embed(self, limit: int, *, skip: int = 0) -> list[ToEmbed]:
        with self._reading() as db:
            return units.list_to_embed(db, limit, skip)

    def nearest(
        self, vector: "Vector", where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        with self._reading() as db:
            self._vectors.refresh(db)
            return self._vectors.nearest(vector, where, limit)

    def cosines(self, vector: "Vector", unit_ids: Collection[int]) -> dict[int, float]:
        with self._reading() as db:
            rows = db.execute(
                """
                SELECT unit_id, embedding_id FROM units
                 WHERE unit_id IN (SELECT value FROM json_each(?))
                   AND embedding_id IS NOT NULL
                """,
                (units.to_json(unit_ids),),
            )
            return self._vectors.cosines(vector, units.to_dict(rows))

    def to_vector(self, stored: bytes) -> "Vector":
        """A vector as the cache gives it out."""
        return self._vectors.to_vector(stored)

    # -- care ---

    def interrupt(self) -> None:
        self._connections.interrupt()

    def tidy(self) -> None:
        with translated(self.path):
            db = self._db
            deleted = get_state(db, "deleted")
            is_large = int(get_state(db, "units") or 0) > _LARGE
            if not deleted or (deleted == _SOME and is_large):
                return
            with transaction(db):
                db.execute("INSERT INTO words (words) VALUES ('optimize')")
                set_state(db, "deleted", "")
            forget_deleted(db)
            self.forget_unused()

    def verify(self) -> list[str]:
        try:
            with self._reading() as db, _snapshot(db):
                return self._verify(db)
        except StoreDamaged as exc:
            return [str(exc)]

    def _verify(self, db: apsw.Connection) -> list[str]:
        found = [
            f"integrity check: {row[0]}"
            for row in db.execute("PRAGMA integrity_check")
            if row[0] != "ok"
        ]
        try:
            # In a savepoint: to ask this is, for SQLite, to write.
            db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        except apsw.CorruptError as exc:
            found.append(f"the table of words is damaged: {exc}")
        filed, without_words = db.execute(
            """
            SELECT (SELECT COUNT(*) FROM units),
                   (SELECT COUNT(*) FROM units
                     WHERE unit_id NOT IN (SELECT id FROM words_docsize))
            """
        ).get
        counted = db.execute("SELECT COUNT(*) FROM words_docsize").get
        if without_words:
            found.append(f"{without_words} units have no words filed")
        if counted != filed - without_words:
            found.append(f"words of {counted} units are filed, there are {filed}")
        if str(filed) != (get_state(db, "units") or "0"):
            found.append(f"{get_state(db, 'units')} units are counted, {filed} there")
        found += self._verify_texts(db)
        slots = db.execute("SELECT COUNT(slot) FROM units").get
        if slots or db.execute("SELECT 1 FROM vector_pages LIMIT 1").get:
            found += self._vectors.verify(db)
        return found

    def _verify_texts(self, db: apsw.Connection) -> list[str]:
        end = int(get_state(db, "text_bytes") or 0)
        if not end:
            return []
        try:
            view = self._text_file(db).view(end)
        except StoreDamaged as exc:
            return [str(exc)]
        return [
            f"unit {unit_id}: its text does not lie where it should"
            for unit_id, at, length in db.execute(
                "SELECT unit_id, text_at, text_bytes FROM units"
            )
            if view[at + length] != 0 or 0 in view[at : at + length]
        ]

    def replace_with(self, other: "SqliteIndex") -> None:
        """Let everything in ``other`` take the place of what is here, at once.

        Whoever reads goes on with what was there when they began.
        """
        with translated(self.path):
            source = other._db
            old_name = get_state(source, "text_file")
            name = f"{self.path.stem}-{secrets.token_hex(4)}.text"
            if old_name is not None:
                texts = other.path.with_name(old_name)
                if texts.exists():  # it is made with the first text
                    texts.rename(self.path.with_name(name))
                set_state(source, "text_file", name)
            with self._db.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step()
            forget_deleted(self._db)
            self._drop_other_texts(name)

    def _drop_other_texts(self, name: str) -> None:
        for file in self.path.parent.glob(f"{self.path.stem}-*.text"):
            if file.name != name:
                file.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove files of texts that no index names: a writer was killed."""
        # As a writer, so that no other is about to name one of them.
        with self.writing(timeout_s=1.0) as writer:
            self._drop_other_texts(writer.text_name)

    def forget_unused(self) -> None:
        """Forget the vectors of all texts that are no longer in the index."""
        self.forget_vectors(self.embeddings.list_hashes())

    def forget_vectors(self, hashes: Collection[bytes]) -> None:
        with self._reading() as db:
            unused = units.list_orphans(db, hashes)
        if unused:
            self.embeddings.delete(unused)

    @staticmethod
    def reset(path: Path) -> None:
        """Make an empty database of a file, whatever is in it."""
        with translated(path):
            db = apsw.Connection(str(path))
            db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
            db.execute("VACUUM")
            db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
            db.close()

    def size_bytes(self) -> int:
        files = [self.path, self.path.with_name(self.path.name + "-wal")]
        files += self.path.parent.glob(f"{self.path.stem}-*.text")
        files.append(self.embeddings.path)
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        self._connections.close()
        if self._text is not None:
            self._text.close()


class SqliteIndexWriter:
    """One transaction on the index."""

    def __init__(self, index: SqliteIndex, db: apsw.Connection) -> None:
        self._index = index
        self._db = db
        self._texts: list[bytes] = []
        self._text_name = get_state(db, "text_file") or self._name_text_file()
        self._text_start = self._text_end = int(get_state(db, "text_bytes") or 0)
        self._unit_count_before = int(get_state(db, "units") or 0)
        self._unit_count = self._unit_count_before
        self._orphans: set[bytes] = set()
        self._old_text_name: str | None = None
        db.execute(
            "INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (_WORDS_BUFFER,)
        )

    def _name_text_file(self) -> str:
        name = f"{self._index.path.stem}-{secrets.token_hex(4)}.text"
        set_state(self._db, "text_file", name)
        return name

    @property
    def text_name(self) -> str:
        """The file of texts that this transaction writes to."""
        return self._text_name

    def get_state(self, name: str) -> str | None:
        return get_state(self._db, name)

    def set_state(self, name: str, value: str) -> None:
        set_state(self._db, name, value)

    # -- units ---

    def replace_units(self, new: Iterable[NewUnit], *, are_new: bool = False) -> None:
        wanted = list(new)
        filed = (
            {} if are_new else units.find_filed(self._db, [u.unit_id for u in wanted])
        )
        hashes = [
            None if unit.meaning is None else meaning_hash(unit.meaning)
            for unit in wanted
        ]
        fresh: list[tuple[NewUnit, bytes | None]] = []
        for unit, key in zip(wanted, hashes, strict=True):
            before = filed.get(unit.unit_id)
            if before is None or not self._only_words_change(unit, key, before):
                fresh.append((unit, key))
        gone = [unit.unit_id for unit, _ in fresh if unit.unit_id in filed]
        kept = filed.keys() - set(gone)
        if gone:
            self.delete_units(gone)
        if kept:
            units.delete_words(self._db, kept)
            units.insert_words(self._db, [u for u in wanted if u.unit_id in kept])
        if fresh:
            places = [self._add_text(unit.text) for unit, _ in fresh]
            units.insert_units(
                self._db, [u for u, _ in fresh], places, [key for _, key in fresh]
            )
            self._unit_count += len(fresh)

    def _only_words_change(
        self, unit: NewUnit, key: bytes | None, before: tuple[Any, ...]
    ) -> bool:
        """Whether nothing but the words around a unit differ from how it is filed."""
        text_at, text_bytes, old_key, _, *facts = before
        if [unit.kind, unit.source_id, unit.position, unit.said_at] != facts:
            return False
        stored = to_stored(fold(unit.text))
        if old_key != key or len(stored) != text_bytes or unit.heading is not None:
            return False
        if text_at + text_bytes > self._text_start:
            return False
        view = self._index._text_file(self._db).view(self._text_start)
        return view[text_at : text_at + text_bytes] == stored

    def _add_text(self, text: str) -> tuple[int, int]:
        stored = to_stored(fold(text))
        place = (self._text_end, len(stored))
        self._texts.append(stored)
        self._text_end += len(stored) + 1
        return place

    def delete_units(self, unit_ids: Collection[int]) -> None:
        filed = units.find_filed(self._db, unit_ids)
        if not filed:
            return
        self._db.executemany(
            "INSERT OR REPLACE INTO wipes (text_at, text_bytes) VALUES (?, ?)",
            [(at, length) for at, length, *_ in filed.values() if length],
        )
        for _, _, key, slot, *_ in filed.values():
            if key is not None:
                self._orphans.add(key)
            if slot is not None:
                _free_slot(self._db, slot)
        units.delete_units(self._db, filed)
        self._unit_count -= len(filed)
        # Titles and previews change all the time, and are what messages say.
        if not get_state(self._db, "deleted") and not all(map(is_session, filed)):
            set_state(self._db, "deleted", _SOME)

    def clear(self) -> None:
        for table in ("notes", "units", "chunks", "index_state", "wipes", "state"):
            self._db.execute(f"DELETE FROM {table}")
        self._db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self.drop_vectors()
        # Texts begin anew in another file; readers may still be in the old one.
        self._old_text_name = self._text_name
        self._text_name = self._name_text_file()
        self._texts.clear()
        self._text_start = self._text_end = 0
        self._unit_count, self._unit_count_before = 0, -1

    def list_message_units(self, source_id: int, first: int, last: int) -> list[int]:
        return units.list_message_units(self._db, source_id, first, last)

    def delete_source(self, source_id: int) -> None:
        unit_ids = units.list_unit_ids(self._db, source_id)
        if unit_ids:
            self.delete_units(unit_ids)
            set_state(self._db, "deleted", _WHOLE_SOURCES)
        self._db.execute("DELETE FROM chunks WHERE source_id = ?", (source_id,))
        if source_id > 0:
            self._db.execute(
                """
                DELETE FROM index_state
                 WHERE source_type = 'conversation' AND source_id = ?
                """,
                (str(source_id),),
            )

    # -- chunks ---

    def list_chunks(self, source_id: int) -> list[tuple[int, int]]:
        return units.list_chunks(self._db, source_id)

    def replace_chunks(
        self,
        source_type: str,
        source_id: int,
        chunks: Sequence[NewChunk],
        *,
        first: int = 0,
        before: int | None = None,
    ) -> None:
        units.replace_chunks(self._db, source_type, source_id, chunks, first, before)

    # -- sources ---

    def note_session(self, session_id: int, change_id: int, now: datetime) -> None:
        self._db.execute(
            """
            INSERT INTO index_state (source_type, source_id, signature, hash,
                                     indexed_at)
            VALUES ('conversation', ?1, ?2, ?2, ?3)
                ON CONFLICT (source_type, source_id) DO UPDATE
               SET signature = ?2, hash = ?2, indexed_at = ?3
            """,
            (str(session_id), f"change:{change_id}", Moment(now).to_microseconds()),
        )

    def replace_file(self, file: IndexedFile, now: datetime) -> int:
        self._db.execute(
            """
            INSERT INTO index_state (source_type, source_id, project, signature, hash,
                                     modified_at, indexed_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (source_type, source_id) DO UPDATE
               SET project = ?3, signature = ?4, hash = ?5, modified_at = ?6,
                   indexed_at = ?7
            """,
            (
                _FILE_TYPES[file.kind],
                file.path,
                file.project,
                file.signature,
                file.hash,
                file.modified_at,
                Moment(now).to_microseconds(),
            ),
        )
        file_id: int = self._db.execute(
            "SELECT state_id FROM index_state WHERE source_type = ? AND source_id = ?",
            (_FILE_TYPES[file.kind], file.path),
        ).get
        return file_id

    def delete_file(self, file_id: int) -> None:
        self.delete_source(-file_id)
        self._db.execute("DELETE FROM index_state WHERE state_id = ?", (file_id,))

    def next_note_id(self) -> int:
        last: int | None = self._db.execute(
            "SELECT MAX(unit_id) FROM units WHERE unit_id < ?",
            (first_session_unit_id(),),
        ).get
        return max(first_note_id(), (last or 0) + 1)

    # -- vectors ---

    def set_vectors(self, fingerprint: str, made: Sequence[MadeVector]) -> int:
        name = self._index.vectors_name(fingerprint)
        if get_state(self._db, "vectors_of") != name:
            self.drop_vectors()
            set_state(self._db, "vectors_of", name)
        # A unit may have changed or gone while its vector was made.
        wanted = units.list_wanting(self._db, [each.unit_id for each in made])
        fitting = [
            each for each in made if wanted.get(each.unit_id) == each.meaning_hash
        ]
        import_module(_VECTORS).write_vectors(self._db, fitting)
        return len(fitting)

    def drop_vectors(self) -> None:
        self._db.execute("DELETE FROM vector_pages")
        self._db.execute("DELETE FROM free_slots")
        self._db.execute(
            "UPDATE units SET embedding_id = NULL, slot = NULL WHERE slot IS NOT NULL"
        )
        set_state(self._db, "next_slot", "0")
        set_state(self._db, "vectors_of", "")
        set_state(self._db, "vector_reset", secrets.token_hex(4))

    # -- the end ---

    def flush(self) -> None:
        """Write the texts before the transaction that names them is committed."""
        if self._texts:
            file = FoldedText(self._index.path.with_name(self._text_name))
            file.append(self._text_start, b"\0".join([*self._texts, b""]))
            set_state(self._db, "text_bytes", str(self._text_end))
        if self._unit_count != self._unit_count_before:
            set_state(self._db, "units", str(self._unit_count))

    def clean_up(self) -> None:
        """Wipe what the transaction deleted; done again if it is cut short."""
        if self._old_text_name is not None:
            self._index.path.with_name(self._old_text_name).unlink(missing_ok=True)
        rows = self._db.execute("SELECT text_at, text_bytes FROM wipes")
        wipes = [(text_at, text_bytes) for text_at, text_bytes in rows]
        if wipes:
            FoldedText(self._index.path.with_name(self._text_name)).wipe(wipes)
            with transaction(self._db):
                # These alone: another process may have added its own meanwhile.
                self._db.executemany(
                    "DELETE FROM wipes WHERE text_at = ?", [(at,) for at, _ in wipes]
                )
        if self._orphans:
            self._index.forget_vectors(self._orphans)


# -- pieces ---------------------------------------------------------------------------


def _open(path: Path) -> apsw.Connection:
    db = open_database(path, MIGRATIONS)
    with translated(path):
        # What a power cut takes is read from the history again.
        set_durability(db, is_durable=False)
        db.execute("PRAGMA cache_size = -16000")
    return db


@contextmanager
def _snapshot(db: apsw.Connection) -> Iterator[None]:
    """Read everything inside as it is at one moment."""
    db.execute("SAVEPOINT reading")
    try:
        yield
    finally:
        db.execute("ROLLBACK TO reading")
        db.execute("RELEASE reading")


def get_state(db: apsw.Connection, name: str) -> str | None:
    value: str | None = db.execute(
        "SELECT value FROM state WHERE name = ?", (name,)
    ).get
    return value


def set_state(db: apsw.Connection, name: str, value: str) -> None:
    db.execute(
        """
        INSERT INTO state (name, value) VALUES (?1, ?2)
            ON CONFLICT (name) DO UPDATE SET value = ?2
        """,
        (name, value),
    )


def _free_slot(db: apsw.Connection, slot: int) -> None:
    """Let a slot stand for no unit, and hold no code."""
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


def _list_files(db: apsw.Connection) -> list[IndexedFile]:
    rows = db.execute(
        """
        SELECT state_id, source_type, source_id, project, signature, hash, modified_at
          FROM index_state WHERE source_type != 'conversation' ORDER BY state_id
        """
    )
    return [
        IndexedFile(
            state_id, _FILE_KINDS[kind], path, project, signature, key, modified
        )
        for state_id, kind, path, project, signature, key, modified in rows
    ]
