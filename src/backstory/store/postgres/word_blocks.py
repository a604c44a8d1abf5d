"""The tables ``word_blocks`` and ``word_segments``: the words of most units, packed.

A segment is a range of unit numbers, and a unit's place is its number within it. A
block has all units of a segment that have one term. It is found by equality alone, for
which an index is used under row-level security, and is read in one piece, however
frequent the term is.

A unit that is deleted is only marked so in the segment's row, which hides it: which
blocks it is in is not known. Its traces are removed when the index is tidied, or before
a unit with the same number comes.
"""

import secrets
import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.postings import (
    Ints,
    Postings,
    UnitWords,
    join_postings,
    no_postings,
    pack,
    to_postings,
    unpack,
)
from backstory.store.postgres.rows import to_columns
from backstory.system.fork_safety import reset_in_child

# A longer segment would be read in fewer pieces, but written again more often.
_SEGMENT_BITS = 14
_SEGMENT_SIZE = 1 << _SEGMENT_BITS
_VERSION_BITS = 62
# In place of the word count of a unit that was deleted and is still in blocks.
_DELETED = -1
# For all segments that a process remembers: the counts of 20 million units.
_MAX_REMEMBERED_BYTES = 160_000_000


# How many units, and their places, counts and positions.
_PackedBlock = tuple[int, bytes, bytes, bytes, bytes]


class _Segment(NamedTuple):
    word_counts: Ints
    deleted_count: int


class SegmentCounts:
    """The word counts of segments that were read before and have not changed."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int], tuple[int, Ints]] = {}
        self._size_bytes = 0

    def read(
        self, db: Connection, index_id: int, segment_ids: Collection[int]
    ) -> dict[int, Ints]:
        """The counts of these segments, each for all of its places."""
        rows = db.execute(
            """
            SELECT segment_id, version FROM word_segments
             WHERE index_id = %s AND segment_id = ANY(%s::bigint[])
            """,
            (index_id, list(segment_ids)),
        )
        versions: dict[int, int] = dict(rows.fetchall())
        found = {}
        with self._lock:
            for segment_id, version in versions.items():
                known = self._known.get((index_id, segment_id))
                if known is not None and known[0] == version:
                    found[segment_id] = known[1]
        missing = versions.keys() - found.keys()
        if missing:
            for segment_id, segment in _read_segments(db, index_id, missing).items():
                found[segment_id] = segment.word_counts
                self._keep(
                    (index_id, segment_id), versions[segment_id], segment.word_counts
                )
        return found

    def _keep(self, key: tuple[int, int], version: int, counts: Ints) -> None:
        with self._lock:
            if self._size_bytes + counts.nbytes > _MAX_REMEMBERED_BYTES:
                self._known.clear()
                self._size_bytes = 0
            before = self._known.get(key)
            self._size_bytes += counts.nbytes - (before[1].nbytes if before else 0)
            self._known[key] = (version, counts)


# -- reading --------------------------------------------------------------------------


def find_postings(
    db: Connection,
    index_id: int,
    terms: Collection[str],
    segments: SegmentCounts,
    *,
    with_positions: bool,
) -> dict[str, Postings]:
    """The units that have these terms; a term that none has is left out."""
    rows: list[Any] = db.execute(
        f"""
        SELECT term, segment_id, unit_count, places, text_counts, around_counts,
               {"positions" if with_positions else "NULL::bytea"}
          FROM word_blocks WHERE index_id = %s AND term = ANY(%b::text[])
         ORDER BY segment_id
        """.encode(),
        (index_id, list(terms)),
        binary=True,
    ).fetchall()
    if not rows:
        return {}
    counts = segments.read(db, index_id, {row[1] for row in rows})
    parts: dict[str, list[Postings]] = {}
    for term, segment_id, unit_count, *packed in rows:
        block = _unpack_block(segment_id, unit_count, packed, counts[segment_id])
        parts.setdefault(term, []).append(block)
    return {term: _concatenate(some) for term, some in parts.items()}


def _concatenate(parts: list[Postings]) -> Postings:
    """Postings of segments that are in order."""
    if len(parts) == 1:
        return parts[0]
    return Postings(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _unpack_block(
    segment_id: int, unit_count: int, packed: list[bytes | None], word_counts: Ints
) -> Postings:
    """The postings of a block, without units that were deleted."""
    places, text_counts, around_counts = (
        unpack(each or b"", unit_count) for each in packed[:3]
    )
    uses = text_counts + around_counts
    positions = no_postings().positions
    if packed[3] is not None:
        positions = unpack(packed[3], int(uses.sum()))
    unit_ids = places + (segment_id << _SEGMENT_BITS)
    lengths = word_counts[places]
    lives = lengths > 0
    if not lives.all():
        if len(positions):
            positions = positions[np.repeat(lives, uses)]
        unit_ids, lengths = unit_ids[lives], lengths[lives]
        text_counts, around_counts = text_counts[lives], around_counts[lives]
    return Postings(unit_ids, lengths, text_counts, around_counts, positions)


def count_units(
    db: Connection, index_id: int, terms: Collection[str]
) -> dict[str, int]:
    """In how many units each term is, among them some that were deleted."""
    rows = db.execute(
        """
        SELECT term, SUM(unit_count) FROM word_blocks
         WHERE index_id = %s AND term = ANY(%b::text[]) GROUP BY term
        """,
        (index_id, list(terms)),
    )
    return {term: int(count) for term, count in rows}


def _read_segments(
    db: Connection, index_id: int, segment_ids: Iterable[int]
) -> dict[int, _Segment]:
    rows = db.execute(
        """
        SELECT segment_id, deleted_count, word_counts FROM word_segments
         WHERE index_id = %s AND segment_id = ANY(%s::bigint[])
        """,
        (index_id, list(segment_ids)),
        binary=True,
    )
    return {
        segment_id: _Segment(_unpack_counts(packed), deleted_count)
        for segment_id, deleted_count, packed in rows
    }


def size_bytes(db: Connection, index_id: int) -> int:
    """How much the blocks take, packed as they are."""
    row = db.execute(
        """
        SELECT COALESCE(SUM(pg_column_size(places) + pg_column_size(text_counts)
                            + pg_column_size(around_counts)
                            + pg_column_size(positions)), 0)::bigint
          FROM word_blocks WHERE index_id = %s
        """,
        (index_id,),
    ).fetchone()
    assert row is not None
    return int(row[0])


# -- writing --------------------------------------------------------------------------


def add_words(db: Connection, index_id: int, words: Mapping[int, UnitWords]) -> None:
    """Store the words of units that are not in any block."""
    by_segment: dict[int, dict[int, UnitWords]] = {}
    for unit_id in sorted(words):
        segment_id, place = divmod(unit_id, _SEGMENT_SIZE)
        by_segment.setdefault(segment_id, {})[place] = words[unit_id]
    segments = _read_segments(db, index_id, by_segment)
    for segment_id, units in by_segment.items():
        segment = segments.get(segment_id) or _Segment(
            np.zeros(_SEGMENT_SIZE, np.int64), 0
        )
        if (segment.word_counts[list(units)] == _DELETED).any():
            segment = _clean_blocks(db, index_id, segment_id, segment)
        _add_to_blocks(db, index_id, segment_id, units)
        counts = segment.word_counts.copy()
        for place, unit in units.items():
            counts[place] = unit.word_count
        _save_segment(db, index_id, segment_id, segment._replace(word_counts=counts))


def _add_to_blocks(
    db: Connection,
    index_id: int,
    segment_id: int,
    units: Mapping[int, UnitWords],
) -> None:
    """Add units, in the order of their places, to the blocks of their terms."""
    added = dict(to_postings(units))
    rows: list[Any] = db.execute(
        """
        SELECT term, unit_count, places, text_counts, around_counts, positions
          FROM word_blocks
         WHERE index_id = %s AND segment_id = %s AND term = ANY(%b::text[])
        """,
        (index_id, segment_id, list(added)),
        binary=True,
    ).fetchall()
    blocks = {term: _pack_postings(new) for term, new in added.items()}
    all_live = np.ones(_SEGMENT_SIZE, np.int64)
    for term, unit_count, *packed in rows:
        stored = _unpack_block(0, unit_count, packed, all_live)
        blocks[term] = _pack_postings(join_postings([stored, added[term]]))
    _save_blocks(db, index_id, segment_id, blocks)


def _pack_postings(postings: Postings) -> _PackedBlock:
    """Postings whose units are numbered by their places."""
    return (
        len(postings.unit_ids),
        pack(postings.unit_ids),
        pack(postings.text_counts),
        pack(postings.around_counts),
        pack(postings.positions),
    )


def _save_blocks(
    db: Connection,
    index_id: int,
    segment_id: int,
    blocks: Mapping[str, _PackedBlock],
) -> None:
    if not blocks:
        return
    rows = [(term, *block) for term, block in blocks.items()]
    db.execute(
        """
        INSERT INTO word_blocks (index_id, segment_id, term, unit_count, places,
                                 text_counts, around_counts, positions)
        SELECT %s, %s, * FROM unnest(%b::text[], %s::integer[], %b::bytea[],
                                     %b::bytea[], %b::bytea[], %b::bytea[])
            ON CONFLICT (tenant_id, index_id, term, segment_id) DO UPDATE
           SET unit_count = excluded.unit_count, places = excluded.places,
               text_counts = excluded.text_counts,
               around_counts = excluded.around_counts, positions = excluded.positions
        """,
        (index_id, segment_id, *to_columns(rows, 6)),
    )


def _save_segment(
    db: Connection, index_id: int, segment_id: int, segment: _Segment
) -> None:
    db.execute(
        """
        INSERT INTO word_segments (index_id, segment_id, version, deleted_count,
                                   word_counts)
        VALUES (%s, %s, %s, %s, %b)
            ON CONFLICT (tenant_id, index_id, segment_id) DO UPDATE
           SET version = excluded.version, deleted_count = excluded.deleted_count,
               word_counts = excluded.word_counts
        """,
        (
            index_id,
            segment_id,
            secrets.randbits(_VERSION_BITS),
            segment.deleted_count,
            segment.word_counts.astype("<i4").tobytes(),
        ),
    )


def _unpack_counts(packed: bytes) -> Ints:
    return np.frombuffer(packed, "<i4").astype(np.int64)


# -- deleting -------------------------------------------------------------------------


def hide_units(db: Connection, index_id: int, unit_ids: Collection[int]) -> None:
    """Let units be found no more; those that are in no block are ignored."""
    by_segment: dict[int, list[int]] = {}
    for unit_id in unit_ids:
        segment_id, place = divmod(unit_id, _SEGMENT_SIZE)
        by_segment.setdefault(segment_id, []).append(place)
    for segment_id, segment in _read_segments(db, index_id, by_segment).items():
        counts = segment.word_counts.copy()
        places = np.asarray(by_segment[segment_id], np.int64)
        hidden = places[counts[places] > 0]
        if len(hidden):
            counts[hidden] = _DELETED
            deleted_count = segment.deleted_count + len(hidden)
            _save_segment(db, index_id, segment_id, _Segment(counts, deleted_count))


def clean_segments(db: Connection, index_id: int) -> bool:
    """Remove all traces of deleted units; returns whether there were any."""
    rows = db.execute(
        """
        SELECT segment_id FROM word_segments
         WHERE index_id = %s AND deleted_count > 0
        """,
        (index_id,),
    ).fetchall()
    segments = _read_segments(db, index_id, [segment_id for (segment_id,) in rows])
    for segment_id, segment in segments.items():
        clean = _clean_blocks(db, index_id, segment_id, segment)
        _save_segment(db, index_id, segment_id, clean)
    return bool(segments)


def _clean_blocks(
    db: Connection, index_id: int, segment_id: int, segment: _Segment
) -> _Segment:
    """Remove deleted units from the blocks of a segment; returns what it is then."""
    rows: list[Any] = db.execute(
        """
        SELECT term, unit_count, places, text_counts, around_counts, positions
          FROM word_blocks WHERE index_id = %s AND segment_id = %s
        """,
        (index_id, segment_id),
        binary=True,
    ).fetchall()
    changed, empty = {}, []
    for term, unit_count, *packed in rows:
        block = _unpack_block(0, unit_count, packed, segment.word_counts)
        if not len(block.unit_ids):
            empty.append(term)
        elif len(block.unit_ids) < unit_count:
            changed[term] = _pack_postings(block)
    _save_blocks(db, index_id, segment_id, changed)
    db.execute(
        """
        DELETE FROM word_blocks
         WHERE index_id = %s AND segment_id = %s AND term = ANY(%b::text[])
        """,
        (index_id, segment_id, empty),
    )
    return _Segment(np.maximum(segment.word_counts, 0), 0)


# -- verification ---------------------------------------------------------------------


def sum_word_counts(db: Connection, index_id: int) -> dict[int, int]:
    """How many words each unit has in all blocks, as far as it can be found."""
    rows = db.execute(
        "SELECT segment_id FROM word_segments WHERE index_id = %s", (index_id,)
    ).fetchall()
    segments = _read_segments(db, index_id, [segment_id for (segment_id,) in rows])
    found: dict[int, int] = {}
    for segment_id, segment in segments.items():
        counted = np.zeros(_SEGMENT_SIZE, np.int64)
        blocks: list[Any] = db.execute(
            """
            SELECT unit_count, places, text_counts, around_counts, positions
              FROM word_blocks WHERE index_id = %s AND segment_id = %s
            """,
            (index_id, segment_id),
            binary=True,
        ).fetchall()
        for unit_count, *packed in blocks:
            block = _unpack_block(0, unit_count, packed, segment.word_counts)
            counted[block.unit_ids] += block.text_counts + block.around_counts
        first = segment_id << _SEGMENT_BITS
        stated = np.maximum(segment.word_counts, 0)
        for place in np.flatnonzero(counted + stated).tolist():
            is_right = counted[place] == stated[place]
            found[first + place] = int(counted[place]) if is_right else -1
    return found
