"""MEMORY.md as text: one fact is changed and nothing else, whatever the file has."""

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backstory.errors import BadQuery, FactAmbiguous, FactNotFound
from backstory.notes.facts import (
    MAX_FACT_CHARS,
    Fact,
    add_fact,
    check_fact,
    find_duplicate,
    first_lines,
    get_fact,
    list_facts,
    list_topics,
    remove_fact,
    remove_repeats,
    replace_fact,
    split_facts,
)
from backstory.notes.sections import iter_sections
from backstory.text.markdown.lines import split_bom, split_lines
from backstory.text.markdown.outline import read_outline
from tests.grid import cases
from tests.text.markdown.test_outline import LINES, texts

HOSTILE = [
    "# heading",
    "## Notes",
    "---",
    "***",
    "=",
    "```",
    "~~~ sh",
    "<!-- hidden",
    "text <!-- hidden",
    "<div>",
    "</li></ul>",
    "- x\n- y",
    "1. x",
    "> quote",
    "a\n# heading",
    "a\n\n## heading\n\nb",
    "a\n---\nb",
    "a\n===",
    "a\n```\nb",
    "a\n```\n# code\n```",
    "a\n    code",
    "a\n\tb\n",
    "x\r\n# y",
    "x\u2028# y\x85# z\x0b# w",
    "bell\x07 and \u202eleft",
    "half \ud800",
    "\\# x",
    "| a | b |\n|---|---|",
]
SOME = "# Long-term Memory\n\n## Preferences\n- likes tea\n\n## Notes\n- has two cats\n"


# -- adding ---------------------------------------------------------------------------


def test_a_new_file_has_a_title_and_the_topic() -> None:
    assert add_fact("", "Preferences", "likes tea") == (
        "# Long-term Memory\n\n## Preferences\n- likes tea\n"
    )


def test_a_fact_comes_at_the_end_of_the_list_of_its_topic() -> None:
    assert add_fact(SOME, "preferences", "likes jazz") == (
        "# Long-term Memory\n\n## Preferences\n- likes tea\n- likes jazz\n\n"
        "## Notes\n- has two cats\n"
    )


def test_a_topic_that_is_missing_comes_at_the_end() -> None:
    assert add_fact(SOME, "Projects", "Atlas") == SOME + "\n## Projects\n- Atlas\n"


def test_a_fact_of_several_lines_is_one_item() -> None:
    added = add_fact("", "Notes", "Deploy:\n- build\n- push\n\nThen wait.")

    assert added == (
        "# Long-term Memory\n\n## Notes\n"
        "- Deploy:\n  - build\n  - push\n\n  Then wait.\n"
    )
    assert [fact.text for fact in list_facts(added)] == [
        "Deploy:\n- build\n- push\n\nThen wait."
    ]


@cases(
    ("text", "topic", "expected"),
    [
        pytest.param("## Notes", "Notes", "## Notes\n- new", id="no final newline"),
        pytest.param(
            "## Notes\r\n- a\r\n", "Notes", "## Notes\r\n- a\r\n- new\r\n", id="CRLF"
        ),
        pytest.param(
            "\ufeff## Notes\n- a\n", "Notes", "\ufeff## Notes\n- a\n- new\n", id="BOM"
        ),
        pytest.param("\ufeff", "Notes", "\ufeff# Long-term Memory\n\n## Notes\n- new\n",
                     id="nothing but a BOM"),
        pytest.param(
            "## Notes\n* a\n  * b\n", "Notes", "## Notes\n* a\n  * b\n* new\n",
            id="stars",
        ),
        pytest.param(
            "## Notes\n  - a\n", "Notes", "## Notes\n  - a\n  - new\n", id="indented"
        ),
        pytest.param(
            "## Notes\n1. a\n", "Notes", "## Notes\n1. a\n- new\n", id="numbers"
        ),
        pytest.param(
            "## Notes\nProse.\n\n## B\n", "Notes",
            "## Notes\nProse.\n\n- new\n\n## B\n", id="prose",
        ),
        pytest.param(
            "## Notes\n- a\n\nProse.\n", "Notes", "## Notes\n- a\n- new\n\nProse.\n",
            id="a list, then prose",
        ),
        pytest.param(
            "## Notes\n- a\n### Deep\n- b\n", "Notes",
            "## Notes\n- a\n- new\n### Deep\n- b\n", id="a heading below",
        ),
        pytest.param(
            "```\n## Notes\n```\n", "Notes",
            "```\n## Notes\n```\n\n## Notes\n- new\n", id="a heading in a fence",
        ),
        pytest.param(
            "<!--\n## Notes\n-->\n", "Notes",
            "<!--\n## Notes\n-->\n\n## Notes\n- new\n", id="a heading in a comment",
        ),
        pytest.param(
            "x\n\n```\ncode\n", "Notes",
            "x\n\n## Notes\n-   new\n\n```\ncode\n", id="a fence that nobody closed",
        ),
        pytest.param(
            "## **Notes:** ##\n", "notes", "## **Notes:** ##\n- new\n", id="emphasis"
        ),
        pytest.param("# Notes\n", "Notes", "# Notes\n- new\n", id="of the first level"),
        pytest.param(
            "Notes\n-----\n- a\n", "Notes", "Notes\n-----\n- a\n- new\n",
            id="underlined",
        ),
        pytest.param(
            "# Notes\n- a\n## Notes\n- b\n", "Notes",
            "# Notes\n- a\n## Notes\n- b\n- new\n", id="the second level goes before",
        ),
        pytest.param(
            "### Notes\n", "Notes", "### Notes\n\n## Notes\n- new\n", id="too deep"
        ),
        pytest.param("## C\n", "C#", "## C\n\n## C#\n- new\n", id="signs of a name"),
        pytest.param("x\n", " ## \n", "x\n\n## Notes\n- new\n", id="no name at all"),
        pytest.param(
            "x\n", "a\n# b", "x\n\n## a # b\n- new\n", id="a name of two lines"
        ),
        pytest.param(
            "## Notes\n1. a\n\n  apart\n", "Notes",
            "## Notes\n1. a\n-   new\n\n  apart\n", id="what would become part of it",
        ),
    ],
)  # fmt: skip
def test_what_is_there_stays(text: str, topic: str, expected: str) -> None:
    assert add_fact(text, topic, "new") == expected


@given(texts, st.sampled_from(HOSTILE), st.sampled_from(["\n", "\r\n"]))
def test_adding_changes_no_other_line_and_makes_nothing_else_of_it(
    text: str, fact: str, eol: str
) -> None:
    text = "## Notes\n" * (len(text) % 3 == 0) + text
    text = text.replace("\n", eol)

    added = add_fact(text, "Notes", fact)

    was, now = read_outline(text), read_outline(added)
    more = len(now.lines) - len(was.lines)
    bare_was = [line.rstrip("\r\n") for line in was.lines]
    bare_now = [line.rstrip("\r\n") for line in now.lines]
    places = [
        at
        for at in range(len(bare_was) + 1)
        if bare_now == bare_was[:at] + bare_now[at : at + more] + bare_was[at:]
    ]
    assert any(was.is_same_around(now, at, at) for at in places)
    assert len(list_facts(added)) == len(list_facts(text)) + 1


@given(texts, st.sampled_from(HOSTILE))
def test_what_is_added_is_found_and_can_be_taken_away(text: str, fact: str) -> None:
    added = add_fact(text, "New topic", fact)
    assume(text.count(fact) == 0)

    assert find_duplicate(added, fact) is not None
    removed = remove_fact(added, fact)

    expected = add_fact(text, "New topic", "x").replace("-   x", "").replace("- x", "")
    assert removed.split() == expected.split()


ordinary = st.lists(
    st.sampled_from(
        [
            "## Notes\n- a\n",
            "## Notes\n",
            "## Notes\n\n- a\n\n- b\n",
            "## Notes\nProse.\n\n",
            "## Notes\nProse.\nMore.\n",
            "## Notes\n\n```\ncode\n```\n",
            "# Title\n\n",
            "## B\n* x\n  y\n",
            "\n",
            "Before.\n\n",
        ]
    ),
    max_size=5,
).map("".join)


@given(ordinary, st.sampled_from(HOSTILE), st.booleans(), st.booleans())
def test_adding_and_taking_away_gives_the_same_bytes(
    text: str, fact: str, is_dos: bool, has_no_end: bool
) -> None:
    text += "## Notes\n"
    text = text.removesuffix("\n") if has_no_end else text
    text = "\ufeff" + text.replace("\n", "\r\n") if is_dos else text

    assert remove_fact(add_fact(text, "Notes", fact), fact) == text


@cases("fact", HOSTILE)
def test_a_hostile_fact_is_one_block_to_the_search_as_well(fact: str) -> None:
    added = add_fact(SOME + "\n## Last\n- end\n", "Notes", fact)

    sections = list(iter_sections(added))
    assert [section.heading for section in sections] == [
        "Long-term Memory > Preferences",
        "Long-term Memory > Notes",
        "Long-term Memory > Last",
    ]
    assert len(sections[1].blocks) == 2
    assert "<!--" not in added.replace("\\<!--", "")
    assert "\x07" not in added
    assert "\u202e" not in added


@pytest.mark.parametrize("fact", ["", "  \n", "\u200b", "- ", "\u2028"])
def test_a_fact_says_something(fact: str) -> None:
    with pytest.raises(BadQuery, match="the fact is empty"):
        check_fact(fact)


def test_a_fact_is_not_too_long() -> None:
    assert check_fact("x" * MAX_FACT_CHARS) == "x" * MAX_FACT_CHARS
    with pytest.raises(BadQuery, match="5,001 characters; the limit is 5,000"):
        check_fact("x" * (MAX_FACT_CHARS + 1))


# -- looking --------------------------------------------------------------------------


def test_facts_have_topics_and_lines() -> None:
    text = (
        "\ufeff# Long-term Memory\r\n- loose\r\n## Projects\r\n### Atlas\r\n"
        "- uses Postgres\r\n  - version 16\r\n- slow\r\n"
    )

    assert list_facts(text) == [
        Fact("Long-term Memory", "loose", 2),
        Fact("Projects > Atlas", "uses Postgres\n- version 16", 5),
        Fact("Projects > Atlas", "slow", 7),
    ]
    assert list_topics(text) == ["Projects"]


def test_the_first_lines_are_so_many() -> None:
    assert first_lines("\ufeffa\r\nb\nc", 2) == "a\r\nb\n"
    assert first_lines("x\n" * 300).count("\n") == 200
    assert first_lines("", 5) == ""


def test_duplicates_are_looked_for_in_items_their_items_and_paragraphs() -> None:
    text = "Prose that says much.\n\n- Atlas\n  - uses Postgres\n\n```\n- code\n```\n"

    assert find_duplicate(text, "uses postgres") == "uses Postgres"
    assert find_duplicate(text, "- prose that says much") == "Prose that says much."
    assert find_duplicate(text, "Atlas - uses Postgres") == "Atlas\n- uses Postgres"
    assert find_duplicate(text, "code") is None


def test_a_list_is_several_facts_and_anything_else_is_one() -> None:
    assert split_facts("- a\n- b\n  c\n-\n") == [Fact("", "a", 1), Fact("", "b\nc", 2)]
    assert split_facts("## Notes\n- a") == [Fact("Notes", "a", 2)]
    assert split_facts("Both:\n- a\n- b") == [Fact("", "Both:\n- a\n- b", 1)]
    assert split_facts("a") == [Fact("", "a", 1)]


# -- changing -------------------------------------------------------------------------

NESTED = (
    "## Projects\n- Atlas\n  - uses  Postgres\n    since May\n  - slow\n- Borealis\n"
)


@cases(
    ("text", "old", "new", "expected"),
    [
        pytest.param("- likes tea\n", "likes tea", "likes jazz", "- likes jazz\n",
                     id="an item"),
        pytest.param("- likes   tea\n", "- likes tea", "x", "- x\n",
                     id="whatever the spaces and the bullet"),
        pytest.param("- a\n  b\n- c\n", "a b", "x", "- x\n- c\n", id="all its lines"),
        pytest.param("* a\r\n* b", "b", "x\ny", "* a\r\n* x\r\n  y",
                     id="with its bullet and line ends"),
        pytest.param(NESTED, "Atlas", "Apollo", NESTED.replace("Atlas", "Apollo"),
                     id="what is listed in it stays"),
        pytest.param(NESTED, "uses Postgres since May", "uses SQLite",
                     "## Projects\n- Atlas\n  - uses SQLite\n  - slow\n- Borealis\n",
                     id="an item in another"),
        pytest.param("- a\n  - b\n", "a\n- b", "c", "- c\n", id="all that is in it"),
        pytest.param("- likes tea, mostly\n", "tea", "jazz", "- likes jazz, mostly\n",
                     id="words in it"),
        pytest.param("- tea\n- green tea\n", "tea", "x", "- x\n- green tea\n",
                     id="the item that says no more goes before"),
        pytest.param("Prose of mine.\n", "of mine", "of ours", "Prose of ours.\n",
                     id="words of a paragraph"),
        pytest.param("- a b c\n", "b", "x\n# y", "- a x\n  \\# y c\n", id="more lines"),
        pytest.param("- likes tea\n", "likes tea", "", "", id="nothing instead"),
        pytest.param("- likes tea, mostly\n", ", mostly", "", "- likes tea\n",
                     id="nothing instead of words"),
        pytest.param("- a\n  b\n", "a", " ", "- b\n", id="nothing instead of a line"),
        pytest.param("one\ntwo\n", "one", "", "two\n", id="nothing for the first"),
        pytest.param("- \\# x\n", "# x", "y", "- y\n", id="what was escaped"),
        pytest.param("x # y\n", "x", "", "\\# y\n", id="no heading comes of it"),
        pytest.param("- 我喜欢喝茶\n", "喝茶", "咖啡", "- 我喜欢咖啡\n",
                     id="a script without spaces"),
    ],
)  # fmt: skip
def test_a_fact_is_replaced(text: str, old: str, new: str, expected: str) -> None:
    assert replace_fact(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        pytest.param("- a\n- b\n  more\n\n  still\n- c\n", "b more still", "- a\n- c\n",
                     id="all its lines"),
        pytest.param(NESTED, "Atlas", "## Projects\n- Borealis\n",
                     id="with what is listed in it"),
        pytest.param(NESTED, "slow", NESTED.replace("  - slow\n", ""),
                     id="one that is in another"),
        pytest.param("- likes green tea\n- b\n", "green", "- b\n",
                     id="by words that only it has"),
        pytest.param("## Notes\n\n- a\n\n## B\n", "a", "## Notes\n\n## B\n",
                     id="the topic stays"),
        pytest.param("para\n- a\n---\n", "a", "para\n\n---\n", id="no heading is made"),
        pytest.param("Prose of mine.\n", "of mine", "Prose.\n", id="words of prose"),
    ],
)  # fmt: skip
def test_a_fact_is_taken_away(text: str, fact: str, expected: str) -> None:
    assert remove_fact(text, fact) == expected


def test_what_goes_is_told_before() -> None:
    assert get_fact(NESTED, "Postgres") == "uses  Postgres\nsince May"
    assert get_fact("Prose of mine.\n", "of mine") == "of mine"


@pytest.mark.parametrize(
    ("text", "old"),
    [
        pytest.param(SOME, "likes coffee", id="another fact"),
        pytest.param(SOME, "likes te", id="half a word"),
        pytest.param(SOME, "Preferences", id="a heading"),
        pytest.param("```\ncode\n```\n", "code", id="code"),
        pytest.param("<!-- hidden -->\n", "hidden", id="a comment"),
        pytest.param("- a\n- b\n", "a\n- b", id="two facts"),
        pytest.param("", "x", id="nothing there"),
    ],
)
def test_what_is_not_there_is_not_found(text: str, old: str) -> None:
    with pytest.raises(FactNotFound):
        replace_fact(text, old, "x")
    with pytest.raises(FactNotFound):
        remove_fact(text, old)


def test_the_nearest_facts_are_named() -> None:
    with pytest.raises(FactNotFound) as raised:
        remove_fact(SOME, "likes black tea")

    assert str(raised.value) == "MEMORY.md does not say 'likes black tea'"
    assert raised.value.near == ("likes tea",)
    assert raised.value.hint == "did you mean 'likes tea'?"


def test_what_fits_several_facts_is_refused_with_some_of_them() -> None:
    text = "- tea at one\n- tea at two\n- tea at three\n- tea at four\n"

    with pytest.raises(FactAmbiguous) as raised:
        replace_fact(text, "tea at", "x")

    assert str(raised.value) == "'tea at' matches 4 places in MEMORY.md"
    assert (raised.value.count, raised.value.matches) == (
        4,
        ("tea at one", "tea at two", "tea at three"),
    )


def test_two_items_that_say_the_same_are_ambiguous() -> None:
    with pytest.raises(FactAmbiguous, match="'a' matches 2 places"):
        remove_fact("- a\n- b\n- a\n", "a")


def test_nothing_to_look_for_is_refused() -> None:
    with pytest.raises(BadQuery, match="the text to look for is empty"):
        replace_fact(SOME, " - ", "x")


def test_a_change_that_would_swallow_what_follows_is_refused() -> None:
    with pytest.raises(BadQuery, match="would alter the Markdown"):
        replace_fact("- # a\napart\n", "#", "")


@given(texts, st.sampled_from(LINES), st.sampled_from([*HOSTILE, ""]))
def test_no_change_makes_or_loses_a_heading(text: str, old: str, new: str) -> None:
    was = [(each.level, each.name) for each in read_outline(text).headings]

    for changed in (_try(replace_fact, text, old, new), _try(remove_fact, text, old)):
        now = [(each.level, each.name) for each in read_outline(changed).headings]
        assert now == was


def _try(change: Callable[..., str], text: str, *values: str) -> str:
    """The changed text, or the old one if it may not be changed."""
    try:
        return change(text, *values)
    except (FactNotFound, FactAmbiguous, BadQuery):
        return text


@given(st.text(), st.text(), st.text())
def test_no_text_raises_anything_else(text: str, old: str, new: str) -> None:
    _try(add_fact, text, old, new)
    _try(replace_fact, text, old, new)
    _try(remove_fact, text, old)
    find_duplicate(text, new)
    split_facts(text)


@given(st.text())
def test_any_text_keeps_its_beginning(text: str) -> None:
    assert split_bom(text)[1].startswith(first_lines(text, 3))
    assert "".join(split_lines(text)) == text


@pytest.mark.parametrize(
    ("text", "expected", "removed"),
    [
        pytest.param("- a\n" * 400, "- a\n", ["a"] * 399, id="many"),
        pytest.param("- a\n\n- a\n\n- b\n", "- a\n\n- b\n", ["a"], id="apart"),
        pytest.param("- a\n- b\n- a\n- b", "- a\n- b", ["a", "b"], id="no last end"),
        pytest.param(
            "- a\n\n- a\n- a\n\ntext\n", "- a\n\ntext\n", ["a", "a"], id="blank lines"
        ),
        pytest.param(
            "1. a\n\n- b\n1. a\n", "1. a\n\n- b\n", ["a"], id="in another list"
        ),
    ],
)
def test_facts_that_repeat_another_are_removed(
    text: str, expected: str, removed: list[str]
) -> None:
    assert remove_repeats(text) == (expected, removed)
