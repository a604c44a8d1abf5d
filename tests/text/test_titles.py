"""A title is one line of what was said, without markup, cut between two words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.titles import make_title
from tests.grid import cases


@cases(
    ("text", "expected"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("fix  the\ntests", "fix the tests", id="white space"),
        pytest.param("fix all of the tests", "fix all of the tests", id="it fits"),
        pytest.param("fix all of the tests today", "fix all of the…", id="at a word"),
        pytest.param("fix " + "x" * 30, "fix " + "x" * 15 + "…", id="one long word"),
        pytest.param("修" * 30, "修" * 19 + "…", id="a script without spaces"),
        pytest.param("\x1b[1mfix\x1b[22m it", "fix it", id="colours"),
        pytest.param("<command-name>/clear</command-name>", "", id="a command"),
        pytest.param("<ide_selection>x</ide_selection> fix", "fix", id="a selection"),
        pytest.param("<ide_selection>" + "x" * 50, "", id="a tag that is cut off"),
        pytest.param("[Request interrupted by user]", "", id="an interruption"),
        pytest.param("[image]\n[image]", "", id="images"),
        pytest.param("[image] is green", "[image] is green", id="about an image"),
        pytest.param("# Plan: tabs\n\n## Why\nx", "Plan: tabs", id="a heading"),
        pytest.param(
            "Implement the following plan:\n\n# Plan: tabs\n\n## Why\nBecause",
            "Plan: tabs",
            id="a heading that is introduced",
        ),
        pytest.param("# of tests is 3", "# of tests is 3", id="a sign, no heading"),
        pytest.param("fix this:\n```\nx = 1\n```", "fix this:", id="code"),
        pytest.param("```\nx = 1\n```", "``` x = 1", id="nothing but code"),
    ],
)
def test_a_text_becomes_a_title(text: str, expected: str) -> None:
    assert make_title(text, 20) == expected


@given(st.text(st.characters() | st.sampled_from(" \n#\x1b")), st.integers(1, 30))
def test_a_title_fits_on_one_line(text: str, max_chars: int) -> None:
    title = make_title(text, max_chars)

    assert len(title) <= max_chars
    assert title == " ".join(title.split())


@given(st.text(st.sampled_from("ab \n#:`"), max_size=80), st.integers(1, 30))
def test_a_title_is_its_own_title(text: str, max_chars: int) -> None:
    title = make_title(text, max_chars)

    assert make_title(title, max_chars) == title
