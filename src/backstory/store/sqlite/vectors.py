"""The table ``vector_pages``: which units are near in meaning.

The signs of a vector, one bit each, are enough to choose the few hundred of a million
that are worth comparing exactly; those are read in full from the cache. Imported only
for a search by meaning, because numpy is slow to load.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from backstory.store.base.codes import (
    BY_CODES,
    UNKNOWN_TIME,
    choose_likely,
    count_compared,
    fit,
    to_codes,
    to_columns,
)
from backstory.store.base.cosines import Vector, find_best_passages, find_cosines
from backstory.store.base.index import (
    BestPassage,
    EmbeddingCache,
    MadeVector,
    UnitFilter,
)
from backstory.store.sqlite.index_state import (
    SLOTS,
    VECTOR_COLUMNS,
    Derived,
    get_state,
    set_state,
    snapshot,
)
from backstory.store.sqlite.rows import to_json
from backstory.system.fork_safety import reset_in_child

# Up to this many vectors are all compared exactly: choosing by signs would not be
# faster.
_FEW = 2_000


class VectorPages:
    """All codes in memory, kept in sync with the table."""

    def __init__(self, embeddings: EmbeddingCache) -> None:
        self._embeddings = embeddings
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child: another thread may have been changing this."""
        self._lock = threading.Lock()
        self._clear("")
        self._read: Derived[bool] = Derived()

    def _clear(self, reset: str) -> None:
        self._reset = reset
        self._version = 0
        self._page_count = 0
        self._units: NDArray[np.int64] = np.zeros(0, np.int64)
        self._embedding_ids: NDArray[np.int64] = np.zeros(0, np.int64)
        self._columns: NDArray[np.uint64] = np.zeros((0, 0), np.uint64)
        self._kinds: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._containers: NDArray[np.int64] = np.zeros(0, np.int64)
        self._said: NDArray[np.int64] = np.zeros(0, np.int64)
        self._clear_slots()

    def _clear_slots(self) -> None:
        self._slots_of: UnitFilter | None = None
        self._fitting_slots: NDArray[np.intp] = np.zeros(0, np.intp)

    # -- keeping in sync ---

    def refresh(self, db: apsw.Connection) -> None:
        """Read the pages that are new or changed."""
        if self._read.find(db):
            return
        with self._lock, snapshot(db):
            self._read_new(db)
            self._read.keep(db, True)

    def _read_new(self, db: apsw.Connection) -> None:
        reset = get_state(db, "vector_reset") or ""
        if reset != self._reset:
            self._clear(reset)
        # Any: SQLite rows carry no types; the schema does.
        rows: list[Any] = db.execute(
            """
            SELECT page_id, version, units, embeddings, codes, kinds, sources, said
              FROM vector_pages WHERE version > ? ORDER BY page_id
            """,
            (self._version,),
        ).fetchall()
        if not rows:
            return
        self._clear_slots()
        self._make_room(rows[-1][0] + 1)
        for page_id, _, *stored in rows:
            self._put(page_id, stored)
        self._version = max(version for _, version, *_ in rows)

    def _make_room(self, pages: int) -> None:
        if pages <= self._page_count:
            return
        # With some to spare, so that not every new page means copying everything.
        slots = (pages + pages // 8) * SLOTS
        self._units = _grown(self._units, slots)
        self._embedding_ids = _grown(self._embedding_ids, slots)
        self._columns = _grown(self._columns, slots)
        self._kinds = _grown(self._kinds, slots)
        self._containers = _grown(self._containers, slots)
        self._said = _grown(self._said, slots)
        self._page_count = slots // SLOTS

    def _put(self, page_id: int, stored: Sequence[bytes]) -> None:
        units, embeddings, codes, kinds, containers, said = stored
        rows = slice(page_id * SLOTS, (page_id + 1) * SLOTS)
        self._units[rows] = np.frombuffer(units, np.int64)
        self._embedding_ids[rows] = np.frombuffer(embeddings, np.int64)
        columns = to_columns(np.frombuffer(codes, np.uint8).reshape(SLOTS, -1))
        if not len(self._columns):
            self._columns = np.zeros((len(columns), len(self._units)), np.uint64)
        self._columns[:, rows] = columns
        self._kinds[rows] = np.frombuffer(kinds, np.uint8)
        self._containers[rows] = np.frombuffer(containers, np.int64)
        self._said[rows] = np.frombuffer(said, np.int64)

    # -- searching ---

    def nearest(
        self, vector: Vector, where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        with self._lock:
            slots = self._slots(where)
            compared = count_compared(len(slots), limit)
            if len(slots) > max(_FEW, BY_CODES * compared):
                slots = choose_likely(vector, self._columns, slots, compared)
            wanted = dict(
                zip(
                    self._units[slots].tolist(),
                    self._embedding_ids[slots].tolist(),
                    strict=True,
                )
            )
        near = sorted(
            self.cosines(vector, wanted).items(), key=lambda item: (-item[1], item[0])
        )
        return near[:limit]

    def _slots(self, where: UnitFilter) -> NDArray[np.intp]:
        """The slots of matching units; cached, as most searches use the same filter."""
        if where != self._slots_of:
            self._fitting_slots = np.flatnonzero(self._fitting(where))
            self._slots_of = where
        return self._fitting_slots

    def _fitting(self, where: UnitFilter) -> NDArray[np.bool_]:
        fits = fit(
            where,
            unit_ids=self._units,
            kinds=self._kinds,
            containers=self._containers,
            said=self._said,
        )
        # A slot without a unit is free.
        fits &= self._units != 0
        return fits

    def cosines(
        self, vector: Vector, embedding_ids: Mapping[int, int]
    ) -> dict[int, float]:
        """The cosine of each unit, given the number of its embedding."""
        return find_cosines(self._embeddings, vector, embedding_ids)

    def best_passages(
        self, vector: Vector, embedding_ids: Mapping[int, int]
    ) -> dict[int, BestPassage]:
        """The nearest passage of each unit, given the number of their embedding."""
        return find_best_passages(self._embeddings, vector, embedding_ids)

    def to_vector(self, stored: bytes) -> Vector:
        return np.frombuffer(stored, np.float32)

    # -- verification ---

    def verify(self, db: apsw.Connection) -> list[str]:
        """Check that pages and units agree."""
        paged: dict[int, tuple[int, ...]] = {}
        for page_id, units, embeddings, kinds, containers, said in db.execute(
            "SELECT page_id, units, embeddings, kinds, sources, said FROM vector_pages"
        ):
            columns = (
                np.frombuffer(units, np.int64).tolist(),
                np.frombuffer(embeddings, np.int64).tolist(),
                np.frombuffer(kinds, np.uint8).tolist(),
                np.frombuffer(containers, np.int64).tolist(),
                np.frombuffer(said, np.int64).tolist(),
            )
            for place, row in enumerate(zip(*columns, strict=True)):
                if row[0]:
                    paged[page_id * SLOTS + place] = row
        stored = {
            slot: (unit_id, embedding_id, kind, container, _to_time(said_at))
            for slot, unit_id, embedding_id, kind, container, said_at in db.execute(
                """
                SELECT slot, unit_id, embedding_id, kind, source_id, said_at
                  FROM units WHERE slot IS NOT NULL
                """
            )
        }
        if paged == stored:
            return []
        wrong = {slot for slot in paged | stored if paged.get(slot) != stored.get(slot)}
        return [f"{len(wrong)} vectors are not where their units say"]


def write_vectors(db: apsw.Connection, made: Sequence[MadeVector]) -> None:
    """Store the codes of vectors in free slots, and the slots with the units."""
    if not made:
        return
    next_slot = int(get_state(db, "next_slot") or 0)
    version = (db.execute("SELECT MAX(version) FROM vector_pages").get or 0) + 1
    facts = {
        unit_id: (kind, container, _to_time(said_at))
        for unit_id, kind, container, said_at in db.execute(
            """
            SELECT unit_id, kind, source_id, said_at FROM units
             WHERE unit_id IN (SELECT value FROM json_each(?))
            """,
            (to_json(each.unit_id for each in made),),
        )
    }
    codes = to_codes(np.stack([each.vector for each in made]))
    pages: dict[int, dict[str, NDArray[Any]]] = {}
    updates = []
    free = _take_free_slots(db, len(made))
    for each, code in zip(made, codes, strict=True):
        slot = free.pop() if free else next_slot
        next_slot += slot == next_slot
        page_id, place = divmod(slot, SLOTS)
        if page_id not in pages:
            pages[page_id] = _read_page(db, page_id, codes.shape[1])
        page = pages[page_id]
        kind, container, said = facts[each.unit_id]
        page["units"][place] = each.unit_id
        page["embeddings"][place] = each.embedding_id
        page["codes"][place] = code
        page["kinds"][place] = kind
        page["sources"][place] = container
        page["said"][place] = said
        updates.append((each.embedding_id, slot, each.unit_id))
    for page_id, page in pages.items():
        db.execute(
            """
            INSERT OR REPLACE INTO vector_pages
                   (page_id, version, units, embeddings, codes, kinds, sources, said)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (page_id, version, *(page[column].tobytes() for column in VECTOR_COLUMNS)),
        )
    db.executemany(
        "UPDATE units SET embedding_id = ?, slot = ? WHERE unit_id = ?", updates
    )
    set_state(db, "next_slot", str(next_slot))


def _take_free_slots(db: apsw.Connection, count: int) -> list[int]:
    """Free slots, the one to be used first at the end."""
    rows = db.execute(
        "SELECT slot FROM free_slots ORDER BY slot DESC LIMIT ?", (count,)
    )
    slots = [slot for (slot,) in rows]
    db.executemany("DELETE FROM free_slots WHERE slot = ?", [(slot,) for slot in slots])
    return slots


def _read_page(
    db: apsw.Connection, page_id: int, code_bytes: int
) -> dict[str, NDArray[Any]]:
    row = db.execute(
        f"SELECT {', '.join(VECTOR_COLUMNS)} FROM vector_pages WHERE page_id = ?",
        (page_id,),
    ).fetchone()
    shapes: dict[str, tuple[type, tuple[int, ...]]] = {
        "units": (np.int64, (SLOTS,)),
        "embeddings": (np.int64, (SLOTS,)),
        "codes": (np.uint8, (SLOTS, code_bytes)),
        "kinds": (np.uint8, (SLOTS,)),
        "sources": (np.int64, (SLOTS,)),
        "said": (np.int64, (SLOTS,)),
    }
    if row is None:
        return {name: np.zeros(shape, kind) for name, (kind, shape) in shapes.items()}
    return {
        name: np.frombuffer(stored, shapes[name][0]).reshape(shapes[name][1]).copy()
        for name, stored in zip(VECTOR_COLUMNS, row, strict=True)
    }


def _to_time(said_at: int | None) -> int:
    return UNKNOWN_TIME if said_at is None else said_at


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """A copy with room for ``size`` along the last axis, filled up with zeros."""
    grown = np.zeros((*array.shape[:-1], size), array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown
