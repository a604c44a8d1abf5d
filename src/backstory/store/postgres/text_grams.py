"""The table ``text_grams``: which units may have some part in their text.

Under row-level security, no index of PostgreSQL is used for that. So for each segment
whose unit numbers are all taken, there are the grams, five bytes each, of its folded
texts. A gram has a slot, which it shares with others, and in it one bit for every four
units that is set if one of them has it. Units with all grams of a needle are few, and
are compared. So are all units of segments without grams: of the segment that
is being filled, and of files and previews. Needles of two to four bytes have grams of
their own: see short_grams.py.

A segment loses its grams when one of its texts changes, and gets new ones at the end
of the transaction.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from backstory.store.postgres import short_grams
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.term_uses import SEGMENT_BITS, SEGMENT_SIZE
from backstory.values.units import first_note_id

# With fewer, too many texts have all grams of a word of common syllables.
_GRAM_BYTES = 5
# Of texts of usual length, a seventh of all bits are set: 256 bytes for each text.
_SLOT_BITS = 13
_BLOCK_BITS = 2
_BLOCKS = SEGMENT_SIZE >> _BLOCK_BITS
_SLOT_BYTES = _BLOCKS // 8
# Knuth's, for hashing by multiplication.
_FACTOR = np.uint32(2_654_435_761)
_PRIME = np.uint32(257)
# More grams of a needle would tell little more.
_MAX_GRAMS = 8
# The newest time of units without any.
_NEVER = -(1 << 63)


class UnitRange(NamedTuple):
    """Units by number, from the first one on; ``end`` is the first that is not one."""

    first: int
    end: int


class Candidates(NamedTuple):
    """Units of one segment that may have a needle in their text.

    ``newest_at`` is the time of its newest unit, or None if that is not known.
    """

    newest_at: int | None
    ranges: list[UnitRange]


def find_candidates(
    db: Connection, index_id: int, needle: str, limit: int
) -> list[Candidates] | None:
    """Where units may have the needle in their text.

    None if there may be more than ``limit`` of them, or the needle is too short.
    """
    raw = needle.encode()
    if len(raw) < _GRAM_BYTES:
        return _find_short(db, index_id, raw, limit)
    slots = _choose_slots(raw)
    columns = sql.SQL(", ").join(
        sql.SQL("substring(grams FROM {} FOR {})").format(
            slot * _SLOT_BYTES + 1, _SLOT_BYTES
        )
        for slot in slots
    )
    rows: list[Any] = db.execute(
        sql.SQL(
            """
            SELECT segment_id, newest_at, {} FROM text_grams WHERE index_id = %s
             ORDER BY segment_id
            """
        ).format(columns),
        (index_id,),
        binary=True,
    ).fetchall()
    found = [
        (segment_id, newest_at, _find_blocks(of_slots))
        for segment_id, newest_at, *of_slots in rows
    ]
    return _to_candidates(found, 1 << _BLOCK_BITS, limit)


def _find_short(
    db: Connection, index_id: int, needle: bytes, limit: int
) -> list[Candidates] | None:
    if len(needle) < short_grams.MIN_BYTES:
        return None
    found = []
    for segment_id, newest_at, blocks in short_grams.find_blocks(db, index_id, needle):
        if blocks is None:
            return None
        found.append((segment_id, newest_at, blocks))
    return _to_candidates(found, short_grams.BLOCK_UNITS, limit)


def _to_candidates(
    found: Sequence[tuple[int, int | None, NDArray[np.int64]]], size: int, limit: int
) -> list[Candidates] | None:
    """Blocks of segments, and all units of others; None if they are too many."""
    if sum(len(blocks) for _, _, blocks in found) * size > limit:
        return None
    candidates = [Candidates(None, _list_others([row[0] for row in found]))]
    for segment_id, newest_at, blocks in found:
        firsts = (blocks * size + (segment_id << SEGMENT_BITS)).tolist()
        ranges = [UnitRange(each, each + size) for each in firsts]
        if ranges:
            candidates.append(Candidates(newest_at, ranges))
    return candidates


def count_units(candidates: Sequence[Candidates]) -> int:
    """How many units of segments with grams are among candidates."""
    # The first are of the others.
    ranges = [each.ranges for each in candidates[1:]]
    return sum((some[0].end - some[0].first) * len(some) for some in ranges)


def _choose_slots(needle: bytes) -> list[int]:
    """The slots of some grams of a needle, from all over it."""
    slots = _find_slots(np.frombuffer(needle, np.uint8))
    chosen = np.linspace(0, len(slots) - 1, min(len(slots), _MAX_GRAMS)).astype(int)
    return sorted(set(slots[chosen].tolist()))


def _find_blocks(of_slots: Sequence[bytes]) -> NDArray[np.int64]:
    """The blocks that are in all slots of a segment."""
    if not of_slots[0]:
        return np.zeros(0, np.int64)
    bits = np.bitwise_and.reduce([np.frombuffer(each, np.uint8) for each in of_slots])
    return np.flatnonzero(np.unpackbits(bits))


def _list_others(segment_ids: Sequence[int]) -> list[UnitRange]:
    """All units that are not in these segments, which are in order."""
    ends = [0, *((each + 1) << SEGMENT_BITS for each in segment_ids)]
    firsts = [*(each << SEGMENT_BITS for each in segment_ids), (1 << 63) - 1]
    return [
        UnitRange(end, first)
        for end, first in zip(ends, firsts, strict=True)
        if end < first
    ]


def _find_slots(text: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The slot of every gram of a text."""
    if len(text) < _GRAM_BYTES:
        return np.zeros(0, np.uint32)
    count = len(text) - _GRAM_BYTES + 1
    grams = np.zeros(count, np.uint32)
    for place in range(_GRAM_BYTES):
        grams *= _PRIME
        grams += text[place : place + count]
    grams *= _FACTOR
    grams >>= np.uint32(32 - _SLOT_BITS)
    return grams


# -- writing --------------------------------------------------------------------------


def refresh(db: Connection, index_id: int, changed: Collection[int]) -> None:
    """Give grams to all full segments, after the texts of some units have changed."""
    stale = {
        unit_id >> SEGMENT_BITS for unit_id in changed if unit_id < first_note_id()
    }
    if not stale:
        return
    row = db.execute(
        """
        SELECT (SELECT unit_id FROM units WHERE index_id = %s AND unit_id < %s
                 ORDER BY unit_id DESC LIMIT 1),
               ARRAY(SELECT segment_id FROM text_grams WHERE index_id = %s)
        """,
        (index_id, first_note_id(), index_id),
    ).fetchone()
    assert row is not None
    last, there = row[0] or 0, set(row[1])
    if stale & there:
        db.execute(
            """
            DELETE FROM text_grams
             WHERE index_id = %s AND segment_id = ANY(%s::bigint[])
            """,
            (index_id, list(stale & there)),
        )
    for segment_id in sorted(set(range(last >> SEGMENT_BITS)) - (there - stale)):
        row = _read_segment(db, index_id, segment_id)
        db.execute(
            """
            INSERT INTO text_grams (index_id, segment_id, newest_at, grams, short_grams)
            VALUES (%s, %s, %s, %b, %b)
            """,
            (index_id, segment_id, *row),
        )


def list_without_short(db: Connection, index_id: int) -> list[int]:
    """The segments that were filled by code that does not know short grams."""
    rows = db.execute(
        """
        SELECT segment_id FROM text_grams
         WHERE index_id = %s AND short_grams IS NULL ORDER BY segment_id
        """,
        (index_id,),
    )
    return [segment_id for (segment_id,) in rows]


def add_short(db: Connection, index_id: int, segment_id: int) -> None:
    """Add to a segment what that code does not know."""
    newest_at, _, short = _read_segment(db, index_id, segment_id)
    db.execute(
        """
        UPDATE text_grams SET newest_at = %s, short_grams = %b
         WHERE index_id = %s AND segment_id = %s
        """,
        (newest_at, short, index_id, segment_id),
    )


def _read_segment(
    db: Connection, index_id: int, segment_id: int
) -> tuple[int, bytes, bytes]:
    """What is stored of a segment: its newest time, and both kinds of grams."""
    rows = db.execute(
        """
        SELECT unit_id, folded, said_at FROM units
         WHERE index_id = %s AND unit_id >= %s AND unit_id < %s
        """,
        (index_id, segment_id << SEGMENT_BITS, (segment_id + 1) << SEGMENT_BITS),
    )
    texts, newest_at = {}, _NEVER
    for unit_id, folded, said_at in rows:
        texts[unit_id] = folded.encode()
        newest_at = max(newest_at, _NEVER if said_at is None else said_at)
    return newest_at, _pack_grams(texts), short_grams.pack(texts)


def _pack_grams(texts: dict[int, bytes]) -> bytes:
    """The grams of texts, by unit; empty if there are no texts."""
    if not texts:
        return b""
    # No needle has the zero between two texts.
    joined = b"\0".join([*texts.values(), b"\0" * (_GRAM_BYTES - 1)])
    slots = _find_slots(np.frombuffer(joined, np.uint8))
    unit_ids = np.fromiter(texts, np.int64, len(texts))
    sizes = np.fromiter(map(len, texts.values()), np.int64, len(texts)) + 1
    blocks = (unit_ids & (SEGMENT_SIZE - 1)) >> _BLOCK_BITS
    is_there = np.zeros(_BLOCKS << _SLOT_BITS, np.bool_)
    is_there[
        slots * np.uint32(_BLOCKS) + np.repeat(blocks, sizes).astype(np.uint32)
    ] = 1
    packed: bytes = np.packbits(is_there).tobytes()
    return packed


# -- verification ---------------------------------------------------------------------


def list_wrong(db: Connection, index_id: int) -> list[int]:
    """The segments whose grams are not those of their texts."""
    rows: Iterable[Any] = db.execute(
        """
        SELECT segment_id, newest_at, grams, short_grams FROM text_grams
         WHERE index_id = %s
        """,
        (index_id,),
        binary=True,
    ).fetchall()
    return [
        segment_id
        for segment_id, *stored in rows
        if not _is_right(stored, _read_segment(db, index_id, segment_id))
    ]


def _is_right(stored: Sequence[object], expected: Sequence[object]) -> bool:
    """Whether a row is as it should be, or as code would leave it that knows less."""
    return all(
        found in (None, value) for found, value in zip(stored, expected, strict=True)
    )
