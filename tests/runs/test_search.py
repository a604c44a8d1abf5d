"""Long texts cut into passages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.runs.search import OVERLAP_CHARS, PASSAGE_CHARS, cut_passages


@pytest.mark.parametrize("text", ["", "x", "x" * PASSAGE_CHARS])
def test_a_short_text_is_one_passage(text: str) -> None:
    assert cut_passages(text) == [(0, len(text))]


def test_a_passage_ends_with_a_line_where_there_are_lines() -> None:
    text = "".join(f"This is line number {number}.\n" for number in range(500))

    *passages, _ = cut_passages(text)

    assert [text[end - 1] for _, end in passages] == ["\n"] * len(passages)
    assert [text[start - 1].isspace() for start, _ in passages[1:]] == [True] * (
        len(passages) - 1
    )


@given(st.text(alphabet="ab \n", max_size=40), st.integers(1, 400))
def test_passages_cover_the_text_and_overlap(piece: str, count: int) -> None:
    text = (piece or "x") * count

    passages = cut_passages(text)

    assert passages[0][0] == 0
    assert passages[-1][1] == len(text)
    assert all(0 <= end - start <= PASSAGE_CHARS for start, end in passages)
    for (_, end), (start, _) in pairwise(passages):
        assert OVERLAP_CHARS <= end - start < PASSAGE_CHARS
