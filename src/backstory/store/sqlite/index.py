"""index.db: everything that is found, by words, by any part of its text, by meaning.

Beside it lies the file of folded texts, named in the table ``state`` so that an index
that was made anew never meets the texts of an old one.
"""

import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from backstory.errors import StoreDamaged, StoreLocked, StoreProblem
from backstory.store.base.index import (
    Chunk,
    EmbeddingCache,
    IndexCounts,
    IndexedFile,
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
from backstory.store.sqlite.folded_text import (
    FoldedText,
    contains,
    find_records,
    to_stored,
)
from backstory.store.sqlite.index_state import get_state, set_state, snapshot
from backstory.store.sqlite.index_writer import SOME, SqliteIndexWriter, list_files
from backstory.store.sqlite.opening import Connections
from backstory.store.sqlite.parameters import to_json
from backstory.store.sqlite.text_blocks import list_blocks
from backstory.system.fork_safety import reset_in_child, unforked

if TYPE_CHECKING:
    from backstory.store.base.index import Vector
    from backstory.store.sqlite.vectors import VectorPages

Found = TypeVar("Found")

MIGRATIONS = "backstory.store.sqlite.index_migrations"
# So many texts with the wanted part are looked up one by one; of more, the newest are
# found faster by going through the texts from the newest on.
_MAX_LOOKED_UP = 400
# Counts of rarer words are quickly made, and may be wrong a moment later.
_FREQUENT = 2_000
# To tidy is to write all words anew: for some messages that were changed, a large
# index waits until it happens by itself.
_LARGE = 50_000
# A reader whose texts were wiped or replaced under it begins again, so often at most.
_TRIES = 100
# What was deleted may still stand in SQLite's log.
_LOG_IS_DUE = "log_is_due"
# Whoever reads for longer than this keeps the log from being emptied.
_LOG_WAIT_MS = 1_000
# What Python says of a row that holds what it cannot.
_SENSELESS = (TypeError, ValueError, LookupError, OverflowError)


class SqliteIndex:
    """A ``SearchIndex`` in an SQLite file and a file of texts beside it."""

    def __init__(self, path: Path, embeddings: EmbeddingCache) -> None:
        self.path = path
        self.embeddings = embeddings
        self._connections = Connections(path, lambda: _open(path))
        self._text: FoldedText | None = None
        self._pages: VectorPages | None = None
        self._counted: tuple[int, dict[str, int]] = (0, {})
        self.reset_after_fork()
        reset_in_child(self)
        self._connections.current()

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()
        self._tokenizers = threading.local()

    @property
    def _db(self) -> apsw.Connection:
        return self._connections.current()

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        try:
            with translated(self.path):
                yield self._db
        except StoreDamaged as exc:
            # Otherwise it is the cache that is damaged.
            if exc.path is not None and exc.path.name.startswith(self.path.stem):
                exc.hint = "run 'backstory rebuild'; nothing is lost"
            raise
        except _SENSELESS as exc:
            # SQLite does not notice every damage; then rows hold what they cannot. That
            # a text of ours is none is always damage; the rest may be our mistake.
            if not isinstance(exc, UnicodeDecodeError) and self._is_sound():
                raise
            raise StoreDamaged(
                f"{self.path}: a row makes no sense ({exc})", path=self.path
            ) from exc

    def _is_sound(self) -> bool:
        try:
            with translated(self.path), snapshot(self._db):
                return not self._verify(self._db)
        except (StoreProblem, *_SENSELESS):
            return False

    # -- writing ---

    @contextmanager
    def writing(
        self, *, timeout_s: float = BUSY_TIMEOUT_MS / 1000
    ) -> Iterator[SqliteIndexWriter]:
        with self._reading() as db:
            db.set_busy_timeout(round(timeout_s * 1000))
            try:
                with transaction(db):
                    writer = SqliteIndexWriter(self, db)
                    yield writer
                    writer.flush()
                # Where another writer is at work, it stays due for the next one.
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
            return list_files(db)

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
        local = self._tokenizers
        with unforked():
            if not hasattr(local, "tokenizer"):
                # Of a connection of its own, which no thread closes for another.
                local.tokenizer = apsw.Connection(":memory:").fts5_tokenizer(
                    "porter", ["unicode61", "remove_diacritics", "2"]
                )
            # Any: what it gives depends on the flags below.
            found: Any = local.tokenizer(
                text.encode("utf-8", errors="replace"),
                apsw.FTS5_TOKENIZE_QUERY,
                None,
                include_offsets=False,
                include_colocated=False,
            )
            return list(found)

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
        """Look through the texts; again, if they were changed or replaced just then."""
        for _ in range(_TRIES):
            version = self._version()
            try:
                with self._reading() as db, snapshot(db):
                    return find(db)
            except StoreDamaged as exc:
                damage = exc
                if self._version() == version:
                    break
        raise damage

    def _version(self) -> int:
        """A number that is another one after somebody else has written."""
        with self._reading() as db:
            version: int = db.execute("PRAGMA data_version").get
            return version

    def check(self) -> None:
        """Look for damage where that is quickly done: all tables, and all texts.

        Texts are compared with their checksums, as the first scan does. Raises
        ``StoreDamaged``.
        """
        with self._reading() as db:
            units.read_notes_and_tables(db)
        self._scan(self._texts)

    def _texts(self, db: apsw.Connection) -> memoryview:
        """All texts, as this moment's transaction knows them."""
        end = int(get_state(db, "text_bytes") or 0)
        if not end:
            return memoryview(b"")
        texts = self._text_file(db)
        texts.check(list_blocks(db, end))
        return texts.view(end)

    def _text_file(self, db: apsw.Connection) -> FoldedText:
        name = get_state(db, "text_file")
        if name is None:
            raise StoreDamaged(
                f"{self.path}: it does not name its file of texts", path=self.path
            )
        texts = self._text
        if texts is None or texts.path.name != name:
            texts = self._text = FoldedText(self.path.with_name(name))
        return texts

    # -- what was found ---

    def list_newest(self, where: UnitFilter, limit: int) -> list[int]:
        if not where.kinds:
            return []
        with self._reading() as db:
            places = units.newest_places(db, *units.where_clause(where))
            return [unit_id for unit_id, _, _ in islice(places, limit)]

    def list_notes(self, where: UnitFilter) -> dict[int, str]:
        if not where.kinds:
            return {}
        with self._reading() as db:
            return units.list_notes(db, *units.where_clause(where))

    def get_units(self, unit_ids: Collection[int]) -> dict[int, Unit]:
        with self._reading() as db:
            return units.get_units(db, unit_ids)

    def get_notes(self, unit_ids: Collection[int]) -> dict[int, Note]:
        with self._reading() as db:
            return units.get_notes(db, unit_ids)

    def find_chunk(self, source_id: int, position: int) -> Chunk | None:
        with self._reading() as db:
            return units.find_chunk(db, source_id, position)

    def find_chunks(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], Chunk]:
        with self._reading() as db:
            return units.find_chunks(db, places)

    # -- vectors ---

    @property
    def _vectors(self) -> "VectorPages":
        if self._pages is None:
            # What is half loaded in a forked child stays so.
            with unforked(), self._lock:
                if self._pages is None:
                    # numpy takes longer to load than a search by words takes.
                    from backstory.store.sqlite.vectors import VectorPages

                    self._pages = VectorPages(self.embeddings)
        return self._pages

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
                (to_json(unit_ids),),
            )
            return self._vectors.cosines(vector, units.to_dict(rows))

    def to_vector(self, stored: bytes) -> "Vector":
        """A vector as the cache gives it out."""
        return self._vectors.to_vector(stored)

    # -- care ---

    def interrupt(self, thread_ids: Collection[int]) -> None:
        self._connections.interrupt(thread_ids)

    def tidy(self) -> None:
        with translated(self.path):
            db = self._db
            deleted = get_state(db, "deleted")
            is_large = int(get_state(db, "units") or 0) > _LARGE
            if deleted and not (deleted == SOME and is_large):
                with transaction(db):
                    db.execute("INSERT INTO words (words) VALUES ('optimize')")
                    set_state(db, "deleted", "")
                    set_state(db, _LOG_IS_DUE, "yes")
                self.delete_unused_vectors()
            if get_state(db, _LOG_IS_DUE):
                self._empty_log(db)

    def _empty_log(self, db: apsw.Connection) -> None:
        """Let nothing of what was deleted stay in the log; if it must, it stays due."""
        db.set_busy_timeout(_LOG_WAIT_MS)
        try:
            with suppress(apsw.BusyError):
                if forget_deleted(db):
                    set_state(db, _LOG_IS_DUE, "")
        finally:
            db.set_busy_timeout(BUSY_TIMEOUT_MS)

    def verify(self) -> list[str]:
        try:
            return self._scan(self._verify)
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
        list_files(db)
        units.read_all_texts(db)
        strange = units.count_unknown_kinds(db)
        if strange:
            found.append(f"{strange} units are of no known kind")
        if not units.has_scores(db):
            found.append("words cannot be scored: the sizes of texts are damaged")
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
        # Opened anew, so that all of it is checked once more.
        texts = FoldedText(self._text_file(db).path)
        texts.check(list_blocks(db, end))
        view = texts.view(end)
        return [
            f"unit {unit_id}: its text does not lie where it should"
            for unit_id, at, length in db.execute(
                "SELECT unit_id, text_at, text_bytes FROM units"
            )
            if at + length >= end or view[at + length] or 0 in view[at : at + length]
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
            set_state(self._db, _LOG_IS_DUE, "yes")
            self._empty_log(self._db)
            self._drop_other_texts(name)

    def _drop_other_texts(self, name: str) -> None:
        for file in self._other_texts(name):
            file.unlink(missing_ok=True)

    def _other_texts(self, name: str | None) -> list[Path]:
        files = self.path.parent.glob(f"{self.path.stem}-*.text")
        return [file for file in files if file.name != name]

    def has_leftovers(self) -> bool:
        """Whether there are files of texts that the index does not name."""
        return bool(self._other_texts(self.get_state("text_file")))

    def delete_leftovers(self) -> None:
        # As a writer, so that no other is about to name one of them.
        with self.writing(timeout_s=1.0) as writer:
            self._drop_other_texts(writer.text_name)

    def delete_unused_vectors(self, hashes: Collection[bytes] | None = None) -> None:
        if hashes is None:
            hashes = self.embeddings.list_hashes()
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
        own = sum(file.stat().st_size for file in files if file.exists())
        return own + self.embeddings.size_bytes()

    def close(self) -> None:
        self._connections.close()
        if self._text is not None:
            self._text.close()


# -- pieces ---------------------------------------------------------------------------


def _open(path: Path) -> apsw.Connection:
    db = open_database(path, MIGRATIONS)
    with translated(path):
        # What a power cut takes is read from the history again.
        set_durability(db, is_durable=False)
        db.execute("PRAGMA cache_size = -16000")
    return db
