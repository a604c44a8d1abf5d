"""The table ``vector_segments``: the signs of a large index's vectors, kept in memory.

PostgreSQL compares them one row after the other, which is slow for a large index. So a
process that searches a second time reads all codes of the index, 81 bytes for each
vector, and from then on those that have changed. A segment is a range of unit numbers;
triggers give it another version whenever one of its codes changes.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backstory.store.base.codes import UNKNOWN_TIME, to_columns
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.index_connection import IndexCounters
from backstory.system.fork_safety import reset_in_child

# As in the migration that made the triggers.
_SEGMENT_BITS = 12
# How a bit string is sent: the number of its bits, then these.
_LENGTH_BYTES = 4


class Codes(NamedTuple):
    """Columns of the units that have vectors; those of their codes are several."""

    unit_ids: NDArray[np.int64]
    embedding_ids: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    containers: NDArray[np.int64]
    said: NDArray[np.int64]
    codes: NDArray[np.uint64]


class CodeSegments:
    """The codes of one index, as they were when they were last read."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child: another thread may have been changing it."""
        self._lock = threading.Lock()
        self._index_id = 0
        self._read_at: IndexCounters | None = None
        self._versions: dict[int, int] = {}
        self._segments: dict[int, Codes] = {}
        self._all: Codes | None = None

    def read(self, db: Connection, counters: IndexCounters) -> Codes | None:
        """The codes that the transaction sees; None if there are none."""
        index_id = counters.index_id
        with self._lock:
            if self._read_at == counters:
                return self._all
        rows = db.execute(
            "SELECT segment_id, version FROM vector_segments WHERE index_id = %s",
            (index_id,),
        )
        versions: dict[int, int] = dict(rows.fetchall())
        with self._lock:
            if (index_id, versions) == (self._index_id, self._versions):
                self._read_at = counters
                return self._all
            known = self._versions if index_id == self._index_id else {}
            segments = {
                segment_id: self._segments[segment_id]
                for segment_id in versions.keys() & self._segments.keys()
                if versions[segment_id] == known.get(segment_id)
            }
            segments |= _read_segments(
                db, index_id, sorted(versions.keys() - segments.keys())
            )
            self._index_id, self._versions = index_id, versions
            self._segments = segments
            self._read_at = counters
            self._all = _join([segments[each] for each in sorted(segments)])
            return self._all


def _read_segments(
    db: Connection, index_id: int, segment_ids: list[int]
) -> dict[int, Codes]:
    """The codes of these segments; one that has none is left out."""
    # Any: rows carry no types; the schema does.
    rows: list[Any] = db.execute(
        f"""
        SELECT segment_id, packed.* FROM unnest(%s::bigint[]) AS segment_id
         CROSS JOIN LATERAL (
               SELECT string_agg(int8send(unit_id), ''),
                      string_agg(int8send(embedding_id), ''),
                      string_agg(int2send(kind), ''),
                      string_agg(int8send(source_id), ''),
                      string_agg(int8send(COALESCE(said_at, {UNKNOWN_TIME})), ''),
                      string_agg(varbit_send(code), '')
                 FROM vector_codes
                WHERE index_id = %s AND unit_id >= segment_id << {_SEGMENT_BITS}
                  AND unit_id < (segment_id + 1) << {_SEGMENT_BITS}) AS packed
        """.encode(),
        (segment_ids, index_id),
        binary=True,
    ).fetchall()
    return {segment_id: _unpack(*packed) for segment_id, *packed in rows if packed[0]}


def _unpack(
    unit_ids: bytes,
    embedding_ids: bytes,
    kinds: bytes,
    containers: bytes,
    said: bytes,
    codes: bytes,
) -> Codes:
    units = _to_numbers(unit_ids)
    return Codes(
        units,
        _to_numbers(embedding_ids),
        np.frombuffer(kinds, ">i2").astype(np.uint8),
        _to_numbers(containers),
        _to_numbers(said),
        to_columns(
            np.frombuffer(codes, np.uint8).reshape(len(units), -1)[:, _LENGTH_BYTES:]
        ),
    )


def _to_numbers(packed: bytes) -> NDArray[np.int64]:
    return np.frombuffer(packed, ">i8").astype(np.int64)


def _join(segments: list[Codes]) -> Codes | None:
    if not segments:
        return None
    return Codes(
        *(np.concatenate(columns, axis=-1) for columns in zip(*segments, strict=True))
    )
