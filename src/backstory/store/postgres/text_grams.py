"""The table ``gram_segments``: where units may have some part in their text.

Under row-level security, no index of PostgreSQL is used for that. So for each segment
whose unit numbers are all taken, there are the grams of its folded texts: of five bytes
(long_grams.py) and of three, for needles of two to four bytes (short_grams.py). Units
with all grams of a needle are few, and are compared. So are all units of segments
without grams: of the segment that is being filled, and of files.

A segment of messages loses its grams when one of its texts changes, and gets new ones
at the end of the transaction. Titles and previews change all the time, so a segment
of these keeps its grams, and ``changed_ids`` are the units that are compared in any
case. When they are many, it gets new grams.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backstory.store.postgres import long_grams, short_grams
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.term_uses import SEGMENT_BITS
from backstory.values.units import (
    first_note_id,
    first_session_unit_id,
    is_message,
    is_session,
)

# How many titles and previews are compared, at most, as they have no grams.
_MAX_CHANGED = 512
# How many segments get grams in one transaction besides those whose texts it changes.
_MOST_AT_ONCE = 4
# The newest time of units without any.
_NEVER = -(1 << 63)


class UnitRange(NamedTuple):
    """Units by number, from the first one on; ``end`` is the first that is not one."""

    first: int
    end: int


class GramSegment(NamedTuple):
    """A segment that has grams.

    ``newest_at`` is the time of its newest unit; None for titles and previews.
    """

    segment_id: int
    newest_at: int | None
    changed_ids: Sequence[int]


class Candidates(NamedTuple):
    """Units of one segment that may have a needle in their text.

    ``newest_at`` is the time of its newest unit, or None if that is not known.
    ``spread`` is how many units are in blocks that have all of the needle's grams.
    """

    newest_at: int | None
    ranges: list[UnitRange]
    spread: int = 0


# -- reading --------------------------------------------------------------------------


def list_segments(db: Connection, index_id: int) -> list[GramSegment]:
    """All segments that have grams, in order."""
    rows = db.execute(
        """
        SELECT segment_id, newest_at, changed_ids FROM gram_segments
         WHERE index_id = %s ORDER BY segment_id
        """,
        (index_id,),
    )
    return [GramSegment(*row) for row in rows]


def find_candidates(
    db: Connection,
    index_id: int,
    needle: str,
    limit: int,
    segments: Sequence[GramSegment],
) -> list[Candidates] | None:
    """Where units may have the needle in their text.

    None if the needle is too short, or more than ``limit`` units are in blocks that
    have all of its grams. The first of the candidates are all that may be no messages,
    and have no ``spread``.
    """
    numbers = [each.segment_id for each in segments]
    found = _find_blocks(db, index_id, needle.encode(), numbers)
    if found is None:
        return None
    of_messages = [each for each in segments if each.newest_at is not None]
    if sum(found.spread[each.segment_id] for each in of_messages) > limit:
        return None
    others = _list_others(numbers)
    for segment_id, newest_at, changed_ids in segments:
        if newest_at is None:
            others += _with_changed(found.list_ranges(segment_id), changed_ids)
    return [
        Candidates(None, others),
        *(
            Candidates(
                each.newest_at,
                found.list_ranges(each.segment_id),
                found.spread[each.segment_id],
            )
            for each in of_messages
            if found.spread[each.segment_id]
        ),
    ]


class _Blocks(NamedTuple):
    """The first units of the blocks that have all grams of a needle, by segment.

    All have ``size`` units. ``spread`` is that of ``Candidates``.
    """

    firsts: Mapping[int, NDArray[np.int64]]
    size: int
    spread: Mapping[int, int]

    def list_ranges(self, segment_id: int) -> list[UnitRange]:
        firsts = self.firsts[segment_id].tolist()
        return [UnitRange(each, each + self.size) for each in firsts]


def _find_blocks(
    db: Connection, index_id: int, needle: bytes, segment_ids: Sequence[int]
) -> _Blocks | None:
    """Where all grams of a needle are; None if it is too short to have any."""
    if len(needle) >= long_grams.GRAM_BYTES:
        units = long_grams.find_units(db, index_id, needle, segment_ids)
        return _Blocks(units.unit_ids, 1, units.spread)
    if len(needle) < short_grams.MIN_BYTES:
        return None
    size = short_grams.BLOCK_UNITS
    blocks = short_grams.find_blocks(db, index_id, needle)
    return _Blocks(
        {each: blocks[each] * size + (each << SEGMENT_BITS) for each in segment_ids},
        size,
        {each: len(blocks[each]) * size for each in segment_ids},
    )


def _with_changed(
    ranges: Sequence[UnitRange], changed_ids: Sequence[int]
) -> list[UnitRange]:
    """Ranges, which are in order, and units that have changed, each of them once."""
    firsts = [each.first for each in ranges]
    found = [*ranges]
    for unit_id in changed_ids:
        place = bisect_right(firsts, unit_id) - 1
        if place < 0 or unit_id >= ranges[place].end:
            found.append(UnitRange(unit_id, unit_id + 1))
    return found


def count_units(candidates: Sequence[Candidates]) -> int:
    """How many messages are in blocks that have all grams of the needle."""
    return sum(each.spread for each in candidates)


def _list_others(segment_ids: Sequence[int]) -> list[UnitRange]:
    """All units that are not in these segments, which are in order."""
    ends = [0, *((each + 1) << SEGMENT_BITS for each in segment_ids)]
    firsts = [*(each << SEGMENT_BITS for each in segment_ids), (1 << 63) - 1]
    return [
        UnitRange(end, first)
        for end, first in zip(ends, firsts, strict=True)
        if end < first
    ]


# -- writing --------------------------------------------------------------------------


def refresh(db: Connection, index_id: int, changed: Collection[int]) -> None:
    """Bring the grams up to date, after the texts of some units have changed."""
    messages = [unit_id for unit_id in changed if is_message(unit_id)]
    if messages:
        _refresh_messages(db, index_id, {each >> SEGMENT_BITS for each in messages})
    titles: dict[int, list[int]] = {}
    for unit_id in filter(is_session, changed):
        titles.setdefault(unit_id >> SEGMENT_BITS, []).append(unit_id)
    for segment_id, unit_ids in titles.items():
        if _count_changed(db, index_id, segment_id, unit_ids) > _MAX_CHANGED:
            make_grams(db, index_id, segment_id)


def _refresh_messages(db: Connection, index_id: int, stale: set[int]) -> None:
    full, there = _find_full(db, index_id)
    for segment_id in stale & there - full:
        _delete_grams(db, index_id, segment_id)
    for segment_id in sorted(full & stale):
        make_grams(db, index_id, segment_id)
    for segment_id in sorted(full - stale - there)[-_MOST_AT_ONCE:]:
        make_grams(db, index_id, segment_id)


def list_missing(db: Connection, index_id: int) -> list[int]:
    """The segments that should have grams and have none."""
    full, there = _find_full(db, index_id)
    row = db.execute(
        """
        SELECT unit_id FROM units WHERE index_id = %s ORDER BY unit_id DESC LIMIT 1
        """,
        (index_id,),
    ).fetchone()
    last = 0 if row is None else int(row[0])
    of_titles = range(
        first_session_unit_id() >> SEGMENT_BITS, (last >> SEGMENT_BITS) + 1
    )
    return sorted(full - there) + [
        segment_id
        for segment_id in of_titles
        if segment_id not in there
        and _count_units(db, index_id, segment_id) > _MAX_CHANGED
    ]


def _find_full(db: Connection, index_id: int) -> tuple[set[int], set[int]]:
    """The segments of messages that are full, and all segments that have grams."""
    row = db.execute(
        """
        SELECT (SELECT unit_id FROM units WHERE index_id = %s AND unit_id < %s
                 ORDER BY unit_id DESC LIMIT 1),
               ARRAY(SELECT segment_id FROM gram_segments WHERE index_id = %s)
        """,
        (index_id, first_note_id(), index_id),
    ).fetchone()
    assert row is not None
    last, there = row
    return set(range((last or 0) >> SEGMENT_BITS)), set(there)


def _count_changed(
    db: Connection, index_id: int, segment_id: int, unit_ids: Sequence[int]
) -> int:
    """Note that titles have changed; returns how many of a segment have no grams."""
    row = db.execute(
        """
        UPDATE gram_segments
           SET changed_ids = ARRAY(SELECT unnest(changed_ids)
                                    UNION SELECT unnest(%s::bigint[]))
         WHERE index_id = %s AND segment_id = %s RETURNING cardinality(changed_ids)
        """,
        (list(unit_ids), index_id, segment_id),
    ).fetchone()
    return _count_units(db, index_id, segment_id) if row is None else int(row[0])


def _count_units(db: Connection, index_id: int, segment_id: int) -> int:
    """How many units a segment has; if they are too many, not all are counted."""
    row = db.execute(
        """
        SELECT COUNT(*)
          FROM (SELECT 1 FROM units
                 WHERE index_id = %s AND unit_id >= %s AND unit_id < %s LIMIT %s)
               AS of_segment
        """,
        (index_id, *_bounds_of(segment_id), _MAX_CHANGED + 1),
    ).fetchone()
    assert row is not None
    return int(row[0])


def list_with_changed(db: Connection, index_id: int) -> list[int]:
    """The segments whose grams may still be those of titles that are gone."""
    return [each.segment_id for each in list_segments(db, index_id) if each.changed_ids]


def make_grams(db: Connection, index_id: int, segment_id: int) -> None:
    """Give a segment grams of its texts as they are now."""
    newest_at, texts = _read_segment(db, index_id, segment_id)
    _delete_grams(db, index_id, segment_id)
    long_grams.insert_rows(db, index_id, segment_id, long_grams.pack(texts))
    db.execute(
        """
        INSERT INTO gram_segments (index_id, segment_id, newest_at, short_grams)
        VALUES (%s, %s, %s, %b)
        """,
        (index_id, segment_id, newest_at, short_grams.pack(texts)),
    )


def _delete_grams(db: Connection, index_id: int, segment_id: int) -> None:
    found = db.execute(
        "DELETE FROM gram_segments WHERE index_id = %s AND segment_id = %s",
        (index_id, segment_id),
    )
    if found.rowcount:
        long_grams.delete_rows(db, index_id, segment_id)


def _read_segment(
    db: Connection, index_id: int, segment_id: int
) -> tuple[int | None, dict[int, bytes]]:
    """When the newest unit of a segment was said, and the texts of all."""
    rows = db.execute(
        """
        SELECT unit_id, folded, said_at FROM units
         WHERE index_id = %s AND unit_id >= %s AND unit_id < %s
        """,
        (index_id, *_bounds_of(segment_id)),
    )
    texts, newest_at = {}, _NEVER
    for unit_id, folded, said_at in rows:
        texts[unit_id] = folded.encode()
        newest_at = max(newest_at, _NEVER if said_at is None else said_at)
    # The times of titles change.
    return newest_at if is_message(segment_id << SEGMENT_BITS) else None, texts


def _bounds_of(segment_id: int) -> tuple[int, int]:
    """The first unit number of a segment, and the first one after it."""
    return segment_id << SEGMENT_BITS, (segment_id + 1) << SEGMENT_BITS


# -- verification ---------------------------------------------------------------------


def list_wrong(db: Connection, index_id: int) -> list[int]:
    """The segments whose grams are not those of their texts."""
    return [
        each.segment_id
        for each in list_segments(db, index_id)
        if not _is_right(db, index_id, each)
    ]


def _is_right(db: Connection, index_id: int, segment: GramSegment) -> bool:
    newest_at, texts = _read_segment(db, index_id, segment.segment_id)
    stored = long_grams.read_rows(db, index_id, segment.segment_id)
    changed = set(segment.changed_ids)
    if changed:
        # Their grams, and blocks that they are in, are of texts that they had before.
        unchanged = {key: text for key, text in texts.items() if key not in changed}
        return long_grams.pack(unchanged) == long_grams.without(stored, changed)
    rows: Iterable[Any] = db.execute(
        "SELECT short_grams FROM gram_segments WHERE index_id = %s AND segment_id = %s",
        (index_id, segment.segment_id),
        binary=True,
    ).fetchall()
    return (
        newest_at == segment.newest_at
        and stored == long_grams.pack(texts)
        and [row[0] for row in rows] == [short_grams.pack(texts)]
    )
