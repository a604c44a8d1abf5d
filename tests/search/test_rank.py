"""Scores number by number: the tuned order, and the designs' own formulas."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.search.rank import (
    Candidate,
    Ranked,
    Weights,
    blend_by_best,
    blend_by_range,
    is_relevant,
    judge,
    normalise,
    rank,
    rank_by_range,
)
from backstory.text.bm25 import bm25
from backstory.text.similarity import overlap
from backstory.values.hits import HitSource, Strength

SPEC = Weights(profile="spec")


def scores(ranked: list[Ranked]) -> dict[int, float]:
    return {each.candidate.unit_id: round(each.score, 6) for each in ranked}


def a_candidate(unit_id: int, **facts: object) -> Candidate:
    # Any: the facts are those of the class.
    made = Candidate(unit_id, HitSource.MESSAGE, group=1)
    return replace(made, **facts)  # type: ignore[arg-type]


# -- age ---


@pytest.mark.parametrize(
    ("age_days", "expected"),
    [(0, 1.0), (10, 0.904837), (69.314718, 0.5), (365, 0.025991), (None, 1.0)],
)
def test_by_the_design_age_halves_a_score_in_sixty_nine_days(
    age_days: float | None, expected: float
) -> None:
    assert SPEC.age_factor(age_days) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("age_days", "expected"), [(0, 1.0), (69.314718, 0.975), (10_000, 0.95), (-3, 1.0)]
)
def test_age_never_takes_more_than_the_floor_leaves(
    age_days: float, expected: float
) -> None:
    assert Weights().age_factor(age_days) == pytest.approx(expected)


def test_age_counts_more_for_who_asks_for_the_recent() -> None:
    old = Weights().age_factor(69.314718, wants_recent=True)

    assert old == pytest.approx(0.7 + 0.3 * 0.5)


# -- the designs' formulas ---


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


def test_search_history_by_the_design_normalises_weighs_and_lets_fade() -> None:
    ranked = rank(
        [
            a_candidate(
                1, source=HitSource.DAILY_LOG, words=6.0, cosine=0.4, age_days=10.0
            ),
            a_candidate(2, source=HitSource.MEMORY, words=3.0, cosine=0.8),
            a_candidate(3, age_days=0.0),
            a_candidate(4, age_days=100.0),
            a_candidate(5, source=HitSource.SESSION, age_days=69.314718),
        ],
        SPEC,
        has_vectors=True,
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
    ranked = rank_by_range(
        [
            a_candidate(1, words=3.0, cosine=0.2),
            a_candidate(2, words=1.0),
            a_candidate(3, words=2.0, cosine=0.8),
        ],
        SPEC,
    )

    assert scores(ranked) == {3: 0.8, 1: 0.4, 2: 0.0}


# -- tuned ---


def test_what_was_found_by_one_scorer_is_scored_by_the_other_too() -> None:
    ranked = rank(
        [
            a_candidate(1, words=4.0, cosine=0.1, group=1),
            a_candidate(2, words=2.0, cosine=0.5, group=2),
            a_candidate(3, words=0.0, cosine=0.3, group=3),
        ],
        Weights(sources=dict.fromkeys(HitSource, 1.0)),
        has_vectors=True,
    )

    # 0.4 for words, 0.6 for meaning; then 0.3 of what the session's best has, against
    # the best of all sessions.
    fits = {1: 0.4, 2: 0.4 * 0.5 + 0.6, 3: 0.6 * 0.5}
    expected = {n: (fits[n] + 0.3 * fits[n] / 0.8) / 1.8 for n in fits}
    assert scores(ranked) == pytest.approx(expected, abs=1e-6)
    assert [each.candidate.unit_id for each in ranked] == [2, 1, 3]


def test_what_stands_beside_a_good_match_is_lifted() -> None:
    ranked = rank(
        [
            a_candidate(1, words=4.0, position=5),
            a_candidate(2, words=1.0, position=6),
            a_candidate(3, words=1.0, position=7),
            a_candidate(4, words=1.0, position=9),
        ],
        replace(Weights(sources=dict.fromkeys(HitSource, 1.0)), decay_per_day=0.0),
        has_vectors=False,
    )

    beside = {
        each.candidate.unit_id: round(part.value, 6)
        for each in ranked
        for part in each.parts
        if part.name == "beside"
    }
    # A tenth of the better neighbour, a twentieth of each next but one.
    assert beside == {1: 0.0375, 2: 0.1, 3: 0.0875, 4: 0.0125}


def test_a_poor_cosine_is_no_fit_though_it_is_the_best() -> None:
    ranked = rank(
        [a_candidate(1, cosine=0.2), a_candidate(2, cosine=0.0)],
        Weights(sources=dict.fromkeys(HitSource, 1.0)),
        has_vectors=True,
    )

    meaning = [part.value for part in ranked[0].parts if part.name == "meaning"]
    assert meaning == [0.5]


def test_a_named_day_lifts_what_was_said_on_it() -> None:
    ranked = rank(
        [
            a_candidate(1, words=4.0, group=1),
            a_candidate(2, words=3.5, group=1, is_on_named_day=True),
        ],
        Weights(),
        has_vectors=False,
    )

    assert [each.candidate.unit_id for each in ranked] == [2, 1]


def test_equal_scores_go_by_age_and_then_by_number() -> None:
    ranked = rank(
        [
            a_candidate(1, age_days=None),
            a_candidate(2, age_days=0.0),
            a_candidate(3, age_days=None),
        ],
        replace(Weights(), decay_per_day=0.0),
        has_vectors=False,
    )

    assert [each.candidate.unit_id for each in ranked] == [2, 3, 1]


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        unit_id=st.integers(1, 10**6),
        source=st.sampled_from(HitSource),
        group=st.integers(1, 3),
        words=st.floats(0, 100),
        cosine=st.none() | st.floats(-1, 1),
        has_phrase=st.booleans(),
        is_on_named_day=st.booleans(),
        age_days=st.none() | st.floats(0, 10_000),
        role_weight=st.sampled_from([0.6, 0.9, 1.0]),
    ),
    max_size=20,
    unique_by=lambda each: each.unit_id,
)


@given(CANDIDATES, st.sampled_from(["tuned", "spec"]), st.booleans(), st.booleans())
def test_scores_are_between_zero_and_one_and_in_order(
    candidates: list[Candidate], profile: str, has_vectors: bool, wants_recent: bool
) -> None:
    ranked = rank(
        candidates,
        Weights(profile=profile),
        has_vectors=has_vectors,
        wants_recent=wants_recent,
    )

    found = [each.score for each in ranked]
    assert found == sorted(found, reverse=True)
    assert all(0 <= score <= 1 for score in found)
    assert {each.candidate for each in ranked} == set(candidates)


@given(CANDIDATES, st.sampled_from(["tuned", "spec"]))
def test_the_order_in_which_things_were_found_does_not_matter(
    candidates: list[Candidate], profile: str
) -> None:
    weights = Weights(profile=profile)

    assert rank(candidates, weights, has_vectors=True) == rank(
        candidates[::-1], weights, has_vectors=True
    )


@given(st.dictionaries(st.integers(), st.floats(-1e6, 1e6), max_size=8))
def test_normalised_scores_keep_their_order_within_zero_and_one(
    given_scores: dict[int, float],
) -> None:
    normal = normalise(given_scores)

    assert normal.keys() == given_scores.keys()
    assert all(0 <= score <= 1 for score in normal.values())


# -- what is alike ---


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a b c d e", "a b c d e", 1.0),
        ("a b c d e", "a b c d", 0.8),
        ("a b c d", "a b x y", 1 / 3),
        ("a", "", 0.0),
        ("", "", 1.0),
    ],
)
def test_overlap_is_the_share_of_common_words(
    one: str, other: str, expected: float
) -> None:
    assert overlap(frozenset(one.split()), frozenset(other.split())) == expected


# -- BM25 as the designs have it ---


def test_bm25_with_the_constants_of_the_design() -> None:
    documents = {
        1: ["sushi", "sushi", "bar"],
        2: ["sushi"],
        3: ["coffee", "bar", "here", "now"],
        4: [],
    }

    found = bm25(["sushi", "bar", "sushi", "ocelot"], documents)

    # N = 4, mean length 2, idf ln((4 - 2 + .5) / (2 + .5) + 1) = .693147 for both;
    # 1: 2 * 2.2 / (2 + 1.2 * 1.375) + 2.2 / (1 + 1.2 * 1.375)
    assert found == pytest.approx(
        {
            1: 0.693147 * (4.4 / 3.65 + 2.2 / 2.65),
            2: 0.693147 * 2.2 / 1.75,
            3: 0.693147 * 2.2 / 3.1,
        },
        rel=1e-6,
    )


def test_a_word_in_most_documents_still_counts_a_little() -> None:
    found = bm25(["a"], {1: ["a"], 2: ["a"], 3: ["a", "b"]})

    assert all(score > 0 for score in found.values())


# -- how strong ---


@pytest.mark.parametrize(
    ("coverage", "cosine", "has_phrase", "expected"),
    [
        (0.0, None, True, Strength.STRONG),
        (0.9, None, False, Strength.STRONG),
        (0.9, 0.1, False, Strength.FAIR),
        (0.0, 0.7, False, Strength.STRONG),
        (0.5, None, False, Strength.FAIR),
        (0.1, 0.5, False, Strength.FAIR),
        (0.4, 0.4, False, Strength.WEAK),
        (0.4, None, False, Strength.WEAK),
    ],
)
def test_strength_is_judged_from_the_hit_alone(
    coverage: float, cosine: float | None, has_phrase: bool, expected: Strength
) -> None:
    assert judge(coverage, cosine, has_phrase=has_phrase) is expected


@pytest.mark.parametrize(
    ("coverage", "candidate", "words", "expected"),
    [
        (0.0, a_candidate(1), 0.0, False),
        (0.0, a_candidate(1, cosine=0.2), 0.2, False),
        (0.2, a_candidate(1), 0.0, True),
        (0.0, a_candidate(1, cosine=0.3), 0.0, True),
        (0.0, a_candidate(1), 0.6, True),
        (0.0, a_candidate(1, has_phrase=True), 0.0, True),
        (0.0, a_candidate(1, is_on_named_day=True), 0.0, True),
    ],
)
def test_what_shares_nothing_with_the_query_is_irrelevant(
    coverage: float, candidate: Candidate, words: float, expected: bool
) -> None:
    assert is_relevant(coverage, candidate, words) is expected
