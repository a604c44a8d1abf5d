"""Splitting Markdown into sections, blocks and groups of blocks."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.notes.sections import Section, group_blocks, iter_sections
from tests.grid import cases

# -- sections and headings ---

MEMORY = """\
# Long-term Memory

## Preferences
- Prefers uv over pip
- Writes tests first
  - with pytest

## Interests

## Notes
The cat is called Ada.
"""

DAILY_LOG = """\
# Daily Log - 2026-02-25

Decided to use SQLite.

---

Fixed the parser.

---
"""


@cases(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(" \n\t\n", [], id="blank"),
        pytest.param("# A\n\n## B\n", [], id="headings alone"),
        pytest.param("a\n", [("", "a")], id="no heading"),
        pytest.param("a\n# B\nc", [("", "a"), ("B", "c")], id="before the first"),
        pytest.param(
            "# A\na\n## B\nb\n### C\nc\n## D\nd\n# E\ne",
            [
                ("A", "a"),
                ("A > B", "b"),
                ("A > B > C", "c"),
                ("A > D", "d"),
                ("E", "e"),
            ],
            id="a path of headings",
        ),
        pytest.param(
            "# A\n#### B\nb\n## C\nc", [("A > B", "b"), ("A > C", "c")], id="a leap"
        ),
        pytest.param("## A\na\n# B\nb", [("A", "a"), ("B", "b")], id="upwards"),
        pytest.param("# A\na\n# A\nb", [("A", "a"), ("A", "b")], id="the same twice"),
        pytest.param("#\n## B\nb", [("B", "b")], id="an empty heading"),
        pytest.param("## A `x` ##\na", [("A `x`", "a")], id="closed with signs"),
        pytest.param("#A\n####### B", [("", "#A\n####### B")], id="no headings"),
        pytest.param("A\n=\na\n\nB\n---\nb", [("A", "a"), ("A > B", "b")], id="setext"),
        pytest.param(
            "a\nb\n---\nc", [("", "a\nb", "c")], id="several lines over a rule"
        ),
        pytest.param("a\nb\n===\nc", [("", "a\nb\n===", "c")], id="over equal signs"),
        pytest.param("> a\n---\nb", [("", "> a", "b")], id="a quote over a rule"),
        pytest.param(
            f"# {'x' * 201}\na", [("", f"# {'x' * 201}\na")], id="too long a heading"
        ),
        pytest.param("```\n# a\n```", [("", "```\n# a\n```")], id="in a fence"),
        pytest.param("~~~\n# a\n", [("", "~~~\n# a")], id="in a fence without end"),
        pytest.param("- a\n\n  # b", [("", "a\n\n  # b")], id="in an item"),
        pytest.param("> # a", [("", "> # a")], id="in a quote"),
        pytest.param("<!--\n# a\n-->", [("", "<!--\n# a\n-->")], id="in a comment"),
        pytest.param("    # a", [("", "    # a")], id="in code"),
        pytest.param("# A\r\na\r\n\r\nb\r\n", [("A", "a", "b")], id="Windows"),
        pytest.param(
            MEMORY,
            [
                (
                    "Long-term Memory > Preferences",
                    "Prefers uv over pip",
                    "Writes tests first\n  - with pytest",
                ),
                ("Long-term Memory > Notes", "The cat is called Ada."),
            ],
            id="a memory",
        ),
        pytest.param(
            DAILY_LOG,
            [
                (
                    "Daily Log - 2026-02-25",
                    "Decided to use SQLite.",
                    "Fixed the parser.",
                )
            ],
            id="a daily log",
        ),
    ],
)
def test_a_text_is_split_at_its_headings(
    text: str, expected: list[tuple[str, ...]]
) -> None:
    assert list(iter_sections(text)) == [
        Section(heading, tuple(blocks)) for heading, *blocks in expected
    ]


# -- blocks ---


@cases(
    ("text", "expected"),
    [
        pytest.param("a\nb\n\n\nc", ["a\nb", "c"], id="paragraphs"),
        pytest.param("  a\n   b", ["  a\n   b"], id="indentation stays"),
        pytest.param("- a\n* b\n+ c", ["a", "b", "c"], id="bullets"),
        pytest.param("1. a\n2) b\n10. c", ["1. a", "2) b", "10. c"], id="numbers"),
        pytest.param("- [ ] a\n- [x] b", ["[ ] a", "[x] b"], id="tasks"),
        pytest.param("-\n- b\n-", ["b"], id="items without text"),
        pytest.param("-\n  a", ["  a"], id="text below the marker"),
        pytest.param("- - a\n- 1. b", ["- a", "1. b"], id="only the first marker"),
        pytest.param("-a\n1.b", ["-a\n1.b"], id="no markers"),
        pytest.param("a\n- b", ["a", "b"], id="a list right below a paragraph"),
        pytest.param("- a\nb\n- c", ["a\nb", "c"], id="a lazy line"),
        pytest.param("- a\n\nb", ["a", "b"], id="a paragraph after a list"),
        pytest.param(
            "- a\n\n  b\n\n      c\n- d", ["a\n\n  b\n\n      c", "d"], id="long items"
        ),
        pytest.param(
            "- a\n  - b\n    - c\n\n      d\n  - e\n- f",
            ["a\n  - b\n    - c\n\n      d\n  - e", "f"],
            id="items in items",
        ),
        pytest.param(
            "- a\n  ```\n  - b\n\n  # c\n  ```\n- d",
            ["a\n  ```\n  - b\n\n  # c\n  ```", "d"],
            id="a fence in an item",
        ),
        pytest.param(
            "a\n```py\nb\n\n- c\n```\nd", ["a", "```py\nb\n\n- c\n```", "d"], id="fence"
        ),
        pytest.param("    a\n\n    b\nc", ["    a\n\n    b", "c"], id="indented code"),
        pytest.param(
            "|a|b|\n|-|-|\n|1|2|\n\nc", ["|a|b|\n|-|-|\n|1|2|", "c"], id="a table"
        ),
        pytest.param(
            "|a|\n|-|\n|1|\n---\nb", ["|a|\n|-|\n|1|", "b"], id="a rule below a table"
        ),
        pytest.param("> a\n>\n> - b\nc\n\nd", ["> a\n>\n> - b\nc", "d"], id="a quote"),
        pytest.param("a\n> b\nc\n> d", ["a", "> b\nc\n> d"], id="a quote below a text"),
        pytest.param("<div>\n\na\n\n</div>", ["<div>", "a", "</div>"], id="HTML"),
        pytest.param("[a]: http://b\n", ["[a]: http://b"], id="a link definition"),
        pytest.param("a\n\n---\n***\n_ _ _\nb", ["a", "b"], id="rules"),
        pytest.param("- a\n---\n- b", ["a", "b"], id="a rule in a list"),
        pytest.param(
            "---\nname: a\n\n# b\n---\nc", ["---\nname: a\n\n# b\n---", "c"], id="YAML"
        ),
        pytest.param("---\na: b\n...\nc", ["---\na: b\n...", "c"], id="YAML's own end"),
        pytest.param("---\n\na: b\n\n---\nc", ["a: b", "c"], id="rules are no YAML"),
        pytest.param("---\na: b\n", ["a: b"], id="YAML without an end"),
        pytest.param("a\n\n---\nb: c\n\n---", ["a", "b: c"], id="no YAML further down"),
        pytest.param("\0\n\nb", ["\0", "b"], id="a NUL"),
        pytest.param("\u00a0\n\n\x0c\na", ["a"], id="blanks of other kinds"),
    ],
)
def test_a_section_is_split_into_blocks(text: str, expected: list[str]) -> None:
    assert [block for part in iter_sections(text) for block in part.blocks] == expected


ODD_TEXT = st.text(st.sampled_from("ab1 \n\n\n\t\r#-*+_=>`~|<!/.)[]:\0\u00a0é"))


@given(ODD_TEXT | st.text())
def test_blocks_are_parts_of_the_text_in_its_order(text: str) -> None:
    source, position = text.replace("\r\n", "\n"), 0

    for block in (block for part in iter_sections(text) for block in part.blocks):
        position = source.find(block, position)
        assert block.strip()
        assert position >= 0
        position += len(block)


WITH_A_WORD = """\
W/ W/  W/    W/\tW/- W/* W/1. W/2) W/  - W/    - W/> W/>W/> - W/- > W/# W/## W/- # W
|W/key: W/<b>W/<!-- W/--> W/[x]: W/- ```W/```W/~~~W""".replace("\n", "/").split("/")
WITHOUT = ["", "", "", "---", "===", "***", "```", "~~~", "-", ">", "  ", "-->", "|-|"]


@given(st.lists(st.sampled_from(WITH_A_WORD + WITHOUT), min_size=1))
def test_every_line_is_in_one_block_unless_it_is_a_heading(drawn: list[str]) -> None:
    lines = [line.replace("W", f"w{number}.") for number, line in enumerate(drawn)]

    sections = list(iter_sections("\n".join(lines)))

    kept = words(*(block for section in sections for block in section.blocks))
    headings = [
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if re.match(r" {0,3}#", line) or re.fullmatch(r"-+|=+", below)
    ]
    assert kept == [word for word in words(*lines) if word in set(kept)]
    assert set(words(*lines)) - set(kept) <= set(words(*headings))


def words(*texts: str) -> list[str]:
    return [word for text in texts for word in re.findall(r"w\d+\.", text)]


# Each was quadratic or worse in some parser of Markdown, or costs ours the most.
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="brackets"),
        pytest.param("*" * 100_000, id="stars"),
        pytest.param(">" * 100_000, id="quotes in quotes"),
        pytest.param("> # a\nb\n=\n" * 5_000, id="quotes that look ahead"),
        pytest.param("- " * 50_000 + "x", id="items in items on one line"),
        pytest.param(
            "\n".join(" " * 2 * depth + "- x" for depth in range(400)),
            id="items in items",
        ),
        pytest.param("- ```\n\n" * 5_000, id="fences without end"),
        pytest.param("|a" * 20_000 + "\n" + "|-" * 20_000, id="a wide table"),
        pytest.param("<a " + "a='" * 30_000, id="an endless tag"),
        pytest.param("+ a\n- a\n" * 5_000, id="many lists"),
        pytest.param("# " + "x" * 90_000 + "\n## a\nb" * 5_000, id="a long heading"),
    ],
)
def test_a_hostile_text_takes_no_longer_than_its_size_warrants(text: str) -> None:
    started = time.process_time()

    sections = list(iter_sections(text))

    assert time.process_time() - started < 5
    assert sum(len(section.heading) for section in sections) < 2 * len(text)


# -- cutting a section ---


@cases(
    ("blocks", "max_tokens", "expected"),
    [
        pytest.param([], 1, [], id="nothing"),
        pytest.param(["aaaa", "bb"], 2, [("aaaa", "bb")], id="a line between counts"),
        pytest.param(["aaaa", "bbb"], 2, [("aaaa",), ("bbb",)], id="one byte too many"),
        pytest.param(
            ["a", "b", "c"], 1, [("a", "b"), ("c",)], id="as many as there is room for"
        ),
        pytest.param(["éé"], 1, [("éé",)], id="bytes of UTF-8"),
        pytest.param(["aa\nbb cc\ndd"], 2, [("aa\nbb cc",), ("dd",)], id="at lines"),
        pytest.param(["aaa bbb ccc"], 2, [("aaa bbb",), ("ccc",)], id="at spaces"),
        pytest.param(["a" * 10], 1, [("aaaa",), ("aaaa",), ("aa",)], id="anywhere"),
        pytest.param(["aaéé"], 1, [("aaé",), ("é",)], id="not within a character"),
        pytest.param(["日本語"], 1, [("日",), ("本",), ("語",)], id="wide characters"),
        pytest.param(
            ["```\nx = 1\n\n\n\n\n    y = 2\n```"],
            3,
            [("```\nx = 1",), ("    y = 2",), ("```",)],
            id="indentation stays",
        ),
        pytest.param(
            ["aaaaaa", "b"], 1, [("aaaa",), ("aa",), ("b",)], id="the rest of a block"
        ),
        pytest.param(["\ud800" * 2], 1, [("\ud800",)] * 2, id="half characters"),
    ],
)
def test_a_section_is_cut_into_groups_that_fit(
    blocks: list[str], max_tokens: int, expected: list[tuple[str, ...]]
) -> None:
    section = Section("A", tuple(blocks))

    assert group_blocks(section, max_tokens=max_tokens) == expected


@given(st.lists(ODD_TEXT | st.text(min_size=1)), st.integers(1, 20))
def test_groups_fit_and_hold_every_word(blocks: list[str], max_tokens: int) -> None:
    groups = group_blocks(Section("", tuple(blocks)), max_tokens=max_tokens)

    joined = ["\n\n".join(group) for group in groups]
    sizes = [len(text.encode(errors="surrogatepass")) for text in joined]
    assert [size for size in sizes if size > max_tokens * 4] == []
    assert "".join("".join(joined).split()) == "".join("".join(blocks).split())


@given(st.lists(st.text("ab \n", min_size=1).filter(str.strip)))
def test_blocks_that_fit_are_left_whole(blocks: list[str]) -> None:
    stripped = [block.strip("\n") for block in blocks]

    groups = group_blocks(Section("", tuple(stripped)), max_tokens=10_000)

    assert [block for group in groups for block in group] == stripped


def test_a_large_block_is_cut_in_little_time() -> None:
    started = time.process_time()

    groups = group_blocks(Section("", ("x" * 2_000_000,)), max_tokens=200)

    assert time.process_time() - started < 5
    assert len(groups) == 2_500
