"""Which units have a term, how often and where: arrays, and how they are packed.

A unit's positions are those of its text, then, after a gap, those of the words around
it. The first ``text_counts`` of them are of the text. So no phrase reaches from one
into the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Longer terms would not fit into an index of PostgreSQL.
_FEW = 16
_MAX_TERM_CHARS = 200
# The type of a packed number, by its size in bytes.
_TYPES = {1: "<u1", 2: "<u2", 4: "<u4"}


class UnitWords(NamedTuple):
    """The terms of a unit's text and those around it, in their order."""

    text: Sequence[str]
    around: Sequence[str]

    @property
    def word_count(self) -> int:
        return len(self.text) + len(self.around)


class Postings(NamedTuple):
    """The units that have a term, by number; each has its own place in all arrays.

    ``positions`` are those of all units, one after the other; empty if not asked for.
    """

    unit_ids: Ints
    word_counts: Ints
    text_counts: Ints
    around_counts: Ints
    positions: Ints

    def sorted_by_unit(self) -> "Postings":
        order = np.argsort(self.unit_ids, kind="stable")
        positions = self.positions
        if len(positions):
            owners = np.repeat(self.unit_ids, self.text_counts + self.around_counts)
            positions = positions[np.argsort(owners, kind="stable")]
        columns = [each[order] for each in self[:4]]
        unit_ids, word_counts, text_counts, around_counts = columns
        return Postings(unit_ids, word_counts, text_counts, around_counts, positions)


def no_postings() -> Postings:
    nothing: Ints = np.zeros(0, np.int64)
    return Postings(nothing, nothing, nothing, nothing, nothing)


def join_postings(parts: Sequence[Postings]) -> Postings:
    """Postings of one term from several places, in the order of their units."""
    if not parts:
        return no_postings()
    if len(parts) == 1:
        return parts[0]
    joined = Postings(
        *(np.concatenate(columns) for columns in zip(*parts, strict=True))
    )
    return joined.sorted_by_unit()


def to_term(token: str) -> str:
    """A token as it is stored. No token has a space, so no two become the same."""
    if len(token) <= _MAX_TERM_CHARS:
        return token
    digest = blake2b(token.encode(errors="replace"), digest_size=16).hexdigest()
    return f"{token[:_MAX_TERM_CHARS]} {digest}"


def to_unit_words(text: Sequence[str], around: Sequence[str]) -> UnitWords:
    """The words of a unit, given the tokens of its text and those around it."""
    return UnitWords(list(map(to_term, text)), list(map(to_term, around)))


def number_positions(words: UnitWords) -> Iterator[tuple[int, str]]:
    """Every term with its position."""
    yield from enumerate(words.text)
    # The gap of one keeps phrases from reaching over the end of the text.
    yield from enumerate(words.around, start=len(words.text) + 1)


def from_positions(terms: Mapping[int, str]) -> UnitWords:
    """The words of a unit, given the terms by their positions."""
    text_end = next(place for place in range(len(terms) + 1) if place not in terms)
    around_end = len(terms) + 1
    return UnitWords(
        [terms[place] for place in range(text_end)],
        [terms[place] for place in range(text_end + 1, around_end)],
    )


def to_postings(units: Mapping[int, UnitWords]) -> Iterator[tuple[str, Postings]]:
    """The postings of each term of some units, which are in order."""
    numbers: dict[str, int] = {}
    terms: list[int] = []
    positions: list[int] = []
    text_sizes, around_sizes = [], []
    for words in units.values():
        for term in chain(words.text, words.around):
            terms.append(numbers.setdefault(term, len(numbers)))
        positions.extend(range(len(words.text)))
        positions.extend(range(len(words.text) + 1, words.word_count + 1))
        text_sizes.append(len(words.text))
        around_sizes.append(len(words.around))
    sizes = np.asarray(text_sizes, np.int64) + around_sizes
    of_unit = np.repeat(np.arange(len(units)), sizes)
    all_positions = np.asarray(positions, np.int64)
    is_text = all_positions < np.repeat(np.asarray(text_sizes, np.int64), sizes)
    # Units and positions are in order already, and a stable sort keeps them so.
    of_term = np.asarray(terms, np.int64)
    order = np.argsort(of_term, kind="stable")
    of_term, of_unit = of_term[order], of_unit[order]
    all_positions, is_text = all_positions[order], is_text[order]
    # A use is all places of one term in one unit.
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (of_term[1:] != of_term[:-1]) | (of_unit[1:] != of_unit[:-1])
    use_starts = np.flatnonzero(begins)
    text_counts = np.add.reduceat(is_text, use_starts, dtype=np.int64)
    counts = np.diff(use_starts, append=len(order))
    unit_ids = np.fromiter(units, np.int64, len(units))[of_unit[use_starts]]
    word_counts = sizes[of_unit[use_starts]]
    bounds = np.searchsorted(of_term[use_starts], np.arange(len(numbers) + 1)).tolist()
    place_bounds = np.searchsorted(of_term, np.arange(len(numbers) + 1)).tolist()
    for term, number in numbers.items():
        some = slice(bounds[number], bounds[number + 1])
        places = slice(place_bounds[number], place_bounds[number + 1])
        yield (
            term,
            Postings(
                unit_ids[some],
                word_counts[some],
                text_counts[some],
                counts[some] - text_counts[some],
                all_positions[places],
            ),
        )


# -- packed arrays --------------------------------------------------------------------


def pack(numbers: Sequence[int] | Ints) -> bytes:
    """Numbers from 0 on, each in as few bytes as the largest needs; all 0 is empty."""
    array = np.asarray(numbers, np.int64)
    # Most are of terms that few units have; for these it takes half of the time.
    few = array.tolist() if array.size <= _FEW else None
    largest = int(array.max(initial=0)) if few is None else max(few, default=0)
    if not largest:
        return b""
    if few is not None and largest < 1 << 8:
        return bytes(few)
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    packed: bytes = array.astype(_TYPES[width]).tobytes()
    return packed


def unpack(packed: bytes, count: int) -> Ints:
    """``count`` numbers that were packed."""
    if not packed:
        return np.zeros(count, np.int64)
    return np.frombuffer(packed, _TYPES[len(packed) // count]).astype(np.int64)
