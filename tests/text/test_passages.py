"""Long texts are cut into passages, each about one thing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.passages import PASSAGE_CHARS, cut_passages, find_masked

SENTENCE = "The loans go into a file that is copied every night. "


def cut(text: str) -> list[str]:
    return [text[first:last] for first, last in cut_passages(text)]


def test_a_short_text_is_not_cut() -> None:
    assert cut("a" * PASSAGE_CHARS) == []


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        pytest.param(
            SENTENCE * 6, [SENTENCE * 4, SENTENCE * 2], id="between sentences"
        ),
        pytest.param(
            f"## Why\n\n{SENTENCE}\n## How\n\n" + SENTENCE * 4,
            [f"## Why\n\n{SENTENCE}\n", "## How\n\n" + SENTENCE * 4],
            id="at headings",
        ),
        pytest.param(
            f"- {'a' * 200}\n- {'b' * 200}\n- c\n",
            [f"- {'a' * 200}\n", f"- {'b' * 200}\n- c\n"],
            id="at list items",
        ),
        pytest.param("word " * 60, ["word " * 50, "word " * 10], id="between words"),
        pytest.param("a" * 600, ["a" * 250, "a" * 250, "a" * 100], id="anywhere"),
    ],
)
def test_a_long_text_is_cut(text: str, passages: list[str]) -> None:
    assert cut(text) == passages


@given(
    st.lists(
        st.sampled_from(["word", "Stop. ", "\n", "\n\n", "# ", "- ", " ", "x" * 99]),
        max_size=80,
    )
)
def test_passages_are_all_of_a_text_but_blanks(parts: list[str]) -> None:
    text = "".join(parts)
    passages = cut(text)

    assert all(len(each) <= PASSAGE_CHARS for each in passages)
    if len(text) > PASSAGE_CHARS:
        assert "".join("".join(passages).split()) == "".join(text.split())


def test_a_passage_is_found_again_in_the_masked_text() -> None:
    text = "key SECRET, then the passage and SECRET"
    span = (text.index("the passage"), len(text))

    def mask(some: str) -> str:
        return some.replace("SECRET", "***")

    found = find_masked(span, text, mask)

    assert found is not None
    assert mask(text)[found[0] : found[1]] == "the passage and ***"
    assert find_masked(None, text, mask) is None
