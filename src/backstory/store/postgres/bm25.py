"""Rank units by their words, exactly as SQLite's full-text search does.

The formula and its constants are those of FTS5's ``bm25``. Where a phrase is in the
query twice, it counts twice.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backstory.store.postgres.postings import (
    Ints,
    Postings,
    find_places,
    intersect,
    no_postings,
)

# A word near a message says less about it than one in it.
TEXT_WEIGHT = 1.0
AROUND_WEIGHT = 0.6
_K1 = 1.2
_B = 0.75
# What a phrase counts for that more than half of all units have.
_LEAST_IDF = 1e-6
_POSITION_BITS = 32

Floats = NDArray[np.float64]


class PhraseUnits(NamedTuple):
    """The units that have a phrase, and how often: in the text, around it."""

    unit_ids: Ints
    word_counts: Ints
    text_counts: Ints
    around_counts: Ints


def find_phrase(tokens: Sequence[Postings]) -> PhraseUnits:
    """Units that have these tokens next to each other; without tokens, none."""
    if not tokens:
        return PhraseUnits(*no_postings()[:4])
    if len(tokens) == 1:
        return PhraseUnits(*tokens[0][:4])
    shared = intersect([each.unit_ids for each in tokens])
    if not len(shared):
        return PhraseUnits(*no_postings()[:4])
    starts, is_text = _to_keys(tokens[0], shared)
    for distance, each in enumerate(tokens[1:], start=1):
        keys, _ = _to_keys(each, shared)
        _, follows = find_places(starts + distance, keys)
        starts, is_text = starts[follows], is_text[follows]
    owners = starts >> _POSITION_BITS
    text_counts = np.bincount(owners[is_text], minlength=len(shared))
    around_counts = np.bincount(owners[~is_text], minlength=len(shared))
    lengths = tokens[0].word_counts[np.searchsorted(tokens[0].unit_ids, shared)]
    has = text_counts + around_counts > 0
    return PhraseUnits(shared[has], lengths[has], text_counts[has], around_counts[has])


def _to_keys(postings: Postings, shared: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The unit and position of each use in the shared units, as one number.

    And whether the use is in the text.
    """
    uses = postings.text_counts + postings.around_counts
    starts = np.cumsum(uses) - uses
    places = np.searchsorted(postings.unit_ids, shared)
    uses, starts = uses[places], starts[places]
    owners = np.repeat(np.arange(len(shared)), uses)
    # Which use of its unit each one is.
    turns = np.arange(len(owners)) - np.repeat(np.cumsum(uses) - uses, uses)
    is_text = turns < postings.text_counts[places][owners]
    keys = (owners << _POSITION_BITS) + postings.positions[starts[owners] + turns]
    return keys, is_text


def score(
    phrases: Sequence[tuple[PhraseUnits, int]],
    unit_ids: Ints,
    *,
    unit_count: int,
    word_count: int,
) -> Floats:
    """The scores of units, which are in order, by phrases and how often each counts."""
    scores: Floats = np.zeros(len(unit_ids))
    if not len(unit_ids) or not word_count:
        return scores
    mean_length = word_count / unit_count
    for phrase, times in phrases:
        has = len(phrase.unit_ids)
        if not has:
            continue
        idf = math.log((unit_count - has + 0.5) / (has + 0.5))
        if idf <= 0:
            idf = _LEAST_IDF
        # Whichever are fewer are looked up among the others.
        if has < len(unit_ids):
            places, is_there = find_places(phrase.unit_ids, unit_ids)
            places, wanted = places[is_there], np.flatnonzero(is_there)
        else:
            in_phrase, is_there = find_places(unit_ids, phrase.unit_ids)
            places, wanted = np.flatnonzero(is_there), in_phrase[is_there]
        uses = (
            phrase.text_counts[wanted] * TEXT_WEIGHT
            + phrase.around_counts[wanted] * AROUND_WEIGHT
        )
        lengths = phrase.word_counts[wanted] / mean_length
        gained = idf * (uses * (_K1 + 1)) / (uses + _K1 * (1 - _B + _B * lengths))
        scores[places] += times * gained
    return scores
