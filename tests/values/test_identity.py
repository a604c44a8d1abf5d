"""Ids and hashes made from content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.values.identity import bytes_hash, content_id, is_below


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param((), "b2:b8e1dda3ac0aa3820ad2990b", id="no parts"),
        pytest.param(("a", "bé"), "b2:0c99e05c441404451448eb1a", id="two parts"),
    ],
)
def test_an_id_is_the_same_for_ever(parts: tuple[str, ...], expected: str) -> None:
    # Ids are stored: a change of algorithm must change the tag, and mend what is there.
    assert content_id(*parts) == expected


@given(st.lists(st.text(st.characters())), st.lists(st.text(st.characters())))
def test_different_parts_have_different_ids(one: list[str], other: list[str]) -> None:
    assert (content_id(*one) == content_id(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("ab", "c"), ("a", "bc"), id="another border"),
        pytest.param(("a", ""), ("a",), id="an empty part"),
        pytest.param(("a", "b"), ("b", "a"), id="another order"),
        pytest.param(("\ud800",), ("\ud801",), id="half characters"),
    ],
)
def test_parts_that_only_look_alike_have_different_ids(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert content_id(*one) != content_id(*other)


def test_the_hash_of_bytes_is_the_same_for_ever() -> None:
    assert bytes_hash(b"bytes") == "b2:6ea7442bc44abc453a57f9153dda1bd6"


@given(
    st.text("ab/", max_size=8),
    st.lists(st.text("ab/", max_size=4), max_size=4),
)
def test_an_id_is_below_those_that_it_continues_after_a_slash(
    native_id: str, others: list[str]
) -> None:
    expected = any(native_id.startswith(f"{other}/") for other in others)

    assert is_below(native_id, others) == expected
