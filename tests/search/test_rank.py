"""Scores number by number, as they are tuned."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.search.rank import Candidate, Ranked, rank, to_candidates
from backstory.search.retrieve import Retrieved
from backstory.store.base.index import BestPassage, TurnPart, Unit
from backstory.text.query import parse_words
from backstory.values.hits import HitSource
from backstory.values.structs import replace
from backstory.values.units import SessionRef, UnitKind
from tests.builders import USUAL
from tests.grid import cases
from tests.index_builders import NOW

WEIGHTS = USUAL.weights
EQUAL = replace(WEIGHTS, message_weight=1.0, session_weight=1.0)


def scores(ranked: list[Ranked]) -> dict[int, float]:
    return {each.candidate.unit_id: round(each.score, 6) for each in ranked}


def a_candidate(unit_id: int, **facts: object) -> Candidate:
    # Any: the facts are those of the class.
    made = Candidate(unit_id, HitSource.MESSAGE, group=SessionRef(1))
    return made._replace(**facts)  # type: ignore[arg-type]


# -- age ---


@pytest.mark.parametrize(
    ("age_days", "expected"), [(0, 1.0), (69.314718, 0.975), (10_000, 0.95), (-3, 1.0)]
)
def test_age_never_takes_more_than_the_floor_leaves(
    age_days: float, expected: float
) -> None:
    assert WEIGHTS.age_factor(age_days) == pytest.approx(expected)


def test_age_counts_more_for_who_asks_for_the_recent() -> None:
    old = WEIGHTS.age_factor(69.314718, wants_recent=True)

    assert old == pytest.approx(0.7 + 0.3 * 0.5)


# -- tuned ---


def test_what_was_typed_stands_before_what_resembles_it_the_newest_first() -> None:
    ranked = rank(
        [
            a_candidate(1, words=9.0, cosine=0.9, age_days=0.0),
            a_candidate(2, words=1.0, has_phrase=True, role_weight=0.6, age_days=90.0),
            a_candidate(3, words=1.0, has_phrase=True, role_weight=0.6, age_days=1.0),
            # Only a part of longer words.
            a_candidate(4, words=0.0, has_phrase=True, age_days=0.0),
        ],
        EQUAL,
        has_vectors=True,
    )

    assert [each.candidate.unit_id for each in ranked] == [3, 2, 1, 4]
    assert [each.part("exact") for each in ranked] == [1.0, 1.0, 0.0, 0.0]
    assert ranked[1].score > 0.5 > ranked[2].score


def test_parts_of_words_are_exact_where_nobody_has_the_words() -> None:
    ranked = rank(
        [
            a_candidate(1, cosine=0.9),
            a_candidate(2, has_phrase=True, cosine=0.1),
        ],
        EQUAL,
        has_vectors=True,
    )

    assert [each.candidate.unit_id for each in ranked] == [2, 1]


def test_in_an_agentic_session_the_request_counts_and_not_the_neighbours() -> None:
    def supports(is_agentic: bool) -> list[float]:
        facts = {"is_agentic": is_agentic}
        request = a_candidate(1, words=4.0, position=0, **facts)
        step = a_candidate(2, words=2.0, position=1, request_id=1, **facts)
        last = a_candidate(3, words=2.0, position=30, request_id=1, **facts)
        ranked = rank([request, step, last], EQUAL, has_vectors=False)
        beside = {each.candidate.unit_id: each.part("beside") for each in ranked}
        return [round(beside[unit_id], 6) for unit_id in (1, 2, 3)]

    assert supports(is_agentic=True) == [0.0, 0.1, 0.1]
    assert supports(is_agentic=False) == [0.05, 0.1, 0.0]


@cases(
    ("kind", "text_bytes", "is_agentic", "is_step", "expected"),
    [
        (UnitKind.ASSISTANT, 10, True, True, 0.5),
        (UnitKind.ASSISTANT, 60, True, True, 0.5),
        (UnitKind.ASSISTANT, 134, True, True, 0.75),
        (UnitKind.ASSISTANT, 300, True, True, 1.0),
        (UnitKind.ASSISTANT, 10, True, False, 0.75),
        (UnitKind.ASSISTANT, 134, True, False, 0.875),
        (UnitKind.ASSISTANT, 300, True, False, 1.0),
        (UnitKind.ASSISTANT, 9_000, True, False, 1.0),
        (UnitKind.USER, 0, True, False, 0.8),
        (UnitKind.USER, 30, True, False, 0.9),
        (UnitKind.USER, 900, True, False, 1.0),
        (UnitKind.OTHER, 900, True, False, 0.6),
        (UnitKind.USER, 0, False, False, 1.0),
        (UnitKind.ASSISTANT, 10, False, False, 1.0),
        (UnitKind.ASSISTANT, 900, False, False, 0.75),
    ],
)
def test_how_much_a_message_says_is_judged_by_its_length_where_tools_are_used(
    kind: UnitKind, text_bytes: int, is_agentic: bool, is_step: bool, expected: float
) -> None:
    session = SessionRef(1)
    unit = Unit(1, kind, session, 0, None, text_bytes)
    parts = {1: TurnPart(None, is_step)}
    found = Retrieved(units={1: unit}, turn_parts=parts)
    if is_agentic:
        found.agentic = frozenset({session})

    (candidate,) = to_candidates(parse_words("x"), found, now=NOW)

    assert candidate.role_weight == pytest.approx(expected, abs=0.001)


def test_what_was_found_by_one_scorer_is_scored_by_the_other_too() -> None:
    ranked = rank(
        [
            a_candidate(1, words=4.0, cosine=0.1, group=SessionRef(1)),
            a_candidate(2, words=2.0, cosine=0.5, group=SessionRef(2)),
            a_candidate(3, words=0.0, cosine=0.3, group=SessionRef(3)),
        ],
        EQUAL,
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
        replace(EQUAL, decay_per_day=0.0),
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
        EQUAL,
        has_vectors=True,
    )

    meaning = [part.value for part in ranked[0].parts if part.name == "meaning"]
    assert meaning == [0.5]


def test_a_named_day_lifts_what_was_said_on_it() -> None:
    ranked = rank(
        [
            a_candidate(1, words=4.0, group=SessionRef(1)),
            a_candidate(2, words=3.5, group=SessionRef(1), is_on_named_day=True),
        ],
        WEIGHTS,
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
        replace(WEIGHTS, decay_per_day=0.0),
        has_vectors=False,
    )

    assert [each.candidate.unit_id for each in ranked] == [2, 3, 1]


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        unit_id=st.integers(1, 10**6),
        source=st.sampled_from(HitSource),
        group=st.builds(SessionRef, st.integers(1, 3)),
        words=st.floats(0, 100),
        cosine=st.none() | st.floats(-1, 1),
        has_phrase=st.booleans(),
        is_on_named_day=st.booleans(),
        age_days=st.none() | st.floats(0, 10_000),
        role_weight=st.sampled_from([0.6, 0.9, 1.0]),
        passage=st.none()
        | st.builds(BestPassage, number=st.integers(0, 40), cosine=st.floats(-1, 1)),
    ),
    max_size=20,
    unique_by=lambda each: each.unit_id,
)


@given(CANDIDATES, st.booleans(), st.booleans())
def test_scores_are_between_zero_and_one_and_in_order(
    candidates: list[Candidate], has_vectors: bool, wants_recent: bool
) -> None:
    ranked = rank(
        candidates, WEIGHTS, has_vectors=has_vectors, wants_recent=wants_recent
    )

    found = [each.score for each in ranked]
    assert found == sorted(found, reverse=True)
    assert all(0 <= score <= 1 for score in found)
    assert {each.candidate for each in ranked} == set(candidates)


@given(CANDIDATES)
def test_the_order_in_which_things_were_found_does_not_matter(
    candidates: list[Candidate],
) -> None:
    assert rank(candidates, WEIGHTS, has_vectors=True) == rank(
        candidates[::-1], WEIGHTS, has_vectors=True
    )
