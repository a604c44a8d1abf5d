"""What is alike."""

import pytest

from backstory.text.similarity import overlap


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
