"""Find any part of a text by scanning the file of folded texts next to index.db.

The table ``state`` names the file, so that a new index never uses the texts of an old
one.
"""

from collections.abc import Collection
from itertools import islice

import apsw

from backstory.errors import StoreDamaged
from backstory.store.base.index import IndexedText, Unit, UnitFilter
from backstory.store.sqlite import units
from backstory.store.sqlite.folded_text import (
    FoldedText,
    contains,
    find_records,
    to_stored,
)
from backstory.store.sqlite.index_connection import IndexConnection
from backstory.store.sqlite.index_state import Derived, get_state, snapshot
from backstory.store.sqlite.text_blocks import CheckedTexts, list_blocks
from backstory.store.sqlite.words import find_with_words
from backstory.text.words import unchanged_pairs

# Up to this many matching texts are looked up one by one. With more, it is faster to go
# through all texts from the newest on.
_MAX_LOOKED_UP = 400
_TELLING_WORDS = 3
_TELLING_PAIRS = 4


class TextScan:
    """Finds units by any part of their folded text."""

    def __init__(self, connection: IndexConnection) -> None:
        self._connection = connection
        self._file: FoldedText | None = None
        self._texts: Derived[CheckedTexts] = Derived()

    def find(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        few = self.find_few(folded, where, limit)
        if few is not None:
            return few
        needle = to_stored(folded)

        def find(db: apsw.Connection) -> list[int]:
            view = self._find_texts(db).view()
            having = (
                unit_id
                for unit_id, place, length in units.newest_places(db, where)
                if contains(view, needle, place, length)
            )
            return list(islice(having, limit))

        return self._connection.scan(find)

    def find_few(self, folded: str, where: UnitFilter, limit: int) -> list[int] | None:
        needle = to_stored(folded)
        if not needle or not where.kinds or limit <= 0:
            return []

        def find(db: apsw.Connection) -> list[int] | None:
            texts = self._find_texts(db)
            places = _find_by_words(db, texts, folded, needle)
            if places is None:
                places = find_records(texts.view(), needle, _MAX_LOOKED_UP + 1)
            if len(places) > _MAX_LOOKED_UP:
                return None
            found = units.find_all_at(db, places, where)
            found.sort(key=lambda unit: (unit[1] is not None, unit[1], unit[0]))
            return [unit_id for unit_id, _ in reversed(found[-limit:])]

        return self._connection.scan(find)

    def having(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        needle = to_stored(folded)

        def find(db: apsw.Connection) -> list[int]:
            texts = self._find_texts(db)
            places = _find_in_units(db, texts, needle, unit_ids)
            return [unit_id for unit_id, _ in places]

        return self._connection.scan(find)

    def get_texts(self, unit_ids: Collection[int]) -> dict[int, IndexedText]:
        def get(db: apsw.Connection) -> dict[int, IndexedText]:
            rows = list(units.list_hashed(db, unit_ids))
            spans = ((at, unit.text_bytes) for unit, at, _ in rows)
            view = self._find_texts(db).view_for(spans)
            return {
                unit.unit_id: IndexedText(unit, _read(view, unit, at), meaning_hash)
                for unit, at, meaning_hash in rows
            }

        return self._connection.scan(get)

    def list_all(self, db: apsw.Connection) -> list[tuple[Unit, str]]:
        """All units of sessions with their folded texts, by session and position."""
        view = self._find_texts(db).view()
        return [
            (unit, _read(view, unit, at)) for unit, at in units.list_all_of_sessions(db)
        ]

    def check(self) -> None:
        """Compare all texts with their checksums. Raises ``StoreDamaged``."""
        self._connection.scan(lambda db: self._find_texts(db).view())

    def get_ready(self, folded: str) -> None:
        """Begin to check all texts if a search for this one will scan them."""

        with self._connection.reading() as db, snapshot(db):
            if _find_units_by_words(db, folded) is None:
                self._find_texts(db).begin_check()

    # -- the file ---

    def _find_texts(self, db: apsw.Connection) -> CheckedTexts:
        """All texts, as of the current transaction."""
        texts = self._texts.find(db)
        if texts is None:
            end = int(get_state(db, "text_bytes") or 0)
            if end:
                texts = CheckedTexts(self.open_file(db), list_blocks(db, end), end)
            else:
                texts = CheckedTexts(None, [], end)
            self._texts.keep(db, texts)
        return texts

    def open_file(self, db: apsw.Connection) -> FoldedText:
        path = self._connection.path
        name = get_state(db, "text_file")
        if name is None:
            raise StoreDamaged(
                f"{path}: the name of its file of texts is missing", path=path
            )
        file = self._file
        if file is None or file.path.name != name:
            file = self._file = FoldedText(path.with_name(name))
        return file

    def verify(self, db: apsw.Connection) -> list[str]:
        """Check that the texts are where the units say."""
        end = int(get_state(db, "text_bytes") or 0)
        if not end:
            return []
        # Opened again, so that none of it counts as checked yet.
        file = FoldedText(self.open_file(db).path)
        file.check(list_blocks(db, end))
        view = file.view(end)
        return [
            f"unit {unit_id}: its text is not where it should be"
            for unit_id, at, length in units.list_all_places(db)
            if at + length >= end or view[at + length] or 0 in view[at : at + length]
        ]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _find_by_words(
    db: apsw.Connection, texts: CheckedTexts, folded: str, needle: bytes
) -> list[int] | None:
    """Where texts with the needle begin; None if the index cannot tell quickly."""
    few = _find_units_by_words(db, folded)
    if few is None:
        return None
    return [place for _, place in _find_in_units(db, texts, needle, few)]


def _find_in_units(
    db: apsw.Connection, texts: CheckedTexts, needle: bytes, unit_ids: Collection[int]
) -> list[tuple[int, int]]:
    """Those of some units whose texts have the needle, and where the texts begin."""
    rows = list(units.list_places(db, unit_ids))
    view = texts.view_for((place, length) for _, place, length in rows)
    return [
        (unit_id, place)
        for unit_id, place, length in rows
        if contains(view, needle, place, length)
    ]


def _find_units_by_words(db: apsw.Connection, folded: str) -> list[int] | None:
    """The few units that may contain a text; None if there are many.

    A word that is whole inside it is a word of every text that contains it, and so is a
    pair of characters in a script without spaces.
    """
    whole = [word for word in folded.split(" ")[1:-1] if _is_plain(word)]
    # Long words are rare; checking others too would only take time.
    telling = sorted(whole, key=len)[-_TELLING_WORDS:]
    telling += unchanged_pairs(folded)[:_TELLING_PAIRS]
    if not telling:
        return None
    few = find_with_words(db, telling, _MAX_LOOKED_UP + 1)
    return few if len(few) <= _MAX_LOOKED_UP else None


def _is_plain(word: str) -> bool:
    """Whether the index has exactly this word for it."""
    return word.isascii() and word.isalnum()


def _read(view: memoryview, unit: Unit, at: int) -> str:
    return str(view[at : at + unit.text_bytes], "utf-8")
