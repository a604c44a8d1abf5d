"""Texts cut to a number of tokens, and how far each must be cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.runs.trim import (
    MARKER,
    Size,
    find_cap,
    find_marked_ids,
    is_trimmed,
    make_marker,
    trim_text,
)
from backstory.text.tokens import most_tokens


@pytest.mark.parametrize(
    ("sizes", "to_save", "level"),
    [
        ([], 10, 0),
        ([(100, 0)], 30, 70),
        ([(100, 0), (40, 0)], 30, 70),
        ([(100, 0), (40, 0)], 70, 35),
        ([(100, 0), (100, 0)], 50, 75),
        ([(100, 0), (100, 0)], 51, 74),
        ([(100, 90), (100, 0)], 50, 60),
        ([(100, 90), (100, 90)], 50, 0),
    ],
)
def test_the_largest_are_cut_until_enough_is_saved(
    sizes: list[tuple[int, int]], to_save: int, level: int
) -> None:
    assert find_cap([Size(*size) for size in sizes], to_save) == level


SIZES = st.lists(st.builds(Size, st.integers(0, 1_000), st.integers(0, 300)))


@given(SIZES, st.integers(1, 5_000))
def test_a_level_is_the_highest_that_saves_enough(
    sizes: list[Size], to_save: int
) -> None:
    def saved(level: int) -> int:
        return sum(size.tokens - size.capped(level) for size in sizes)

    level = find_cap(sizes, to_save)

    assert level == 0 or saved(level) >= to_save
    assert saved(level + 1) < to_save


@given(st.text(), st.integers(0, 300))
def test_a_trimmed_text_keeps_within_its_tokens_and_is_known_again(
    text: str, max_tokens: int
) -> None:
    text = text * 20 + "x"
    marker = make_marker("call_1")

    trimmed = trim_text(text, marker, max_tokens, most_tokens)

    nothing = f"\n{marker}\n[characters 0-{len(text)} of {len(text)}]\n"
    assert most_tokens(trimmed) <= max(max_tokens, most_tokens(nothing))
    assert is_trimmed(trimmed, text, "call_1")
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
