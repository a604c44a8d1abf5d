"""Which texts of a segment have a part of two to four bytes: grams of three bytes.

Such a part has one or two grams, so unlike those of long_grams.py, they share nothing:
there are thousands in a segment, and most are in few texts. Each has the blocks of
sixteen units of which one has it, as a list or, if they are many, as one bit for each.
Grams that begin with the same two bytes are in the same group, and the groups are in
order, so what begins with two bytes is read at once, from a few hundred bytes.

Packed, that is: where each group begins, and where the last one ends; then for each
gram its three bytes, the number of its blocks, and these.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.term_uses import SEGMENT_SIZE

GRAM_BYTES = 3
MIN_BYTES = 2
BLOCK_UNITS = 16
_BLOCK_BITS = 4
_BLOCKS = SEGMENT_SIZE >> _BLOCK_BITS
_GROUP_BITS = 12
_OFFSET_BYTES = 4
_HEADER_BYTES = ((1 << _GROUP_BITS) + 1) * _OFFSET_BYTES
# A gram, and the number of its blocks.
_HEAD_BYTES = 5
_LISTED = "<u2"
# With as many blocks or more, bits take less room.
_MANY = _BLOCKS // 16
# Knuth's, for hashing by multiplication.
_FACTOR = 2_654_435_761
_ALL_GRAMS = 1 << (8 * GRAM_BYTES)
# So many grams at a time, each with all blocks: 32 MB.
_AT_ONCE = 1 << 15

Blocks = NDArray[np.int64]


def find_blocks(db: Connection, index_id: int, needle: bytes) -> dict[int, Blocks]:
    """The blocks of each segment that have a needle of two to four bytes."""
    starts = sorted({needle[at : at + 2] for at in range(max(1, len(needle) - 2))})
    rows: list[Any] = db.execute(
        sql.SQL("SELECT segment_id, {} FROM gram_segments WHERE index_id = %s").format(
            sql.SQL(", ").join(map(_slice, starts))
        ),
        (index_id,),
        binary=True,
    ).fetchall()
    return {
        segment_id: _find_in_groups(needle, dict(zip(starts, groups, strict=True)))
        for segment_id, *groups in rows
    }


def _slice(start: bytes) -> sql.Composed:
    """The group of a beginning, out of the packed grams."""
    (group,) = _groups_of(np.array([int.from_bytes(start)], np.uint32)).tolist()
    first, end = (
        sql.SQL("('x' || encode(substring(short_grams FROM {} FOR {}), 'hex'))").format(
            number * _OFFSET_BYTES + 1, _OFFSET_BYTES
        )
        for number in (group, group + 1)
    )
    return sql.SQL(
        "substring(short_grams FROM {0}::bit(32)::integer + 1 "
        "FOR {1}::bit(32)::integer - {0}::bit(32)::integer)"
    ).format(first, end)


def _find_in_groups(needle: bytes, groups: dict[bytes, bytes]) -> Blocks:
    """The blocks with all grams of a needle."""
    if len(needle) < GRAM_BYTES:
        return np.flatnonzero(_collect(groups[needle], needle))
    places = range(len(needle) - GRAM_BYTES + 1)
    grams = [needle[at : at + GRAM_BYTES] for at in places]
    having = [_collect(groups[gram[:2]], gram) for gram in grams]
    return np.flatnonzero(np.logical_and.reduce(having))


def _collect(group: bytes, beginning: bytes) -> NDArray[np.bool_]:
    """Which blocks have a gram that begins so."""
    there = np.zeros(_BLOCKS, np.bool_)
    at = 0
    while at < len(group):
        gram = group[at : at + GRAM_BYTES]
        count = int.from_bytes(group[at + GRAM_BYTES : at + _HEAD_BYTES], "little")
        at += _HEAD_BYTES
        size = _size_of(count)
        if gram.startswith(beginning):
            packed = group[at : at + size]
            if count < _MANY:
                there[np.frombuffer(packed, _LISTED)] = True
            else:
                there |= np.unpackbits(np.frombuffer(packed, np.uint8)).astype(np.bool_)
        at += size
    return there


def _size_of(count: int) -> int:
    return count * 2 if count < _MANY else _BLOCKS // 8


# -- packing --------------------------------------------------------------------------


def pack(texts: dict[int, bytes]) -> bytes:
    """The grams of the texts of a segment, by unit; empty if there are no texts."""
    if not texts:
        return b""
    grams, blocks = _list_uses(texts)
    seen = np.zeros(_ALL_GRAMS, np.bool_)
    seen[grams] = True
    known = np.flatnonzero(seen).astype(np.uint32)
    groups = _groups_of(known >> np.uint32(8))
    order = np.argsort(groups, kind="stable")
    known, groups = known[order], groups[order]
    rows = np.empty(_ALL_GRAMS, np.uint32)
    rows[known] = np.arange(len(known), dtype=np.uint32)
    rows = rows[grams]
    parts, sizes = [], [np.zeros(0, np.int64)]
    for first in range(0, len(known), _AT_ONCE):
        some = known[first : first + _AT_ONCE]
        chosen = (rows >= first) & (rows < first + len(some))
        there = np.zeros((len(some), _BLOCKS), np.bool_)
        there[rows[chosen] - np.uint32(first), blocks[chosen]] = True
        packed, of_some = _pack_rows(some, there)
        parts.append(packed)
        sizes.append(of_some)
    of_groups = np.bincount(groups, np.concatenate(sizes), minlength=1 << _GROUP_BITS)
    ends = _HEADER_BYTES + np.concatenate([[0], np.cumsum(of_groups)])
    # As PostgreSQL reads numbers.
    return b"".join([ends.astype(">u4").tobytes(), *parts])


def _list_uses(
    texts: dict[int, bytes],
) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """All grams of texts, as often as they are there, and the block of each."""
    # No needle has the zeros after a text, and what it ends with is in grams, too.
    after = b"\0" * (GRAM_BYTES - 1)
    joined = np.frombuffer(after.join([*texts.values(), after]), np.uint8)
    first, second = joined[:-2].astype(np.uint32), joined[1:-1].astype(np.uint32)
    grams = (first << 16) | (second << 8) | joined[2:]
    sizes = np.fromiter(map(len, texts.values()), np.int64, len(texts)) + len(after)
    unit_ids = np.fromiter(texts, np.int64, len(texts))
    of_units = (unit_ids & (SEGMENT_SIZE - 1)) >> _BLOCK_BITS
    blocks = np.repeat(of_units.astype(np.uint16), sizes)[: len(grams)]
    begins = (first != 0) & (second != 0)
    return grams[begins], blocks[begins]


def _pack_rows(
    grams: NDArray[np.uint32], there: NDArray[np.bool_]
) -> tuple[bytes, NDArray[np.int64]]:
    """Grams with the blocks that have them, packed, and how much each takes."""
    counts = there.sum(axis=1)
    is_many = counts >= _MANY
    sizes = _HEAD_BYTES + np.where(is_many, _BLOCKS // 8, 2 * counts)
    starts = np.cumsum(sizes) - sizes
    packed = np.zeros(int(sizes.sum()), np.uint8)
    heads = (grams >> 16, grams >> 8, grams, counts, counts >> 8)
    for place, each in enumerate(heads):
        packed[starts + place] = each.astype(np.uint8)
    data = starts + _HEAD_BYTES
    packed[data[is_many, None] + np.arange(_BLOCKS // 8)] = np.packbits(
        there[is_many], axis=1
    )
    few = counts[~is_many]
    of_row, blocks = np.nonzero(there[~is_many])
    rank = np.arange(len(of_row)) - np.repeat(np.cumsum(few) - few, few)
    at = data[~is_many][of_row] + 2 * rank
    packed[at], packed[at + 1] = blocks.astype(np.uint8), blocks >> 8
    return packed.tobytes(), sizes


def _groups_of(starts: NDArray[np.uint32]) -> NDArray[np.uint32]:
    groups: NDArray[np.uint32] = (starts * np.uint32(_FACTOR)) >> np.uint32(
        32 - _GROUP_BITS
    )
    return groups
