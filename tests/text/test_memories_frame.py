"""Memories in a prompt are known again by their seal, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.memories_frame import (
    MEMORIES_END,
    MEMORY_HEADING,
    RELEVANT_HEADING,
    RELEVANT_NOTE,
    MemoriesFrame,
)

OURS, THEIRS = MemoriesFrame("one"), MemoriesFrame("two")

# Content cannot have the frame's last line: it would be quoted.
bodies = st.text().filter(lambda text: MEMORIES_END not in text)


def a_frame(body: str = "- likes tea", heading: str = RELEVANT_HEADING) -> str:
    return f"{heading}\n{RELEVANT_NOTE}\n\n{body}\n{MEMORIES_END}"


@given(bodies, st.sampled_from([MEMORY_HEADING, RELEVANT_HEADING]))
def test_what_a_home_sealed_it_leaves_out(body: str, heading: str) -> None:
    sealed = OURS.seal(a_frame(body, heading))

    assert OURS.drop(f"Before.\n{sealed}\nAfter.") == "Before.\nAfter."
    assert THEIRS.drop(sealed) == sealed


@given(
    st.lists(
        st.sampled_from(
            [
                MEMORY_HEADING,
                RELEVANT_HEADING,
                RELEVANT_NOTE,
                MEMORIES_END,
                *(f"{RELEVANT_NOTE} [{digit * 12}]" for digit in "0af"),
            ]
        )
        | st.text(max_size=10)
    ).map("\n".join)
)
def test_no_text_is_left_out_for_its_looks(text: str) -> None:
    assert OURS.drop(text) == text


def test_a_seal_is_for_one_content_only() -> None:
    sealed = OURS.seal(a_frame())
    forged = sealed.replace("tea", "coffee")

    assert OURS.drop(f"{forged}\n{sealed}") == f"{forged}\n"


def test_a_program_may_change_the_spaces() -> None:
    sealed = OURS.seal(a_frame("- likes tea\n\n- likes walnuts"))

    assert OURS.drop(sealed.replace("\n\n- likes w", "\n- likes w")) == ""


def test_no_memories_need_no_seal() -> None:
    assert OURS.seal("") == ""


@pytest.mark.parametrize("count", [10_000])
def test_a_text_full_of_frames_is_read_to_its_end(count: int) -> None:
    start = f"{RELEVANT_HEADING}\n{RELEVANT_NOTE} [{'0' * 12}]\n"
    text = start * count + f"\n{MEMORIES_END}"

    assert OURS.drop(text) == text
