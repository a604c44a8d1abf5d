"""Which units have a term, how often and where: arrays, and how they are packed.

A unit's positions are those of its text, then, after a gap, those of the words around
it. The first ``text_counts`` of them are of the text. So no phrase reaches from one
into the other.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Longer terms would not fit into an index of PostgreSQL.
_MAX_TERM_CHARS = 200
# The type of a packed number, by its size in bytes.
_TYPES = {1: "<u1", 2: "<u2", 4: "<u4"}


class TermUse(NamedTuple):
    """How one unit uses a term."""

    text_count: int
    around_count: int
    positions: Sequence[int]


class UnitWords(NamedTuple):
    """All words of a unit: how many, and how each term is used."""

    word_count: int
    uses: Mapping[str, TermUse]


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
    positions: dict[str, list[int]] = {}
    for position, token in enumerate(text):
        positions.setdefault(token, []).append(position)
    text_counts = {token: len(places) for token, places in positions.items()}
    # The gap of one keeps phrases from reaching over the end of the text.
    for position, token in enumerate(around, start=len(text) + 1):
        positions.setdefault(token, []).append(position)
    uses = {}
    for token, places in positions.items():
        text_count = text_counts.get(token, 0)
        uses[to_term(token)] = TermUse(text_count, len(places) - text_count, places)
    return UnitWords(len(text) + len(around), uses)


# -- packed arrays --------------------------------------------------------------------


def pack(numbers: Sequence[int] | Ints) -> bytes:
    """Numbers from 0 on, each in as few bytes as the largest needs; all 0 is empty."""
    array = np.asarray(numbers, np.int64)
    largest = int(array.max(initial=0))
    if not largest:
        return b""
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    packed: bytes = array.astype(_TYPES[width]).tobytes()
    return packed


def unpack(packed: bytes, count: int) -> Ints:
    """``count`` numbers that were packed."""
    if not packed:
        return np.zeros(count, np.int64)
    return np.frombuffer(packed, _TYPES[len(packed) // count]).astype(np.int64)
