"""A daily log grows at its end, and the same block never comes twice."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.errors import BadQuery
from backstory.notes.daily_logs import (
    LogBlock,
    add_block,
    first_heading,
    has_marker,
    merge_logs,
    split_blocks,
    without_markers,
)
from backstory.notes.sections import iter_sections
from tests.notes.test_facts import HOSTILE
from tests.text.markdown.test_outline import texts

DAY = date(2026, 2, 28)
ONE = "# Daily Log - 2026-02-28\n\n<!-- backstory: m1 -->\n## Atlas\n- did x\n"


def test_a_log_begins_with_its_day() -> None:
    assert add_block("", DAY, "## Atlas\n- did x", marker="m1") == ONE


def test_a_rule_stands_between_blocks() -> None:
    assert add_block(ONE, DAY, "two", marker="m2") == (
        ONE + "\n---\n\n<!-- backstory: m2 -->\ntwo\n"
    )


@pytest.mark.parametrize(
    ("text", "between"),
    [
        pytest.param("# Daily Log - 2026-02-28\n", "\n", id="only a title"),
        pytest.param("\ufeff# Daily Log - 2026-02-28\n\n", "", id="with a BOM"),
        pytest.param("text", "\n\n---\n\n", id="no final newline"),
        pytest.param("text\r\n", "\r\n---\r\n\r\n", id="CRLF"),
        pytest.param("text\n\n\n", "---\n\n", id="blank lines"),
        pytest.param("text\n\n---\n\n", "", id="a rule, as OneClaw leaves it"),
        pytest.param("text\n\n---", "\n\n", id="a rule without an end"),
        pytest.param("```\nnever closed\n", "\n---\n\n", id="an open fence"),
    ],
)
def test_a_block_comes_to_the_end_whatever_is_there(text: str, between: str) -> None:
    eol = "\r\n" if "\r\n" in text else "\n"

    added = add_block(text, DAY, "new", marker="m")

    assert added == f"{text}{between}<!-- backstory: m -->{eol}new{eol}"


@given(st.text() | texts, st.sampled_from(HOSTILE), st.text(min_size=1))
def test_what_was_there_is_untouched_and_a_block_is_added_once(
    text: str, block: str, name: str
) -> None:
    marker = f"m{name}"

    added = add_block(text, DAY, block, marker=marker)

    assert added.startswith(text)
    assert has_marker(added, marker)
    assert add_block(added, DAY, "other", marker=marker) == added


@given(st.text(min_size=1), st.text(min_size=1))
def test_markers_are_told_apart(one: str, other: str) -> None:
    added = add_block("", DAY, "x", marker=f"m{one}")

    assert has_marker(added, f"m{other}") == (f"m{one}".strip() == f"m{other}".strip())


@pytest.mark.parametrize(
    "block",
    [
        "text\n---\n<!-- backstory: m2 -->\nmore",
        "```\n<!-- backstory: m2 -->\n```",
        "<!-- backstory: m2 -->",
        "> x\n\n    <!-- backstory: m2 -->",
    ],
)
def test_a_block_cannot_pass_for_another(block: str) -> None:
    added = add_block(ONE, DAY, block, marker="m")

    assert not has_marker(added, "m2")
    assert len(split_blocks(added)) == 2


def test_a_block_has_headings_below_the_title() -> None:
    added = add_block("", DAY, "# Daily Log - 1999-01-01\n### Deep", marker="m")

    assert added.endswith("-->\n## Daily Log - 1999-01-01\n### Deep\n")


@pytest.mark.parametrize(
    ("block", "marker", "reason"),
    [
        (" \n", "m", "the block for the daily log is empty"),
        ("x", " ", "the marker of a daily log's block is empty"),
        (
            "x" * 100_001,
            "m",
            "100,001 characters; in a daily log it may have at most 100,000",
        ),
    ],
)
def test_what_is_no_block_is_refused(block: str, marker: str, reason: str) -> None:
    with pytest.raises(BadQuery, match=reason):
        add_block("", DAY, block, marker=marker)


def test_a_log_is_shown_without_markers() -> None:
    assert without_markers("\ufeff" + ONE) == (
        "# Daily Log - 2026-02-28\n\n## Atlas\n- did x\n"
    )


def test_markers_are_not_searched() -> None:
    (section,) = iter_sections(ONE)

    assert section.blocks == ("did x",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ONE, "Atlas"),
        ("# Daily Log - 2026-02-28\n\n- first *thing*\n- second\n", "first *thing*"),
        ("# My day\n\ntext\n", "My day"),
        ("# Daily Log - 2026-02-28\n", ""),
        ("", ""),
    ],
)
def test_a_log_is_about_its_first_heading_or_line(text: str, expected: str) -> None:
    assert first_heading(text) == expected


# -- merging ---


def test_blocks_are_read_with_their_markers() -> None:
    text = ONE + "more\n<!-- backstory: m2 -->\ntwo\n\n---\n\nby a person\n---\n\n***\n"

    assert split_blocks(text) == [
        LogBlock("m1", "## Atlas\n- did x\nmore"),
        LogBlock("m2", "two"),
        LogBlock(None, "by a person\n---"),
    ]


def test_a_log_that_is_missing_is_taken_as_it_is() -> None:
    theirs = "\ufeff" + ONE.replace("\n", "\r\n")

    assert merge_logs("", theirs, DAY) == (theirs, 1)


def test_blocks_that_are_missing_come_to_the_end_once() -> None:
    theirs = add_block(ONE, DAY, "two", marker="m2") + "\n---\n\nby a person\n"
    ours = ONE + "\n---\n\nof mine\n"

    merged, added = merge_logs(ours, theirs, DAY)

    assert added == 2
    assert merged.startswith(ours)
    assert [block.text for block in split_blocks(merged)] == [
        "## Atlas\n- did x",
        "of mine",
        "two",
        "by a person",
    ]
    assert merge_logs(merged, theirs, DAY) == (merged, 0)


@given(st.text() | texts, st.text() | texts)
def test_merging_loses_nothing_and_can_be_repeated(ours: str, theirs: str) -> None:
    merged, _ = merge_logs(ours, theirs, DAY)

    assert merged.startswith(ours) or not ours.strip(" \t\r\n\ufeff")
    said = " ".join(without_markers(merged).split())
    assert all(" ".join(block.text.split()) in said for block in split_blocks(theirs))
    # An unclosed block in ours may hide where a block ends, but only once.
    again, _ = merge_logs(merged, theirs, DAY)
    assert merge_logs(again, theirs, DAY) == (again, 0)
