"""Merging two memories: nothing of ours is changed, nothing of theirs is lost."""

from hypothesis import given
from hypothesis import strategies as st

from backstory.notes.merge import merge_memories
from backstory.text.markdown.lines import split_bom
from tests.text.markdown.test_outline import texts

OURS = (
    "# Long-term Memory\n\n## Preferences\n- likes tea\n\n## Projects\n### Atlas\n"
    "- uses Postgres\n\n## Notes\nProse.\n"
)


def test_what_is_missing_comes_below_its_headings() -> None:
    theirs = (
        "# Memory\n\nBefore all.\n\n## Preferences\n- Likes tea.\n- likes jazz\n"
        "  - loud\n\n## Projects\n\n### Borealis\n* new\n\n### Atlas\n- uses Postgres\n"
        "- slow\n\n```\ncode\n```\n\n## Family\n- two kids\n"
    )

    assert merge_memories(OURS, theirs) == (
        "# Long-term Memory\n\nBefore all.\n\n## Preferences\n- likes tea\n"
        "- likes jazz\n  - loud\n\n## Projects\n### Atlas\n- uses Postgres\n- slow\n\n"
        "```\ncode\n```\n\n### Borealis\n* new\n\n## Notes\nProse.\n\n"
        "## Family\n- two kids\n",
        6,
    )


def test_a_memory_that_is_missing_is_taken_as_it_is() -> None:
    theirs = "\ufeff" + OURS.replace("\n", "\r\n")

    assert merge_memories("", theirs) == (theirs, 3)


def test_the_same_in_other_words_is_for_a_person_to_judge() -> None:
    merged, added = merge_memories("- likes tea\n", "- the user likes tea\n")

    assert (merged, added) == ("- likes tea\n- the user likes tea\n", 1)


def test_what_is_known_by_a_part_of_an_item_is_not_added() -> None:
    ours = "- Atlas\n  - uses Postgres\n"

    assert merge_memories(ours, "## X\n- uses Postgres\n") == (ours, 0)


@given(texts, texts)
def test_merging_keeps_every_line_and_can_be_repeated(ours: str, theirs: str) -> None:
    merged, added = merge_memories(ours, theirs)

    lines = iter(merged.split("\n"))
    assert not ours.strip() or all(
        line.rstrip() in (other.rstrip() for other in lines)
        for line in ours.split("\n")
    )
    assert merge_memories(merged, ours)[1] == 0 or not ours.strip()
    assert added > 0 or merged == (ours if ours.strip() else theirs)


@given(st.text(), st.text())
def test_any_two_texts_can_be_merged(ours: str, theirs: str) -> None:
    merged, _ = merge_memories(ours, theirs)

    words = set(merged.split())
    assert words >= set(split_bom(ours)[1].split()) or not ours.strip()
