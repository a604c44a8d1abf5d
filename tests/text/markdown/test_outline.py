"""The outline of a text agrees with Markdown, and loses none of the text."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from backstory.text.markdown.lines import splice, split_lines
from backstory.text.markdown.outline import Block, BlockKind, Heading, read_outline

# Lines that mean one thing here and another there.
LINES = [
    *("", "", "text", "more text", "lazy", "# A", "## B", "### C c", "## ", "#x"),
    *("- item", "- ", "-", "* star", "+ plus", "1. one", "2) two", "1.   wide"),
    *("  - nested", "    - deep", "\t- tab", "   - three", "- # h", "- ```"),
    *("  cont", "    four", "     five", "      six", "  # in item", "  > q"),
    *("```", "~~~", "  ```", "---", "===", "***", "   ---", "> quote"),
    *("<!-- c", "-->", "<!-- c -->", "   ## B"),
]
texts = st.lists(st.sampled_from(LINES), max_size=8).map("\n".join)


@given(texts)
def test_headings_and_items_are_those_of_markdown(text: str) -> None:
    outline = read_outline(text)

    tokens = MarkdownIt("commonmark").parse(text)
    headings = [
        (token.map[0], int(token.tag[1:]))
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
        # Several underlined lines are a paragraph to us.
        if "\n" not in inline.content
    ]
    items = {t.map[0] for t in tokens if t.type == "list_item_open" and t.map}
    assert [(each.first, each.level) for each in outline.headings] == headings
    assert {each.first for each in outline.items} == items


@given(st.text() | texts)
def test_the_lines_of_any_text_are_the_text(text: str) -> None:
    outline = read_outline(text)

    assert "".join(outline.lines) == text
    ends = [block.end for block in outline.blocks]
    starts = [block.first for block in outline.blocks]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_blocks_are_told_apart() -> None:
    text = (
        "---\ntitle: x\n# no heading\n---\npara\n\n- item\n  more\n\n  still\n- next\n"
        "***\n```\n## code\n```\n<!-- a\n## b\n-->\n\n    indented\n\n    code\n\n"
        "Under\n=====\n> quote\n"
    )

    outline = read_outline(text)

    assert outline.headings == [Heading(23, 25, 1, "Under")]
    assert outline.rules == [11]
    assert outline.blocks == [
        Block(BlockKind.FRONT_MATTER, 0, 4),
        Block(BlockKind.TEXT, 4, 5),
        Block(BlockKind.ITEM, 6, 10),
        Block(BlockKind.ITEM, 10, 11),
        Block(BlockKind.CODE, 12, 15),
        Block(BlockKind.HTML, 15, 18),
        Block(BlockKind.CODE, 19, 22),
        Block(BlockKind.TEXT, 25, 26),
    ]


@pytest.mark.parametrize("opening", ["```\ncode\n\n## x", "<!-- a\n\n## x", "~~~"])
def test_what_nobody_closed_goes_on_to_the_end(opening: str) -> None:
    outline = read_outline(f"text\n\n{opening}\n- item\n")

    assert outline.headings == []
    assert [block.is_open for block in outline.blocks] == [False, True]


def test_an_item_knows_its_own_text_from_what_is_listed_in_it() -> None:
    outline = read_outline("- one\n  goes on\n\n  - two\n    - three\n  - four\n")

    assert [
        (item.first, item.head_end, item.end, item.depth) for item in outline.items
    ] == [(0, 2, 6, 0), (3, 4, 5, 1), (4, 5, 5, 2), (5, 6, 6, 1)]


@given(texts, st.data())
def test_other_lines_in_a_place_leave_the_rest(text: str, data: st.DataObject) -> None:
    lines = split_lines(text)
    first = data.draw(st.integers(0, len(lines)))
    end = data.draw(st.integers(first, len(lines)))

    changed = splice(lines, first, end, ["new"])

    assert changed.startswith("".join(lines[:first]).rstrip("\n"))
    assert changed.endswith("".join(lines[end:]))
    assert changed.endswith("\n") == (not lines or text.endswith("\n"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("- a\n" * 50_000, id="items"),
        pytest.param("- " * 200_000, id="markers"),
        pytest.param("#" * 200_000, id="number signs"),
        pytest.param("# a" + " " * 200_000 + "b", id="spaces"),
        pytest.param("".join(" " * i + "- x\n" for i in range(600)), id="nested"),
        pytest.param("<!--" * 50_000, id="comments"),
        pytest.param("`" * 200_000, id="backticks"),
    ],
)
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()

    read_outline(text)

    assert time.process_time() - started < 5
