"""Find any part of a text by scanning the file of folded texts next to index.db.

The table ``state`` names the file, so that a new index never uses the texts of an old
one.
"""

import threading
from collections.abc import Collection
from contextlib import suppress
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
from backstory.store.sqlite.index_state import Derived, get_state
from backstory.store.sqlite.text_blocks import list_blocks
from backstory.store.sqlite.words import find_with_words

# Up to this many matching texts are looked up one by one. With more, it is faster to go
# through all texts from the newest on.
_MAX_LOOKED_UP = 400
_TELLING_WORDS = 3


class TextScan:
    """Finds units by any part of their folded text."""

    def __init__(self, connection: IndexConnection) -> None:
        self._connection = connection
        self._file: FoldedText | None = None
        # The file as it was checked, and where it ends.
        self._checked: Derived[tuple[FoldedText, int]] = Derived()

    def find(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        few = self.find_few(folded, where, limit)
        if few is not None:
            return few
        needle = to_stored(folded)

        def find(db: apsw.Connection) -> list[int]:
            view = self.view(db)
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
            view = self.view(db)
            places = _find_by_words(db, view, folded, needle)
            if places is None:
                places = find_records(view, needle, _MAX_LOOKED_UP + 1)
            if len(places) > _MAX_LOOKED_UP:
                return None
            found = units.find_all_at(db, places, where)
            found.sort(key=lambda unit: (unit[1] is not None, unit[1], unit[0]))
            return [unit_id for unit_id, _ in reversed(found[-limit:])]

        return self._connection.scan(find)

    def having(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        needle = to_stored(folded)

        def find(db: apsw.Connection) -> list[int]:
            view = self.view(db)
            return [
                unit_id
                for unit_id, place, length in units.list_places(db, unit_ids)
                if contains(view, needle, place, length)
            ]

        return self._connection.scan(find)

    def get_texts(self, unit_ids: Collection[int]) -> dict[int, IndexedText]:
        def get(db: apsw.Connection) -> dict[int, IndexedText]:
            view = self.view(db)
            return {
                unit.unit_id: IndexedText(unit, _read(view, unit, at), meaning_hash)
                for unit, at, meaning_hash in units.list_hashed(db, unit_ids)
            }

        return self._connection.scan(get)

    def list_all(self, db: apsw.Connection) -> list[tuple[Unit, str]]:
        """All units of sessions with their folded texts, by session and position."""
        view = self.view(db)
        return [
            (unit, _read(view, unit, at)) for unit, at in units.list_all_of_sessions(db)
        ]

    def check(self) -> None:
        """Compare all texts with their checksums. Raises ``StoreDamaged``."""
        self._connection.scan(self.view)

    def begin_check(self, db: apsw.Connection) -> None:
        """Compare the texts with their checksums in another thread.

        It does so almost without Python, so it takes no time from others. It begins at
        the end of the file: whoever needs the texts begins at the start, and both are
        done when they meet.
        """
        end = int(get_state(db, "text_bytes") or 0)
        if not end:
            return
        file, blocks = self.open_file(db), list_blocks(db, end)[::-1]

        def check() -> None:
            # Whoever needs the texts finds the damage again, and raises it.
            with suppress(StoreDamaged):
                file.check(blocks)

        threading.Thread(target=check, name="backstory-texts", daemon=True).start()

    # -- the file ---

    def view(self, db: apsw.Connection) -> memoryview:
        """All texts, as of the current transaction."""
        checked = self._checked.find(db)
        if checked is None:
            end = int(get_state(db, "text_bytes") or 0)
            if not end:
                return memoryview(b"")
            checked = self.open_file(db), end
            checked[0].check(list_blocks(db, end))
            self._checked.keep(db, checked)
        file, end = checked
        return file.view(end)

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
        # Opened again, so that all of it is checked again.
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
    db: apsw.Connection, view: memoryview, folded: str, needle: bytes
) -> list[int] | None:
    """Where texts with the needle begin; None if the index cannot tell quickly.

    A word in the middle of the needle is a word of every text that has the needle. If
    few texts have all of these words, only those are searched.
    """
    whole = [word for word in folded.split(" ")[1:-1] if _is_plain(word)]
    if not whole:
        return None
    # Long words are rare, and others would only take time.
    telling = sorted(whole, key=len)[-_TELLING_WORDS:]
    few = find_with_words(db, telling, _MAX_LOOKED_UP + 1)
    if len(few) > _MAX_LOOKED_UP:
        return None
    return [
        place
        for _, place, length in units.list_places(db, few)
        if contains(view, needle, place, length)
    ]


def _is_plain(word: str) -> bool:
    """Whether the index has just this one word for it."""
    return word.isascii() and word.isalnum()


def _read(view: memoryview, unit: Unit, at: int) -> str:
    return str(view[at : at + unit.text_bytes], "utf-8")
