"""The formulas of the spec, number by number."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.search.rank import Candidate
from backstory.search.spec_profile import (
    blend_by_best,
    blend_by_range,
    normalize,
    rank_chunks,
    rank_history,
)
from backstory.values.hits import HitSource
from backstory.values.structs import replace
from tests.builders import USUAL
from tests.search.test_rank import CANDIDATES, a_candidate, scores

WEIGHTS = USUAL.weights


@pytest.mark.parametrize(
    ("age_days", "expected"),
    [(0, 1.0), (10, 0.904837), (69.314718, 0.5), (365, 0.025991), (None, 1.0)],
)
def test_by_the_design_age_halves_a_score_in_sixty_nine_days(
    age_days: float | None, expected: float
) -> None:
    assert replace(WEIGHTS, decay_floor=0.0).age_factor(age_days) == pytest.approx(
        expected, abs=1e-6
    )


def test_each_list_is_divided_by_its_best_and_weighed_three_to_seven() -> None:
    blended = blend_by_best({1: 4.0, 2: 2.0}, {1: 0.3, 3: 0.6}, 0.3)

    assert blended == pytest.approx(
        {1: 0.3 * 1 + 0.7 * 0.5, 2: 0.3 * 0.5, 3: 0.7 * 1.0}
    )


def test_without_vectors_the_words_stand_alone() -> None:
    assert blend_by_best({1: 4.0, 2: 1.0}, {}, 0.3) == {1: 1.0, 2: 0.25}
    assert blend_by_range({1: 4.0, 2: 1.0}, {}, 0.4) == {1: 1.0, 2: 0.0}


def test_each_list_goes_from_its_least_to_its_best_and_is_weighed_four_to_six() -> None:
    blended = blend_by_range({1: 3.0, 2: 2.0, 3: 1.0}, {1: 0.2, 4: 0.8}, 0.4)

    assert blended == pytest.approx({1: 0.4, 2: 0.2, 3: 0.0, 4: 0.6})


def test_search_history_by_the_design_normalizes_weighs_and_lets_fade() -> None:
    ranked = rank_history(
        [
            a_candidate(
                1, source=HitSource.DAILY_LOG, words=6.0, cosine=0.4, age_days=10.0
            ),
            a_candidate(2, source=HitSource.MEMORY, words=3.0, cosine=0.8),
            a_candidate(3, age_days=0.0),
            a_candidate(4, age_days=100.0),
            a_candidate(5, source=HitSource.SESSION, age_days=69.314718),
        ],
        WEIGHTS,
    )

    # Notes: 0.3 + 0.7 / 2 and 0.15 + 0.7, both divided by the better of the two.
    assert scores(ranked) == {
        2: 1.0,
        1: round(0.65 / 0.85 * math.exp(-0.1), 6),
        3: 0.6,
        5: 0.25,
        4: round(0.6 * math.exp(-1), 6),
    }
    assert {part.name: part.value for part in ranked[1].parts} == pytest.approx(
        {"fit": 0.65 / 0.85, "source": 1.0, "age": math.exp(-0.1)}
    )


def test_memory_search_by_the_design_merges_both_lists() -> None:
    ranked = rank_chunks(
        [
            a_candidate(1, words=3.0, cosine=0.2),
            a_candidate(2, words=1.0),
            a_candidate(3, words=2.0, cosine=0.8),
        ],
        WEIGHTS,
    )

    assert scores(ranked) == {3: 0.8, 1: 0.4, 2: 0.0}


@given(CANDIDATES)
def test_scores_are_between_zero_and_one_and_in_order(
    candidates: list[Candidate],
) -> None:
    ranked = rank_history(candidates, WEIGHTS)

    found = [each.score for each in ranked]
    assert found == sorted(found, reverse=True)
    assert all(0 <= score <= 1 for score in found)
    assert {each.candidate for each in ranked} == set(candidates)
    assert ranked == rank_history(candidates[::-1], WEIGHTS)


@given(st.dictionaries(st.integers(), st.floats(-1e6, 1e6), max_size=8))
def test_normalized_scores_keep_their_order_within_zero_and_one(
    given_scores: dict[int, float],
) -> None:
    normal = normalize(given_scores)

    assert normal.keys() == given_scores.keys()
    assert all(0 <= score <= 1 for score in normal.values())
