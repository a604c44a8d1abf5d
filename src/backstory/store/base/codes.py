"""Compare vectors by their signs, one bit each: a code.

That is enough to choose, from a million, the few hundred worth comparing exactly. In
memory, codes are columns of 64 bits each: numpy compares a column of all vectors at
once, in half the time that a library takes that is called for each vector.
"""

import numpy as np
from numpy.typing import NDArray

from backstory.store.base.containers import to_number
from backstory.store.base.cosines import Vector
from backstory.store.base.index import UnitFilter

# This many are compared exactly: enough to find 99 % of the nearest twenty, even among
# many vectors.
_COMPARED = 128
_COMPARED_OF_MANY = 300
_MANY = 100_000
# For each vector that is compared exactly, this many are chosen by their codes.
BY_CODES = 4
_GUESSED_FROM = 20_000
# How many vectors are compared at a time: few enough for the processor's cache.
_COMPARED_AT_ONCE = 1 << 15
# In place of the time of a unit that has none.
UNKNOWN_TIME = int(np.iinfo(np.int64).min)


def count_compared(fitting: int, limit: int) -> int:
    """How many of the fitting vectors to compare exactly, to find ``limit`` nearest."""
    return max(_COMPARED if fitting < _MANY else _COMPARED_OF_MANY, 2 * limit)


def to_codes(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.packbits(vectors > 0, axis=1)


def fit(
    where: UnitFilter,
    *,
    unit_ids: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    containers: NDArray[np.int64],
    said: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which of the units match, given the columns that a filter looks at."""
    wanted = np.zeros(256, np.bool_)
    wanted[[int(kind) for kind in where.kinds]] = True
    fits = wanted[kinds]
    for (first, end), bounded in where.kinds_by_bounds().items():
        if first is None and end is None:
            continue
        others = np.ones(256, np.bool_)
        others[[int(kind) for kind in bounded]] = False
        is_other = others[kinds]
        if first is not None:
            fits &= is_other | (said >= first)
        if end is not None:
            fits &= is_other | ((said < end) & (said != UNKNOWN_TIME))
    if where.containers is not None:
        fits &= np.isin(containers, [to_number(each) for each in where.containers])
    if where.without_containers:
        numbers = [to_number(each) for each in where.without_containers]
        fits &= ~np.isin(containers, numbers)
    if where.without:
        fits &= ~np.isin(unit_ids, list(where.without))
    return fits


def to_columns(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Codes, one in each row, as columns of 64 bits; the last one is padded."""
    padding = -codes.shape[1] % 8
    padded = np.pad(codes, ((0, 0), (0, padding))) if padding else codes
    return np.ascontiguousarray(np.ascontiguousarray(padded).view(np.uint64).T)


def count_differing_bits(
    code: NDArray[np.uint64], columns: NDArray[np.uint64]
) -> NDArray[np.uint16]:
    """The Hamming distance of one code to each of many."""
    total = columns.shape[1]
    counts = np.zeros(total, np.uint16)
    size = min(total, _COMPARED_AT_ONCE)
    differing, bits = np.empty(size, np.uint64), np.empty(size, np.uint8)
    for start in range(0, total, _COMPARED_AT_ONCE):
        some = counts[start : start + _COMPARED_AT_ONCE]
        out, out_bits = differing[: len(some)], bits[: len(some)]
        for word, column in zip(code, columns, strict=True):
            np.bitwise_xor(column[start : start + len(some)], word, out=out)
            np.bitwise_count(out, out=out_bits)
            np.add(some, out_bits, out=some)
    return counts


def choose_likely(
    vector: Vector, columns: NDArray[np.uint64], slots: NDArray[np.intp], count: int
) -> NDArray[np.intp]:
    """The slots of codes that are probably nearest; ``count`` of the given ones."""
    code = to_columns(to_codes(vector[None, :]))[:, 0]
    everything = len(slots) > columns.shape[1] // 2
    compared = columns if everything else columns[:, slots]
    distances = count_differing_bits(code, compared)
    if everything:
        distances = distances[slots]
    near = slots[_smallest(distances, BY_CODES * count)]
    # The query is compared as a whole vector, the others by their signs.
    rows = np.ascontiguousarray(columns[:, near].T).view(np.uint8)
    signs = np.unpackbits(rows, axis=1, count=len(vector))
    likely = np.einsum("ij,j->i", signs.astype(np.float32), vector)
    return near[np.argpartition(-likely, count)[:count]]


def _smallest(distances: NDArray[np.uint16], count: int) -> NDArray[np.intp]:
    """Where the ``count`` smallest are, and all that tie with the last of them."""
    # Distances are small integers, so counting is faster than sorting. Most are ruled
    # out beforehand by a bound estimated from a sample.
    step = max(1, len(distances) // _GUESSED_FROM)
    some = distances[::step]
    place = min(len(some) - 1, 2 * count // step + 20)
    guess = np.partition(some, place)[place]
    near = np.flatnonzero(distances <= guess)
    if len(near) < count:
        near = np.arange(len(distances))
    totals = np.cumsum(np.bincount(distances[near]))
    border = int(np.searchsorted(totals, count))
    return near[distances[near] <= border]
