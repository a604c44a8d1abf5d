"""The tables ``word_rows`` and ``word_segments``: the words of most units, packed.

A segment is a range of unit numbers, and a unit's place is its number within it. A row
has all units of a segment that have one term, or a few rare ones. It is found by
equality alone, for which an index is used under row-level security, and is read in one
piece, however frequent the term is.

A unit that is deleted is only marked so in the segment's row, which hides it: which
rows it is in is not known. Its traces are removed when the index is tidied, or before
a unit with the same number comes.
"""

import secrets
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.postings import (
    Ints,
    Postings,
    UnitWords,
    no_postings,
    unpack,
)
from backstory.store.postgres.rows import to_columns
from backstory.store.postgres.term_uses import (
    SEGMENT_BITS,
    SEGMENT_SIZE,
    WordRow,
    collect_uses,
    find_in_shared,
    from_rows,
    join_uses,
    keep_uses,
    key_of_shared,
    to_rows,
    unpack_rows,
)
from backstory.system.fork_safety import reset_in_child

_VERSION_BITS = 62
# In place of the word count of a unit that was deleted and is still in rows.
_DELETED = -1
# For all segments that a process remembers: the counts of 20 million units.
_MAX_REMEMBERED_BYTES = 160_000_000


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


# Rows with some keys, in all segments: see looked_up.
_WITH_KEYS = """
    unnest(%b::text[]) AS wanted (its_key)
    CROSS JOIN LATERAL (
          SELECT key, segment_id, unit_count, places, text_counts, around_counts,
                 positions, shared_terms, shared_counts
            FROM word_rows
           WHERE index_id = %s AND key BETWEEN wanted.its_key AND wanted.its_key
           ORDER BY key, segment_id OFFSET 0) AS word_rows
"""


def find_postings(
    db: Connection,
    index_id: int,
    terms: Collection[str],
    segments: SegmentCounts,
    *,
    with_positions: bool,
) -> dict[str, Postings]:
    """The units that have these terms; a term that none has is left out."""
    keys = _group_by_key(terms)
    rows: list[Any] = db.execute(
        f"""
        SELECT segment_id, key, unit_count, places, text_counts, around_counts,
               {"positions" if with_positions else "NULL::bytea"}, shared_terms,
               shared_counts
          FROM {_WITH_KEYS}
         ORDER BY segment_id
        """.encode(),
        (list(keys), index_id),
        binary=True,
    ).fetchall()
    if not rows:
        return {}
    counts = segments.read(db, index_id, {row[0] for row in rows})
    own: dict[str, list[tuple[int, WordRow]]] = {}
    for segment_id, *columns in rows:
        row = WordRow(*columns)
        if row.shared_terms is None:
            own.setdefault(row.key, []).append((segment_id, row))
            continue
        for term in keys[row.key]:
            found = _find_in_shared_row(row, term)
            if found is not None:
                own.setdefault(term, []).append((segment_id, found))
    return {term: _join_rows(some, counts) for term, some in own.items()}


def _group_by_key(terms: Collection[str]) -> dict[str, list[str]]:
    """The keys of all rows that may have these terms, and which terms each may have."""
    keys = {term: [term] for term in terms}
    for term in terms:
        keys.setdefault(key_of_shared(term), []).append(term)
    return keys


def _join_rows(
    rows: Sequence[tuple[int, WordRow]], word_counts: Mapping[int, Ints]
) -> Postings:
    """The units of a term in its own rows, which are those of some segments, in order.

    All rows at once: numpy takes little longer for sixty than for one.
    """
    unit_counts = np.asarray([row.unit_count for _, row in rows], np.int64)
    segment_ids = np.asarray([segment_id for segment_id, _ in rows], np.int64)
    places = unpack_rows([row.places for _, row in rows], unit_counts)
    text_counts = unpack_rows([row.text_counts for _, row in rows], unit_counts)
    around_counts = unpack_rows([row.around_counts for _, row in rows], unit_counts)
    ends = np.cumsum(unit_counts)
    lengths = np.empty(len(places), np.int64)
    for segment_id, begin, end in zip(
        segment_ids.tolist(),
        (ends - unit_counts).tolist(),
        ends.tolist(),
        strict=True,
    ):
        lengths[begin:end] = word_counts[segment_id][places[begin:end]]
    positions = no_postings().positions
    if rows[0][1].positions is not None:
        uses = np.add.reduceat(text_counts + around_counts, ends - unit_counts)
        positions = unpack_rows([row.positions or b"" for _, row in rows], uses)
    unit_ids = places + np.repeat(segment_ids << SEGMENT_BITS, unit_counts)
    return _keep_living(
        Postings(unit_ids, lengths, text_counts, around_counts, positions)
    )


def _find_in_shared_row(row: WordRow, term: str) -> WordRow | None:
    """A row of one term's own, cut out of the one that it shares; None if it has none.

    Only what is cut out is unpacked, which is little.
    """
    found = find_in_shared(term, row.shared_terms or "", row.shared_counts or b"")
    if found is None:
        return None
    first, unit_count = found
    places, text_counts, around_counts = (
        _cut_out(packed, row.unit_count, first, unit_count) for packed in row[2:5]
    )
    positions = row.positions
    if positions is not None:
        uses = unpack(row.text_counts, row.unit_count)
        uses += unpack(row.around_counts, row.unit_count)
        before, own = int(uses[:first].sum()), uses[first : first + unit_count].sum()
        positions = _cut_out(positions, int(uses.sum()), before, int(own))
    return WordRow(
        term, unit_count, places, text_counts, around_counts, positions, None, None
    )


def _cut_out(packed: bytes, count: int, first: int, wanted: int) -> bytes:
    """Some of ``count`` numbers that are packed."""
    width = len(packed) // count
    return packed[first * width : (first + wanted) * width]


def _keep_living(postings: Postings) -> Postings:
    """Without the units that were deleted."""
    lives = postings.word_counts > 0
    if lives.all():
        return postings
    positions = postings.positions
    if len(positions):
        uses = postings.text_counts + postings.around_counts
        positions = positions[np.repeat(lives, uses)]
    unit_ids, word_counts, text_counts, around_counts = (
        column[lives] for column in postings[:4]
    )
    return Postings(unit_ids, word_counts, text_counts, around_counts, positions)


def count_units(
    db: Connection, index_id: int, terms: Collection[str]
) -> dict[str, int]:
    """In how many units each term is, among them some that were deleted."""
    keys = _group_by_key(terms)
    rows: list[Any] = db.execute(
        f"""
        SELECT key, SUM(unit_count)::bigint, NULL, NULL FROM {_WITH_KEYS} GROUP BY key
         UNION ALL
        SELECT key, 0, shared_terms, shared_counts FROM {_WITH_KEYS}
        """.encode(),
        (list({*terms}), index_id, list(keys.keys() - set(terms)), index_id),
        binary=True,
    ).fetchall()
    counts = dict.fromkeys(terms, 0)
    for key, unit_count, shared_terms, shared_counts in rows:
        if shared_terms is None:
            counts[key] += unit_count
            continue
        for term in keys[key]:
            found = find_in_shared(term, shared_terms, shared_counts)
            counts[term] += 0 if found is None else found[1]
    return counts


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
    """How much the rows take, packed as they are."""
    row = db.execute(
        """
        SELECT COALESCE(SUM(pg_column_size(places) + pg_column_size(text_counts)
                            + pg_column_size(around_counts)
                            + pg_column_size(positions)), 0)::bigint
          FROM word_rows WHERE index_id = %s
        """,
        (index_id,),
    ).fetchone()
    assert row is not None
    return int(row[0])


# -- writing --------------------------------------------------------------------------


def add_words(db: Connection, index_id: int, words: Mapping[int, UnitWords]) -> None:
    """Store the words of units that are not in any row."""
    by_segment: dict[int, dict[int, UnitWords]] = {}
    for unit_id in sorted(words):
        segment_id, place = divmod(unit_id, SEGMENT_SIZE)
        by_segment.setdefault(segment_id, {})[place] = words[unit_id]
    segments = _read_segments(db, index_id, by_segment)
    for segment_id, units in by_segment.items():
        # Without its own row, a segment has no others.
        is_new = segment_id not in segments
        segment = segments.get(segment_id) or _Segment(
            np.zeros(SEGMENT_SIZE, np.int64), 0
        )
        if (segment.word_counts[list(units)] == _DELETED).any():
            segment = _clean_rows(db, index_id, segment_id, segment)
        _add_to_rows(db, index_id, segment_id, units, is_new=is_new)
        counts = segment.word_counts.copy()
        for place, unit in units.items():
            counts[place] = unit.word_count
        _save_segment(db, index_id, segment_id, segment._replace(word_counts=counts))


def _add_to_rows(
    db: Connection,
    index_id: int,
    segment_id: int,
    units: Mapping[int, UnitWords],
    *,
    is_new: bool,
) -> None:
    """Add units, in the order of their places, to the rows of their terms."""
    added = collect_uses(units)
    stored: list[WordRow] = []
    if not is_new:
        stored = _read_rows(db, index_id, segment_id, list(_group_by_key(added.terms)))
    joined = join_uses([from_rows(stored), added]) if stored else added
    _replace_rows(db, index_id, segment_id, stored, to_rows(joined, _own_keys(stored)))


def _own_keys(rows: Iterable[WordRow]) -> set[str]:
    return {row.key for row in rows if row.shared_terms is None}


def _read_rows(
    db: Connection, index_id: int, segment_id: int, keys: list[str] | None = None
) -> list[WordRow]:
    """The rows of a segment with these keys, or all of them."""
    rows: list[Any] = db.execute(
        """
        SELECT key, unit_count, places, text_counts, around_counts, positions,
               shared_terms, shared_counts
          FROM word_rows
         WHERE index_id = %s AND segment_id = %s
           AND (%b::text[] IS NULL OR key = ANY(%b::text[]))
        """,
        (index_id, segment_id, keys, keys),
        binary=True,
    ).fetchall()
    return [WordRow(*row) for row in rows]


def _replace_rows(
    db: Connection,
    index_id: int,
    segment_id: int,
    old: Iterable[WordRow],
    new: Sequence[WordRow],
) -> None:
    gone = {row.key for row in old} - {row.key for row in new}
    if gone:
        db.execute(
            """
            DELETE FROM word_rows
             WHERE index_id = %s AND segment_id = %s AND key = ANY(%b::text[])
            """,
            (index_id, segment_id, list(gone)),
        )
    if new:
        db.execute(
            """
            INSERT INTO word_rows (index_id, segment_id, key, unit_count, places,
                                   text_counts, around_counts, positions,
                                   shared_terms, shared_counts)
            SELECT %s, %s, * FROM unnest(%b::text[], %s::integer[], %b::bytea[],
                                         %b::bytea[], %b::bytea[], %b::bytea[],
                                         %b::text[], %b::bytea[])
                ON CONFLICT (tenant_id, index_id, key, segment_id) DO UPDATE
               SET unit_count = excluded.unit_count, places = excluded.places,
                   text_counts = excluded.text_counts,
                   around_counts = excluded.around_counts,
                   positions = excluded.positions,
                   shared_terms = excluded.shared_terms,
                   shared_counts = excluded.shared_counts
            """,
            (index_id, segment_id, *to_columns(new, 8)),
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
    """Let units be found no more; those that are in no row are ignored."""
    by_segment: dict[int, list[int]] = {}
    for unit_id in unit_ids:
        segment_id, place = divmod(unit_id, SEGMENT_SIZE)
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
        clean = _clean_rows(db, index_id, segment_id, segment)
        _save_segment(db, index_id, segment_id, clean)
    return bool(segments)


def _clean_rows(
    db: Connection, index_id: int, segment_id: int, segment: _Segment
) -> _Segment:
    """Remove deleted units from the rows of a segment; returns what it is then."""
    stored = _read_rows(db, index_id, segment_id)
    if stored:
        uses = from_rows(stored)
        live = keep_uses(uses, segment.word_counts[uses.places] > 0)
        rows = to_rows(live, _own_keys(stored))
        _replace_rows(db, index_id, segment_id, stored, rows)
    return _Segment(np.maximum(segment.word_counts, 0), 0)


# -- verification ---------------------------------------------------------------------


def sum_word_counts(db: Connection, index_id: int) -> dict[int, int]:
    """How many words each unit has in all rows, as far as it can be found."""
    rows = db.execute(
        "SELECT segment_id FROM word_segments WHERE index_id = %s", (index_id,)
    ).fetchall()
    segments = _read_segments(db, index_id, [segment_id for (segment_id,) in rows])
    found: dict[int, int] = {}
    for segment_id, segment in segments.items():
        uses = from_rows(_read_rows(db, index_id, segment_id))
        counted = np.zeros(SEGMENT_SIZE, np.int64)
        np.add.at(counted, uses.places, uses.text_counts + uses.around_counts)
        counted[segment.word_counts <= 0] = 0
        first = segment_id << SEGMENT_BITS
        stated = np.maximum(segment.word_counts, 0)
        for place in np.flatnonzero(counted + stated).tolist():
            is_right = counted[place] == stated[place]
            found[first + place] = int(counted[place]) if is_right else -1
    return found
