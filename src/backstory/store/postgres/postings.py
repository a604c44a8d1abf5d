"""Which units have a term, how often and where: arrays, and how they are packed.

A unit's positions are those of its text, then, after a gap, those of the words around
it. The first ``text_counts`` of them are of the text. So no phrase reaches from one
into the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Longer terms would not fit into an index of PostgreSQL.
_MAX_TERM_CHARS = 200


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


def find_places(numbers: Ints, among: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where numbers are among others, which are in order, and which are there."""
    if not len(among):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
    places = np.searchsorted(among, numbers)
    places[places == len(among)] = 0
    return places, among[places] == numbers


def intersect(sets: Sequence[Ints]) -> Ints:
    """The numbers that are in all of some arrays, each in order and without repeats.

    The fewest are looked up among the others: ``np.intersect1d`` sorts all of them.
    """
    shared, *others = sorted(sets, key=len)
    for each in others:
        _, is_there = find_places(shared, each)
        shared = shared[is_there]
    return shared


def to_term(token: str) -> str:
    """A token as it is stored. No token has a space, so no two become the same."""
    if len(token) <= _MAX_TERM_CHARS:
        return token
    digest = blake2b(token.encode(errors="replace"), digest_size=16).hexdigest()
    return f"{token[:_MAX_TERM_CHARS]} {digest}"


def to_unit_words(text: Sequence[str], around: Sequence[str]) -> UnitWords:
    """The words of a unit, given the tokens of its text and those around it."""
    return UnitWords(_to_terms(text), _to_terms(around))


def _to_terms(tokens: Sequence[str]) -> Sequence[str]:
    # Hardly any unit has a long one, and it takes a third of the time to see that.
    if max(map(len, tokens), default=0) <= _MAX_TERM_CHARS:
        return tokens
    return list(map(to_term, tokens))


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


# -- packed arrays --------------------------------------------------------------------


def find_type(width: int) -> str:
    """The type of packed numbers, by the bytes of each."""
    return f"<u{width}"


def unpack(packed: bytes, count: int) -> Ints:
    """``count`` numbers that were packed."""
    if not packed:
        return np.zeros(count, np.int64)
    return np.frombuffer(packed, find_type(len(packed) // count)).astype(np.int64)
