"""Texts with NUL characters come back as they were, and stay in order."""

from hypothesis import given
from hypothesis import strategies as st

from backstory.store.postgres.nul_characters import escape_nul, restore_nul

texts = st.text("\0\1\2\3ab", max_size=8)


@given(text=texts)
def test_a_text_comes_back_without_ever_having_had_a_nul(text: str) -> None:
    assert "\0" not in escape_nul(text)
    assert restore_nul(escape_nul(text)) == text


@given(one=texts, two=texts)
def test_texts_compare_as_before(one: str, two: str) -> None:
    first, second = escape_nul(one), escape_nul(two)
    assert (first < second, first == second) == (one < two, one == two)
    assert first.startswith(second) == one.startswith(two)
