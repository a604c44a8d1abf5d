"""Texts cut to a number of tokens, and how far each must be cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.tokens import most_tokens
from backstory.trimming import (
    MARKER,
    find_level,
    find_marked_ids,
    is_trimmed,
    make_marker,
    trim_text,
)


@pytest.mark.parametrize(
    ("sizes", "to_save", "floor", "level"),
    [
        ([], 10, 0, None),
        ([5, 5], 10, 5, None),
        ([100], 30, 0, 70),
        ([100, 40], 30, 0, 70),
        ([100, 40], 70, 0, 35),
        ([100, 100], 50, 0, 75),
        ([100, 100], 51, 0, 74),
        ([100, 40], 500, 10, 10),
    ],
)
def test_the_largest_are_cut_until_enough_is_saved(
    sizes: list[int], to_save: int, floor: int, level: int | None
) -> None:
    assert find_level(sizes, to_save, floor) == level


@given(
    st.lists(st.integers(0, 1_000)),
    st.integers(1, 5_000),
    st.integers(0, 200),
)
def test_a_level_saves_enough_or_is_the_floor(
    sizes: list[int], to_save: int, floor: int
) -> None:
    level = find_level(sizes, to_save, floor)

    if level is None:
        assert max(sizes, default=0) <= floor
    else:
        saved = sum(size - min(size, level) for size in sizes)
        assert level == floor or saved >= to_save
        # One token more for each would not do.
        assert sum(size - min(size, level + 1) for size in sizes) < to_save


@given(st.text(), st.integers(0, 300))
def test_a_trimmed_text_keeps_within_its_tokens_and_is_known_again(
    text: str, max_tokens: int
) -> None:
    text = text * 20 + "x"
    marker = make_marker("call_1")

    trimmed = trim_text(text, marker, max_tokens, most_tokens)

    assert most_tokens(trimmed) <= max(max_tokens, most_tokens(marker))
    assert trimmed == marker or is_trimmed(trimmed, text, "call_1")
    assert not is_trimmed(trimmed, text, "call_2")


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d🌾", "👍🏽", "\ud83d\ude00"])
def test_no_character_is_cut_in_half(cluster: str) -> None:
    text = cluster * 200

    trimmed = trim_text(text, MARKER, 100, len)

    head, tail = trimmed.split(f"\n{MARKER}\n")
    assert head == cluster * (len(head) // len(cluster))
    assert tail == cluster * (len(tail) // len(cluster))


def test_the_ids_of_markers_are_read_back() -> None:
    text = f"a\n{make_marker('call_1')}\nb\n{make_marker(None)}\n{make_marker('x~2')}"

    assert find_marked_ids(text) == ["call_1", "x~2"]
