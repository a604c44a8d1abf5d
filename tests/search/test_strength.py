"""How strong a hit is by itself."""

import pytest

from backstory.search.rank import Candidate
from backstory.search.strength import Coverage, is_relevant, judge
from backstory.search.tuned_profile import TunedProfile
from backstory.text.query import parse_query
from backstory.values.hits import Hit, HitSource, ScorePart, Strength
from tests.grid import cases
from tests.search.test_rank import a_candidate


@cases(
    ("share", "rarity", "cosine", "has_phrase", "expected"),
    [
        (0.0, 0.0, None, True, Strength.STRONG),
        (0.9, 1.0, None, False, Strength.STRONG),
        (0.9, 1.0, 0.1, False, Strength.FAIR),
        (0.0, 0.0, 0.7, False, Strength.STRONG),
        (0.5, 0.5, None, False, Strength.FAIR),
        (0.4, 0.4, None, False, Strength.WEAK),
        (0.0, 0.0, 0.44, False, Strength.WEAK),
        (0.0, 0.0, 0.45, False, Strength.FAIR),
        (0.4, 0.1, 0.4, False, Strength.WEAK),
        # Rare words that have nothing to do with what was asked.
        (0.4, 2.0, 0.2, False, Strength.WEAK),
        # The same share of the words, but rarer ones.
        (0.4, 1.0, 0.4, False, Strength.FAIR),
    ],
)
def test_strength_is_judged_from_the_hit_alone(
    share: float,
    rarity: float,
    cosine: float | None,
    has_phrase: bool,
    expected: Strength,
) -> None:
    coverage = Coverage(share, rarity)
    assert judge(coverage, cosine, has_phrase=has_phrase) is expected


@pytest.mark.parametrize(
    ("share", "has_phrase", "expected"),
    [
        (0.9, False, Strength.STRONG),
        (0.7, False, Strength.WEAK),
        (0.0, True, Strength.STRONG),
    ],
)
def test_what_nobody_said_needs_nearly_all_words_of_the_query(
    share: float, has_phrase: bool, expected: Strength
) -> None:
    coverage = Coverage(share, share)

    strength = judge(coverage, None, has_phrase=has_phrase, was_said=False)

    assert strength is expected


@pytest.mark.parametrize(
    ("coverage", "candidate", "words", "expected"),
    [
        (0.0, a_candidate(1), 0.0, False),
        (0.0, a_candidate(1, cosine=0.19), 0.2, False),
        (0.2, a_candidate(1), 0.0, True),
        (0.0, a_candidate(1, cosine=0.2), 0.0, True),
        (0.0, a_candidate(1), 0.6, True),
        (0.0, a_candidate(1, has_phrase=True), 0.0, True),
        (0.0, a_candidate(1, is_on_named_day=True), 0.0, True),
    ],
)
def test_what_shares_nothing_with_the_query_is_irrelevant(
    coverage: float, candidate: Candidate, words: float, expected: bool
) -> None:
    assert is_relevant(coverage, candidate, words) is expected


def test_for_a_word_that_nothing_has_only_what_is_near_is_shown() -> None:
    # What a profile shows does not depend on what it was retrieved with.
    profile = TunedProfile(None, None)  # type: ignore[arg-type]
    near, far, order, request = (
        Hit(
            HitSource.MESSAGE,
            0.2,
            Strength.WEAK,
            text,
            text,
            parts=(ScorePart("cosine", cosine), ScorePart("agentic", agentic)),
        )
        for text, cosine, agentic in (
            ("sushi", 0.35, 0.0),
            ("continue", 0.25, 0.0),
            ("commit", 0.45, 1.0),
            ("deploy the second server", 0.4, 1.0),
        )
    )

    shown, notices = profile.finish(
        parse_query("zzzzqqqq", today=None), [], [near, far], 10
    )
    others, notices_too = profile.finish(
        parse_query("zzzzqqqq", today=None), [], [order, request], 10
    )
    none, silence = profile.finish(parse_query("zzzzqqqq", today=None), [], [far], 10)

    assert (shown, notices) == ([near], ["nothing matches well; these are the nearest"])
    assert (others, notices_too) == ([request], notices)
    assert (none, silence) == ([], [])
