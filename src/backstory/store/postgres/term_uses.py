"""The words of a segment as arrays, and as the rows that store them.

Most terms are in few units, and a row for each would take longer to write than all
else. So those that few units of a segment have share rows: which one, a hash of the
term tells. All of it is done for many terms at once: Python would take longer for one
than numpy for a hundred.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from backstory.store.base.index import PACK_MESSAGES
from backstory.store.postgres.postings import Ints, UnitWords, find_type

# A segment is this many unit numbers. A longer one would be read in fewer pieces, but
# written again more often.
SEGMENT_SIZE = PACK_MESSAGES
SEGMENT_BITS = SEGMENT_SIZE.bit_length() - 1
# A term that at most this many units of a segment have is in a shared row.
MAX_SHARING = 16
# Of a full segment, a shared row has some 40 terms in 1,500 bytes.
SHARED_ROWS = 2_048
# Between the terms of a row. No term has it.
_BETWEEN = "\n"
_WIDTHS = (1, 2, 4)


class WordRow(NamedTuple):
    """A stored row: of one term, which is its key, or of several that share it.

    It has the columns of ``TermUses``, packed: see ``pack_rows``. A shared row has its
    terms as well, and how many units each has.
    """

    key: str
    unit_count: int
    places: bytes
    text_counts: bytes
    around_counts: bytes
    # None if they were not asked for.
    positions: bytes | None
    shared_terms: str | None
    shared_counts: bytes | None


class TermUses(NamedTuple):
    """Which units of a segment have which terms, how often and where.

    A use is one term in one unit: the term's place among ``terms``, the unit's place in
    the segment, and how often it is in the text and around it. ``positions`` are those
    of all uses, one after the other.
    """

    terms: Sequence[str]
    of_term: Ints
    places: Ints
    text_counts: Ints
    around_counts: Ints
    positions: Ints


class _Numbers(dict[str, int]):
    """Numbers of terms, from 0 on: one that has none is given the next."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number

    def number(self, terms: Collection[str]) -> Ints:
        return np.fromiter(map(self.__getitem__, terms), np.int64, len(terms))


def key_of_shared(term: str) -> str:
    """The key of the row that a term shares; no term begins with a space."""
    return _shared_key(_find_shared_row(term))


def _shared_key(number: int) -> str:
    return f" {number:x}"


def _find_shared_row(term: str) -> int:
    return crc32(term.encode(errors="replace")) % SHARED_ROWS


def find_in_shared(
    term: str, shared_terms: str, shared_counts: bytes
) -> tuple[int, int] | None:
    """Where the units of a term begin in a shared row, and how many it has."""
    text = f"{_BETWEEN}{shared_terms}{_BETWEEN}"
    at = text.find(f"{_BETWEEN}{term}{_BETWEEN}")
    if at < 0:
        return None
    place, term_count = text.count(_BETWEEN, 0, at), text.count(_BETWEEN) - 1
    kind = find_type(len(shared_counts) // term_count)
    counts = np.frombuffer(shared_counts, kind)
    return int(counts[:place].sum()), int(counts[place])


# -- from units -----------------------------------------------------------------------


def collect_uses(units: Mapping[int, UnitWords]) -> TermUses:
    """The uses in units, which are given by their places, in order."""
    words = units.values()
    text_sizes = np.fromiter((len(each.text) for each in words), np.int64, len(units))
    sizes = np.fromiter((each.word_count for each in words), np.int64, len(units))
    numbers = _Numbers()
    of_term = numbers.number(
        list(chain.from_iterable(chain(each.text, each.around) for each in words))
    )
    of_unit = np.repeat(np.arange(len(units)), sizes)
    positions = _count_up(sizes)
    is_text = positions < text_sizes[of_unit]
    # The gap of one keeps phrases from reaching over the end of the text.
    positions += ~is_text
    # Units and positions are in order already, and a stable sort keeps them so.
    order = np.argsort(of_term, kind="stable")
    of_term, of_unit, is_text = of_term[order], of_unit[order], is_text[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (of_term[1:] != of_term[:-1]) | (of_unit[1:] != of_unit[:-1])
    starts = np.flatnonzero(begins)
    text_counts = np.add.reduceat(is_text, starts, dtype=np.int64)
    return TermUses(
        list(numbers),
        of_term[starts],
        np.fromiter(units, np.int64, len(units))[of_unit[starts]],
        text_counts,
        np.diff(starts, append=len(order)) - text_counts,
        positions[order],
    )


def join_uses(parts: Sequence[TermUses]) -> TermUses:
    """All uses of some parts, none of which is in two of them."""
    numbers = _Numbers()
    of_term = [numbers.number(each.terms)[each.of_term] for each in parts]
    _, _, *columns = zip(*parts, strict=True)
    return TermUses(
        list(numbers), np.concatenate(of_term), *map(np.concatenate, columns)
    )


def keep_uses(uses: TermUses, is_kept: NDArray[np.bool_]) -> TermUses:
    """Only some of the uses."""
    return _take(uses, np.flatnonzero(is_kept))


def _take(uses: TermUses, order: Ints) -> TermUses:
    """Some uses in another order."""
    sizes = uses.text_counts + uses.around_counts
    starts = np.cumsum(sizes) - sizes
    wanted = sizes[order]
    return TermUses(
        uses.terms,
        uses.of_term[order],
        uses.places[order],
        uses.text_counts[order],
        uses.around_counts[order],
        uses.positions[np.repeat(starts[order], wanted) + _count_up(wanted)],
    )


def _count_up(sizes: Ints) -> Ints:
    """The numbers from 0 on for each size, one after the other."""
    numbers = np.arange(int(sizes.sum()))
    numbers -= np.repeat(np.cumsum(sizes) - sizes, sizes)
    return numbers


# -- rows -----------------------------------------------------------------------------


def to_rows(uses: TermUses, with_own_row: Collection[str]) -> list[WordRow]:
    """The rows of some uses.

    A term that has had a row of its own keeps it, however few units are left.
    """
    if not len(uses.places):
        return []
    terms, count = uses.terms, len(uses.terms)
    unit_counts = np.bincount(uses.of_term, minlength=count)
    is_shared = unit_counts <= MAX_SHARING
    if with_own_row:
        had = np.fromiter((each in with_own_row for each in terms), np.bool_, count)
        is_shared &= ~had
    # Own rows have the numbers of their terms, shared ones follow.
    row_of_term = np.arange(count)
    shared = np.flatnonzero(is_shared).tolist()
    row_of_term[shared] = [count + _find_shared_row(terms[each]) for each in shared]
    by_row = np.argsort(row_of_term, kind="stable")
    rank = np.empty(count, np.int64)
    rank[by_row] = np.arange(count)
    uses = _take(
        uses,
        np.argsort((rank[uses.of_term] << SEGMENT_BITS) + uses.places, kind="stable"),
    )
    starts = _find_starts(row_of_term[uses.of_term])
    ends = np.append(starts[1:], len(uses.places))
    uses_before = np.append(0, np.cumsum(uses.text_counts + uses.around_counts))
    by_row = by_row[unit_counts[by_row] > 0]
    term_starts = _find_starts(row_of_term[by_row])
    packed_counts = pack_rows(unit_counts[by_row], term_starts)
    term_ends = np.append(term_starts[1:], len(by_row)).tolist()
    ordered = [terms[each] for each in by_row.tolist()]
    keys: list[tuple[str, str | None, bytes | None]] = [
        (ordered[first], None, None)
        if number < count
        else (_shared_key(number - count), _BETWEEN.join(ordered[first:end]), counts)
        for number, first, end, counts in zip(
            row_of_term[by_row[term_starts]].tolist(),
            term_starts.tolist(),
            term_ends,
            packed_counts,
            strict=True,
        )
    ]
    columns = zip(
        (ends - starts).tolist(),
        pack_rows(uses.places, starts),
        pack_rows(uses.text_counts, starts),
        pack_rows(uses.around_counts, starts),
        pack_rows(uses.positions, uses_before[starts]),
        strict=True,
    )
    return [
        WordRow(key, *packed, shared_terms, counts)
        for (key, shared_terms, counts), packed in zip(keys, columns, strict=True)
    ]


def from_rows(rows: Sequence[WordRow]) -> TermUses:
    own = [row for row in rows if row.shared_terms is None]
    shared = [row for row in rows if row.shared_terms is not None]
    rows = [*own, *shared]
    numbers = _Numbers()
    of_shared = [(row.shared_terms or "").split(_BETWEEN) for row in shared]
    in_shared = np.fromiter(map(len, of_shared), np.int64, len(shared))
    terms = [*(row.key for row in own), *chain.from_iterable(of_shared)]
    unit_counts = np.fromiter((row.unit_count for row in rows), np.int64, len(rows))
    counts = unpack_rows([row.shared_counts or b"" for row in shared], in_shared)
    of_term = np.repeat(
        numbers.number(terms), np.concatenate([unit_counts[: len(own)], counts])
    )
    text_counts = unpack_rows([row.text_counts for row in rows], unit_counts)
    around_counts = unpack_rows([row.around_counts for row in rows], unit_counts)
    uses_before = np.append(0, np.cumsum(text_counts + around_counts))
    ends = np.cumsum(unit_counts)
    position_counts = uses_before[ends] - uses_before[ends - unit_counts]
    return TermUses(
        list(numbers),
        of_term,
        unpack_rows([row.places for row in rows], unit_counts),
        text_counts,
        around_counts,
        unpack_rows([row.positions or b"" for row in rows], position_counts),
    )


def _find_starts(numbers: Ints) -> Ints:
    """Where each run of equal numbers begins."""
    begins = np.ones(len(numbers), np.bool_)
    begins[1:] = numbers[1:] != numbers[:-1]
    return np.flatnonzero(begins)


def pack_rows(numbers: Ints, starts: Ints) -> list[bytes]:
    """The numbers of each row, which begin at ``starts``; no row is empty.

    They are numbers from 0 on. Each takes as few bytes as the largest of its row needs;
    a row of zeros takes none.
    """
    largest = np.maximum.reduceat(numbers, starts)
    widths = np.select(
        [largest == 0, largest < 1 << 8, largest < 1 << 16], [0, 1, 2], 4
    )
    packed = {0: b""} | {
        width: numbers.astype(find_type(width)).tobytes()
        for width in _WIDTHS
        if (widths == width).any()
    }
    ends = np.append(starts[1:], len(numbers))
    return [
        packed[width][first * width : end * width]
        for width, first, end in zip(
            widths.tolist(), starts.tolist(), ends.tolist(), strict=True
        )
    ]


def unpack_rows(packed: Sequence[bytes], counts: Ints) -> Ints:
    """The numbers of all rows, one after the other; each row has so many.

    See ``pack_rows``.
    """
    numbers = np.zeros(int(counts.sum()), np.int64)
    sizes = np.fromiter(map(len, packed), np.int64, len(packed))
    starts = np.cumsum(counts) - counts
    for width in _WIDTHS:
        some = np.flatnonzero((sizes > 0) & (sizes == width * counts))
        if len(some):
            joined = b"".join([packed[each] for each in some.tolist()])
            at = np.repeat(starts[some], counts[some]) + _count_up(counts[some])
            numbers[at] = np.frombuffer(joined, find_type(width))
    return numbers
