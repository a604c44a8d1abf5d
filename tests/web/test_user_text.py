"""Blocks of code in what the user wrote, and how much of it is shown at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.web.user_text import TextPiece, fold_pieces, split_fences

LINES = st.sampled_from(["", "```", "```py", "~~~", "````", "  ```", "a", "``` b ```"])


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("a\n\n b", [TextPiece("a\n\n b")], id="none"),
        pytest.param(
            "a\n```py\nx = 1\n```\n\nb",
            [TextPiece("a"), TextPiece("x = 1", "py"), TextPiece("\nb")],
            id="code between texts",
        ),
        pytest.param("~~~\n```\n~~~", [TextPiece("```", "")], id="one in another"),
        pytest.param(
            "````\n```\nx\n```\n````",
            [TextPiece("```\nx\n```", "")],
            id="only one as long closes it",
        ),
        pytest.param("```py\nx = 1", [TextPiece("```py\nx = 1")], id="never closed"),
        pytest.param("a ```b``` c", [TextPiece("a ```b``` c")], id="within a line"),
        pytest.param("```a```\n```", [TextPiece("```a```\n```")], id="not a fence"),
        pytest.param(
            "```a b c\nx\n```", [TextPiece("x", "a")], id="more than a language"
        ),
    ],
)
def test_fenced_code_is_apart_from_the_text(text: str, pieces: list[TextPiece]) -> None:
    assert split_fences(text) == pieces


@given(st.lists(LINES, min_size=1))
def test_no_line_is_lost_but_the_fences(lines: list[str]) -> None:
    pieces = split_fences("\n".join(lines))

    kept = [line for piece in pieces for line in piece.text.split("\n")]
    blocks = sum(piece.language is not None for piece in pieces)
    # An empty block has no line, and its empty text one.
    empty = sum(piece.language is not None and not piece.text for piece in pieces)
    assert len(lines) - 2 * blocks <= len(kept) <= len(lines) - 2 * blocks + empty
    assert [line for line in lines if line == "a"] == [
        line for line in kept if line == "a"
    ]


def test_ten_thousand_fences_that_nothing_closes_are_quick_to_read() -> None:
    text = "```x\n" * 10_000 + "~~~x\n" * 10_000

    assert split_fences(text) == [TextPiece(text)]


def heights(pieces: list[TextPiece]) -> list[int]:
    return [piece.text.count("\n") + 1 for piece in pieces]


@pytest.mark.parametrize(
    ("pieces", "shown", "folded"),
    [
        pytest.param([TextPiece("a\n" * 39)], [40], [], id="short"),
        pytest.param([TextPiece("a\n" * 40)], [30], [11], id="long"),
        pytest.param([TextPiece("a" * 5_000)], [], [1], id="one line, folded whole"),
        pytest.param(
            [TextPiece("a"), TextPiece("b\n" * 99, "py"), TextPiece("c\n" * 29)],
            [1, 100, 4],
            [26],
            id="code scrolls in its box",
        ),
        pytest.param(
            [TextPiece("a\n" * 19), TextPiece("b\n" * 99, "py")],
            [20],
            [100],
            id="code is not split",
        ),
    ],
)
def test_what_is_long_is_folded_between_lines(
    pieces: list[TextPiece], shown: list[int], folded: list[int]
) -> None:
    begin, rest = fold_pieces(pieces)

    assert (heights(begin), heights(rest)) == (shown, folded)
