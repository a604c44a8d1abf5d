"""A model's answer is read as a summary, and shown in a log."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.summaries.answer import (
    MAX_ITEM_CHARS,
    MAX_ITEMS,
    MAX_REMEMBERED,
    BadAnswer,
    NewFact,
    SummaryLists,
    from_json,
    join,
    parse_summary,
    to_json,
    to_markdown,
)
from backstory.values.structs import fields
from tests.grid import cases

ANSWER = {
    "topics": ["Dinner in Shibuya"],
    "decisions": ["The user books Sakura Sushi for two."],
    "tasks_done": [],
    "preferences": ["The user likes sushi."],
    "facts": [],
    "remember": [{"topic": "Preferences", "fact": "Likes sushi"}],
}
READ = SummaryLists(
    topics=("Dinner in Shibuya",),
    decisions=("The user books Sakura Sushi for two.",),
    preferences=("The user likes sushi.",),
    remember=(NewFact("Preferences", "Likes sushi"),),
)


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(ANSWER),
        f"Here you are:\n```json\n{json.dumps(ANSWER, indent=2)}\n```\nAnything else?",
        json.dumps(ANSWER | {"mood": "good", "tasks_done": None}),
        json.dumps(ANSWER | {"topics": "Dinner in Shibuya"}),
        json.dumps(ANSWER | {"facts": ["", "  ", 7, {"a": 1}]}),
    ],
)
def test_a_summary_is_read_from_whatever_stands_around_it(answer: str) -> None:
    assert parse_summary(answer) == READ


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "it contains no JSON object"),
        ("I will not do that.", "it contains no JSON object"),
        ('{"topics": ["cut off', "it contains no JSON object"),
        ('{"topics": [}', "its JSON is not valid"),
        ('{"summary": "all fine"}', "none of the lists"),
        ('{"topics": {"a": 1}}', "'topics' is not a list"),
        ('{"remember": [7]}', "an entry of 'remember' is not a fact"),
        ("{" * 100_000 + "}" * 100_000, "its JSON is not valid"),
    ],
)
def test_another_answer_is_refused(answer: str, reason: str) -> None:
    with pytest.raises(BadAnswer, match=reason):
        parse_summary(answer)


@cases(
    ("said", "kept"),
    [
        ("## Long-term Memory", "Long-term Memory"),
        ("- - > # nested", "nested"),
        ("---", ""),
        ("1. first", "first"),
        ("two\nlines\r\nand\tmore", "two lines and more"),
        ("hidden <!-- comment --> here", "hidden < !-- comment -- > here"),
        ("a\x1b[31mred\u202e", "a␛[31mred�"),
        ("x" * 1000, "x" * (MAX_ITEM_CHARS - 1) + "…"),
        ("```", ""),
        ("key sk-ant-api03-" + "a" * 80, "key sk-a[masked]"),
    ],
)
def test_an_item_is_one_plain_line(said: str, kept: str) -> None:
    read = parse_summary(json.dumps({"topics": [said]}))

    assert read == SummaryLists(topics=(kept,) if kept else ())


def test_lists_are_short_and_say_each_thing_once() -> None:
    read = parse_summary(
        json.dumps(
            {
                "facts": ["Same", "same", *(f"fact {n}" for n in range(50))],
                "remember": [f"remember {n}" for n in range(50)],
            }
        )
    )

    assert len(read.facts) == MAX_ITEMS
    assert read.facts[:2] == ("Same", "fact 0")
    assert read.remember == tuple(
        NewFact("Notes", f"remember {n}") for n in range(MAX_REMEMBERED)
    )


texts = st.text(max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*ANSWER, "other"]), json_values))
def test_any_answer_is_read_or_refused(answer: dict[str, object]) -> None:
    try:
        read = parse_summary(json.dumps(answer))
    except BadAnswer:
        return
    assert from_json(to_json(read)) == read
    block = to_markdown(read, "Title")
    assert block == "" or block.startswith("## Title\n\n### ")
    assert sum(line.startswith("#") for line in block.split("\n")) <= len(fields(read))


def test_parts_are_joined_in_order_and_without_repeats() -> None:
    joined = join([READ, SummaryLists(topics=("Dinner in Shibuya", "Trains")), READ])

    assert joined == SummaryLists(
        topics=("Dinner in Shibuya", "Trains"),
        decisions=READ.decisions,
        preferences=READ.preferences,
        remember=READ.remember,
    )


def test_a_log_shows_the_lists_that_hold_something() -> None:
    assert to_markdown(READ, "Dinner (python, 10:05–11:20)") == (
        "## Dinner (python, 10:05–11:20)\n\n"
        "### Topics\n- Dinner in Shibuya\n\n"
        "### Decisions\n- The user books Sakura Sushi for two.\n\n"
        "### Preferences\n- The user likes sushi.\n"
    )
    assert to_markdown(SummaryLists(remember=READ.remember), "Dinner") == ""
