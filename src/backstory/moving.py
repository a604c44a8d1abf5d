"""Copy an entire memory from one database to another: from files to a server, or back.

Rows keep their numbers, so that everything that refers to one still finds it. The copy
is compared by counts and checksums. If copying is stopped, it can be continued; a
complete copy is not made again. The old place stays as it is.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

import orjson

from backstory.errors import BadQuery, NotesConflict, StoreProblem
from backstory.notes.find import FoundNote
from backstory.notes.origins import ORIGINS_NAME
from backstory.notes.places import REMOVED_NAME, NotesPlace
from backstory.store.base.copies import COPYING, check_complete
from backstory.store.base.history_rows import (
    COPIED,
    HISTORY_TABLES,
    HistoryRows,
    HistoryTable,
    Row,
    checksum,
)
from backstory.store.base.index import EmbeddingCache
from backstory.stores import Stores
from backstory.values.history import Problem
from backstory.values.identity import bytes_hash
from backstory.values.moving import MoveReport
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, field

_LOCK = "move"
# The number of rows in a transaction, or fewer if their texts are long.
_BATCH_ROWS = 2_000
_BATCH_CHARS = 8_000_000
_VECTORS = 5_000

# The tables, and the number of rows in each.
Counted = tuple[tuple[str, int], ...]


class Mover(FrozenStruct):
    """Copies what is in one place to another."""

    source: Stores
    target: Stores

    def move(
        self, fingerprints: list[str], *, on_count: OnCount | None = None
    ) -> MoveReport:
        """Copy history, notes, and the vectors of some models.

        Raises ``BadQuery`` if the target contains another memory, or was used since it
        was moved to; ``NotesConflict`` if only its notes were changed.
        """
        with (
            self.target.locks.locked(_LOCK),
            closing(self.source.open_rows()) as source,
            closing(self.target.open_rows()) as target,
        ):
            notes, problems = _list_notes(self.source.notes)
            target_notes = self.target.open_notes_to_complete()
            moved = _MovedNotes.parse(target.get_state(COPIED))
            last_change = _check_target(source, target, moved)
            moved.check(target_notes, notes)
            rows, was_there = _copy_history(
                source, target, moved, on_count, last_change=last_change
            )
            has_new_notes = _copy_notes(notes, target_notes)
            target.finish(
                _MovedNotes(
                    source.find_last_change(),
                    {name: bytes_hash(raw) for name, raw in notes.items()},
                ).write()
            )
        return MoveReport(
            rows,
            notes=len(notes),
            vectors=self._copy_vectors(fingerprints),
            was_there=was_there and not has_new_notes,
            problems=tuple(problems),
        )

    def _copy_vectors(self, fingerprints: list[str]) -> int:
        source = self.source.index_place.open_embeddings()
        target = self.target.index_place.open_embeddings()
        try:
            hashes = source.list_hashes()
            return sum(
                _copy_vectors(source, target, fingerprint, sorted(hashes))
                for fingerprint in fingerprints
            )
        finally:
            source.close()
            target.close()


class _MovedNotes(FrozenStruct):
    """The state of a place after the last move to it: its last change and its notes."""

    last_change: str = ""
    hashes: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(state: str | None) -> "_MovedNotes":
        if not state:
            return _MovedNotes()
        held = orjson.loads(state)
        return _MovedNotes(held["last_change"], held["notes"])

    def write(self) -> str:
        held = {"last_change": self.last_change, "notes": self.hashes}
        return orjson.dumps(held).decode()

    def check(self, place: NotesPlace, notes: dict[str, bytes]) -> None:
        """Raise ``NotesConflict`` if a note there was changed since the last move."""
        for name, raw in notes.items():
            there = place.read(name).raw
            if there in (None, raw) or self.hashes.get(name) == bytes_hash(
                there or b""
            ):
                continue
            raise NotesConflict(
                f"{place.path(name)}: the new place has a different one",
                hint="if it was changed there, keep using the memory there; otherwise "
                "choose a new tenant or folder",
            )


# -- the history ----------------------------------------------------------------------


def _check_target(
    source: HistoryRows, target: HistoryRows, moved: _MovedNotes
) -> str | None:
    """The last change in the new place; None if copying was begun and must go on."""
    check_complete(source.get_state(COPYING) is not None, "the memory here")
    is_copying = target.get_state(COPYING) is not None
    last = target.find_last_change()
    if not is_copying and target.is_empty():
        return last
    if target.identity != source.identity:
        raise BadQuery(
            "there is another memory in the new place",
            hint="choose a new tenant or folder; 'backstory export' and 'import' "
            "merge two memories",
        )
    if is_copying:
        return None
    if last not in (moved.last_change, source.find_last_change()):
        raise _was_used()
    return last


def _was_used() -> BadQuery:
    return BadQuery(
        "the memory in the new place has been used since it was moved there",
        hint="keep using that one, or choose a new tenant or folder",
    )


def _copy_history(
    source: HistoryRows,
    target: HistoryRows,
    moved: _MovedNotes,
    on_count: OnCount | None,
    *,
    last_change: str | None,
) -> tuple[Counted, bool]:
    """Copy what is missing; returns the number of rows in each table."""
    state = source.find_last_change()
    if target.get_state(COPYING) is None and moved.last_change == state:
        # The rest may have changed there by now, such as which notes were seen.
        _check(source, target, [table for table in HISTORY_TABLES if table.numbered])
        return _count_rows(target), True
    is_begun = target.get_state(COPYING) == state
    if not is_begun and not target.begin(
        source.identity, state, last_change=last_change
    ):
        # It was used just now.
        raise _was_used()
    _copy_rows(source, target, on_count)
    try:
        _check(source, target, HISTORY_TABLES)
    except StoreProblem:
        # Something changed in the old place after an earlier attempt was stopped.
        target.begin(source.identity, state, last_change=None)
        _copy_rows(source, target, on_count)
        _check(source, target, HISTORY_TABLES)
    return _count_rows(target), False


def _copy_rows(
    source: HistoryRows, target: HistoryRows, on_count: OnCount | None
) -> None:
    for table in HISTORY_TABLES:
        after = target.find_last(table) if table.numbered else None
        rows = source.iter_rows(table, after=after)
        total = (source.find_last(table) or 0) if table.numbered else 0
        for batch in _iter_batches(rows):
            target.insert_rows(table, batch)
            if on_count is not None and table.name == "messages":
                on_count(int(batch[-1][0] or 0), total)


def _iter_batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while True:
        batch: list[Row] = []
        chars = 0
        for row in islice(rows, _BATCH_ROWS):
            batch.append(row)
            chars += sum(len(each) for each in row if isinstance(each, str))
            if chars > _BATCH_CHARS:
                break
        if not batch:
            return
        yield batch


def _check(
    source: HistoryRows, target: HistoryRows, tables: Iterable[HistoryTable]
) -> None:
    """Raise ``StoreProblem`` if a table is not the same in both places."""
    for table in tables:
        expected = checksum(source.iter_rows(table, after=None))
        found = checksum(target.iter_rows(table, after=None))
        if found != expected:
            raise StoreProblem(
                f"the copy of the table {table.name} is not the same: {found[0]:,} "
                f"rows instead of {expected[0]:,}, or other values",
                hint="the original is unchanged; run the command again",
            )


def _count_rows(rows: HistoryRows) -> Counted:
    return tuple((table.name, rows.count_rows(table)) for table in HISTORY_TABLES)


# -- notes and vectors ----------------------------------------------------------------


def _list_notes(place: NotesPlace) -> tuple[dict[str, bytes], list[Problem]]:
    """All notes, the records beside them and the backups; and what cannot be read."""
    names, problems = [], []
    for found in place.find_notes():
        if isinstance(found, FoundNote):
            names.append(found.path.relative_to(place.folder).as_posix())
        else:
            problems.append(found)
    names += [ORIGINS_NAME, REMOVED_NAME, *place.list_backups()]
    read = {name: place.read(name).raw for name in names}
    return {name: raw for name, raw in read.items() if raw is not None}, problems


def _copy_notes(notes: dict[str, bytes], place: NotesPlace) -> bool:
    """Write the notes that differ in the new place; returns whether there were any."""
    has_written = False
    for name, raw in notes.items():
        with place.changing(None if name == REMOVED_NAME else name):
            there = place.read(name)
            if there.raw == raw:
                continue
            if not there.replace(raw):
                raise NotesConflict(f"{place.path(name)}: somebody has just changed it")
            has_written = True
    return has_written


def _copy_vectors(
    source: EmbeddingCache,
    target: EmbeddingCache,
    fingerprint: str,
    hashes: list[bytes],
) -> int:
    # Slow to import.
    import numpy as np

    count = 0
    for first in range(0, len(hashes), _VECTORS):
        some = hashes[first : first + _VECTORS]
        numbers = source.find(fingerprint, some)
        count += len(numbers)
        there = target.find(fingerprint, list(numbers))
        missing = {key: number for key, number in numbers.items() if key not in there}
        stored = source.read(list(missing.values()))
        vectors = {
            key: np.frombuffer(stored[number], np.float32)
            for key, number in missing.items()
            if number in stored
        }
        if vectors:
            target.add(fingerprint, vectors)
    return count
