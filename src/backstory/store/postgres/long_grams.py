"""The table ``gram_units``: which texts of a segment have a part of five bytes or more.

For each segment that has grams, there are those of five bytes of its folded texts. A
gram has a slot, which it shares with others, and a row for each segment that has the
units in whose texts one of them is. The units with all grams of a part are few.

In a row, units are numbers within the segment: each is stored as the distance to the
one before it, in one byte; 255 only skips that many units, and the rest of the
distance follows, which may be 0. If that takes more room than one bit for each unit of
the segment, it is bits.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.term_uses import SEGMENT_BITS, SEGMENT_SIZE

# With fewer, too many texts have all grams of a word of common syllables.
GRAM_BYTES = 5
# Texts of usual length have a fortieth of all slots.
_SLOT_BITS = 13
_SLOTS = 1 << _SLOT_BITS
_AS_BITS = SEGMENT_SIZE // 8
_FAR = 255
# Knuth's constant for multiplicative hashing.
_FACTOR = np.uint32(2_654_435_761)
_PRIME = np.uint32(257)
# More grams of a part would tell little more.
_MAX_GRAMS = 8
# Units per block.
_BLOCK_UNITS = 4

# A slot and its units, as they are stored.
Row = tuple[int, bytes]
# The place of a segment among others, and the units of a slot in it.
_Placed = tuple[int, bytes]


class Found(NamedTuple):
    """The units that have all grams of a part, by segment, in order.

    ``spread`` is how many units are in blocks of four that have all of them, if not in
    the same unit: it tells whether the grams are frequent.
    """

    unit_ids: dict[int, NDArray[np.int64]]
    spread: dict[int, int]


# -- reading --------------------------------------------------------------------------


def find_units(
    db: Connection, index_id: int, part: bytes, segment_ids: Sequence[int]
) -> Found:
    """The units of some segments, which are in order, that have all grams of a part."""
    if not segment_ids:
        return Found({}, {})
    slots = _choose_slots(part)
    # Rows are looked up one by one, for the reason that looked_up tells.
    rows: list[Any] = db.execute(
        """
        SELECT slot, segment_id, units
          FROM unnest(%s::smallint[]) AS wanted (its_slot)
         CROSS JOIN LATERAL (
               SELECT slot, segment_id, units FROM gram_units
                WHERE index_id = %s AND slot BETWEEN its_slot AND its_slot
                ORDER BY slot, segment_id OFFSET 0) AS gram_units
        """,
        (slots, index_id),
        binary=True,
    ).fetchall()
    places = {segment_id: place for place, segment_id in enumerate(segment_ids)}
    of_slots: dict[int, list[_Placed]] = {slot: [] for slot in slots}
    for slot, segment_id, packed in rows:
        if segment_id in places:
            of_slots[slot].append((places[segment_id], packed))
    there = np.zeros(len(segment_ids) * SEGMENT_SIZE, np.bool_)
    has_all = np.ones(len(there), np.bool_)
    near_all = np.ones(len(there) // _BLOCK_UNITS, np.bool_)
    for some in of_slots.values():
        there.fill(False)
        _unpack(some, there)
        has_all &= there
        near_all &= there.view(f"u{_BLOCK_UNITS}") != 0
    found = np.flatnonzero(has_all)
    ends = np.searchsorted(found, np.arange(1, len(segment_ids)) * SEGMENT_SIZE)
    spread = near_all.reshape(len(segment_ids), -1).sum(axis=1) * _BLOCK_UNITS
    return Found(
        {
            segment_id: (some & (SEGMENT_SIZE - 1)) + (segment_id << SEGMENT_BITS)
            for segment_id, some in zip(segment_ids, np.split(found, ends), strict=True)
        },
        dict(zip(segment_ids, spread.tolist(), strict=True)),
    )


def _unpack(rows: Sequence[_Placed], there: NDArray[np.bool_]) -> None:
    """Mark which units are in some rows, each given with the place of its segment."""
    lists = [(place, packed) for place, packed in rows if len(packed) < _AS_BITS]
    if lists:
        steps = np.frombuffer(b"".join([packed for _, packed in lists]), np.uint8)
        sizes = np.fromiter((len(packed) for _, packed in lists), np.int64, len(lists))
        firsts = np.cumsum(sizes) - sizes
        # Each list begins at its segment, wherever the one before it has ended.
        begins = np.fromiter((place for place, _ in lists), np.int64, len(lists))
        begins <<= SEGMENT_BITS
        ends = begins + np.add.reduceat(steps, firsts, dtype=np.int64)
        units = steps.astype(np.int64)
        units[firsts] += begins
        units[firsts[1:]] -= ends[:-1]
        np.cumsum(units, out=units)
        there[units] = True
        # A 255 only skips units: where it lands counts only if the next distance is 0.
        far = np.flatnonzero(steps == _FAR)
        there[units[far]] = steps[far + 1] == 0
    for place, packed in rows:
        if len(packed) == _AS_BITS:
            first = place << SEGMENT_BITS
            bits = np.unpackbits(np.frombuffer(packed, np.uint8))
            there[first : first + SEGMENT_SIZE] = bits


def _choose_slots(part: bytes) -> list[int]:
    """The slots of some grams of a part, from all over it."""
    slots = _find_slots(np.frombuffer(part, np.uint8))
    chosen = np.linspace(0, len(slots) - 1, min(len(slots), _MAX_GRAMS)).astype(int)
    return sorted(set(slots[chosen].tolist()))


def _find_slots(text: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The slot of every gram of a text."""
    if len(text) < GRAM_BYTES:
        return np.zeros(0, np.uint32)
    count = len(text) - GRAM_BYTES + 1
    grams = np.zeros(count, np.uint32)
    for place in range(GRAM_BYTES):
        grams *= _PRIME
        grams += text[place : place + count]
    grams *= _FACTOR
    grams >>= np.uint32(32 - _SLOT_BITS)
    return grams


# -- writing --------------------------------------------------------------------------


def insert_rows(
    db: Connection, index_id: int, segment_id: int, rows: Sequence[Row]
) -> None:
    """Store the rows of a segment that has none."""
    db.execute(
        """
        INSERT INTO gram_units (index_id, slot, segment_id, units)
        SELECT %s, slot, %s, units
          FROM unnest(%s::smallint[], %b::bytea[]) AS packed (slot, units)
        """,
        (index_id, segment_id, [slot for slot, _ in rows], [each for _, each in rows]),
    )


def delete_rows(db: Connection, index_id: int, segment_id: int) -> None:
    db.execute(
        """
        DELETE FROM gram_units
         WHERE ctid = ANY(ARRAY(
               SELECT place FROM generate_series(0, %s) AS its_slot
                CROSS JOIN LATERAL (
                      SELECT ctid AS place FROM gram_units
                       WHERE index_id = %s AND slot BETWEEN its_slot AND its_slot
                         AND segment_id = %s
                       ORDER BY slot LIMIT 1) AS gram_units))
        """,
        (_SLOTS - 1, index_id, segment_id),
    )


def read_rows(db: Connection, index_id: int, segment_id: int) -> list[Row]:
    """All rows of a segment, in the order of their slots."""
    rows: list[Any] = db.execute(
        """
        SELECT slot, units FROM gram_units
         WHERE index_id = %s AND segment_id = %s ORDER BY slot
        """,
        (index_id, segment_id),
        binary=True,
    ).fetchall()
    return rows


def pack(texts: dict[int, bytes]) -> list[Row]:
    """The rows of a segment with some texts, which are given by unit."""
    if not texts:
        return []
    # No part has the zero between two texts.
    joined = b"\0".join([*texts.values(), b"\0" * (GRAM_BYTES - 1)])
    slots = _find_slots(np.frombuffer(joined, np.uint8))
    places = np.fromiter(texts, np.int64, len(texts)) & (SEGMENT_SIZE - 1)
    sizes = np.fromiter(map(len, texts.values()), np.int64, len(texts)) + 1
    units = np.repeat(places.astype(np.uint32), sizes)
    uses = (slots << np.uint32(SEGMENT_BITS)) | units
    uses.sort()
    is_new = np.ones(len(uses), np.bool_)
    is_new[1:] = uses[1:] != uses[:-1]
    return _pack_uses(uses[is_new])


def _pack_uses(uses: NDArray[np.uint32]) -> list[Row]:
    """The rows of slots and units, which are one number each, in order."""
    slots, units = uses >> np.uint32(SEGMENT_BITS), uses & np.uint32(SEGMENT_SIZE - 1)
    firsts = np.flatnonzero(np.diff(slots, prepend=np.uint32(_SLOTS)))
    gaps = np.diff(units, prepend=np.uint32(0))
    gaps[firsts] = units[firsts]
    ends = np.cumsum(gaps // _FAR + 1)
    steps = np.full(int(ends[-1]) if len(ends) else 0, _FAR, np.uint8)
    steps[ends - 1] = gaps % _FAR
    packed = steps.tobytes()
    rows: list[Row] = []
    at = 0
    for first, last in pairwise([*firsts.tolist(), len(uses)]):
        end = int(ends[last - 1])
        each = packed[at:end]
        if len(each) >= _AS_BITS:
            bits = np.zeros(SEGMENT_SIZE, np.bool_)
            bits[units[first:last]] = True
            each = np.packbits(bits).tobytes()
        rows.append((int(slots[first]), each))
        at = end
    return rows


def without(rows: Sequence[Row], unit_ids: Collection[int]) -> list[Row]:
    """Rows as they would be if these units had no text."""
    places = np.fromiter(unit_ids, np.int64, len(unit_ids)) & (SEGMENT_SIZE - 1)
    uses = [np.zeros(0, np.uint32)]
    for slot, packed in rows:
        there = np.zeros(SEGMENT_SIZE, np.bool_)
        _unpack([(0, packed)], there)
        there[places] = False
        units = np.flatnonzero(there).astype(np.uint32)
        uses.append(units | np.uint32(slot << SEGMENT_BITS))
    return _pack_uses(np.concatenate(uses))
