"""What reads foreign text takes time in proportion to it, whatever the text is.

Each function is given texts that cost some parser of Markdown, some search for secrets
or some other reader dearly; one four times as long may take about four times as long.
"""

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from datetime import date

import pytest

from backstory.errors import BackstoryError
from backstory.notes import daily_logs, duplicates, facts
from backstory.notes.merge import merge_memories
from backstory.notes.sections import group_blocks, iter_sections
from backstory.render.hit_parts import cut_message, mask_lines
from backstory.render.layout import wrap_to_width
from backstory.summaries.answer import BadAnswer, parse_object, tidy_line
from backstory.text import (
    dates,
    envelope,
    excerpts,
    own_calls,
    private,
    prompt_markup,
    redaction,
    terminal,
    titles,
    tokens,
    words,
)
from backstory.text.markdown import escape
from backstory.text.markdown.outline import read_outline
from backstory.text.memories_frame import MemoriesFrame
from backstory.text.query import parse_query, parse_words
from tests.chance import SOAK
from tests.growth import is_linear

MAX_LENGTH = 64_000 if SOAK else 4_000

DAY = date(2026, 2, 25)
FRAME = MemoriesFrame("a home")
QUERY = parse_words('a b token "a b" 中文 parseJson foo/bar.py')


def count_groups(text: str) -> int:
    return sum(len(group_blocks(each, max_tokens=200)) for each in iter_sections(text))


READERS: dict[str, Callable[[str], object]] = {
    "mask secrets": redaction.mask_secrets,
    "drop private": private.drop_private,
    "drop injected": FRAME.drop,
    "own call": lambda text: own_calls.is_own_tool_call("bash", text + " backstory"),
    "mask lines": lambda text: mask_lines(text, redaction.mask_secrets),
    "cut message": lambda text: cut_message(text, QUERY, 300),
    "wrap": lambda text: list(wrap_to_width(text, 80)),
    "excerpt": lambda text: excerpts.excerpt(text, QUERY, max_chars=500),
    "find words": lambda text: excerpts.find_words(text, QUERY),
    "find match": lambda text: excerpts.find_match(text, "zz"),
    "index words": words.index_words,
    "phrase words": words.phrase_words,
    "word set": words.word_set,
    "fold": words.fold,
    "parse query": lambda text: parse_query.__wrapped__(text, today=DAY),
    "find days": lambda text: dates.find_days(text, today=DAY),
    "parse days": lambda text: dates.parse_days(text, today=DAY),
    "estimate tokens": tokens.estimate_tokens,
    "most tokens": tokens.most_tokens,
    "quote after label": envelope.quote_after_label,
    "disarm": envelope.disarm,
    "quote lines": envelope.quote_lines,
    "label": lambda text: envelope.label(text, 100),
    "name": envelope.name_label,
    "sections": count_groups,
    "outline": read_outline,
    "list facts": facts.list_facts,
    "split facts": facts.split_facts,
    "known fact": lambda text: facts.find_duplicate(text, "the cat is called Ada"),
    "add fact": lambda text: facts.add_fact(text, "Notes", "the cat is called Ada"),
    "replace fact": lambda text: facts.replace_fact(text, "a", "b"),
    "remove fact": lambda text: facts.remove_fact(text, "a"),
    "remove repeats": facts.remove_repeats,
    "merge": lambda text: merge_memories("# Memory\n\n## topic 2\n- a fact\n", text),
    "merge into": lambda text: merge_memories(text, distinct_topics(3_000)),
    "split log": daily_logs.split_blocks,
    "add to log": lambda text: daily_logs.add_block("", DAY, text, marker="m"),
    "normalize fact": duplicates.normalize_fact,
    "fact lines": escape.to_fact_lines,
    "block lines": escape.to_block_lines,
    "model's answer": parse_object,
    "model's line": tidy_line,
    "split prompt": prompt_markup.split_prompt,
    "make title": lambda text: titles.make_title(text, 80),
    "strip terminal codes": terminal.strip_terminal_codes,
}

# Repeated from the first character to the last.
UNITS = (
    *("# a\n", "# a\n\nx\n", "a\n---\n", "---\n", "- a\n", "  - a\n", "- a\n\n\n"),
    *("1. a\n", "* ", "- ```\n", "```\n", "~~~a\n", "`a ", "`", "> a\n", ">", "> > "),
    *("[", "[a](", "|", "|a|b|\n", "    a\n", "# a\n- b\n> c\n", "\n", " \n", "a\n"),
    *("<!-- ", "-->", "<!-- backstory: x -->\n", "<a\n", "<a>\n", "<script>", "\\"),
    *("token=1", "token=1(", "PRIVATE KEY AAAAAAAA\n", "sk-", "://a:b", "A B "),
    *("<private>", "</private>", "(End of memories.)\n", "User: a\n", "a…\n", "…"),
    *("{", "}", '"a" ', "today ", "1.", "C++ ", "aB", "a", " ", "\t", "a\n\n"),
    *("中", "か ", "é", "a\u0301", "\u0301", "\u200b", "\U0001f600", "\r", "\0"),
    *("<bash-input>a</bash-input>", "<ide_selection>", "</ide_selection>\n"),
    *("<bash-stdout></bash-stdout>", "<ide_selection>\n</ide_selection>\n"),
    *("\x1b", "\x1b[1", "\x1b]8;;a", "\x1b]8;;a\x07"),
)


def repeated(unit: str) -> Callable[[int], str]:
    return lambda length: (unit * (length // len(unit) + 1))[:length]


def nested_items(length: int) -> str:
    """Items within items, two hundred deep, then from the start."""
    tree = "".join(" " * (2 * depth) + "- a\n" for depth in range(200))
    return repeated(tree)(length)


def distinct_facts(length: int) -> str:
    return "".join(f"- fact {number}\n" for number in range(length // 12))


def distinct_topics(length: int) -> str:
    lines = (f"## topic {each}\n\n- fact {each}\n\n" for each in range(length // 28))
    return "".join(lines)


TEXTS = {
    **{repr(unit): repeated(unit) for unit in UNITS},
    "nested items": nested_items,
    "distinct facts": distinct_facts,
    "distinct topics": distinct_topics,
}


# Every reader gets some of the texts, and in a soak all of them.
SHARE = 1 if SOAK else 8


@pytest.mark.parametrize(("number", "name"), [*enumerate(READERS)])
def test_reading_takes_time_in_proportion_to_the_text(number: int, name: str) -> None:
    def read(text: str) -> None:
        # Of some texts, nothing can be made; that must not take long either.
        with suppress(BackstoryError, BadAnswer):
            READERS[name](text)

    slow = [
        kind
        for kind, make_text in list(TEXTS.items())[number % SHARE :: SHARE]
        if not is_linear(read, make_text, MAX_LENGTH)
    ]

    assert slow == []


@pytest.mark.parametrize(
    "unit", ["PASSWORD=", "PASSWORD=a,", "TOKEN=a_", "?A_Password=a", "token=1,"]
)
def test_masking_names_without_end_takes_time_in_proportion_to_the_text(
    unit: str,
) -> None:
    def called(length: int) -> str:
        return f"{repeated(unit)(length)}("

    assert is_linear(redaction.mask_secrets, called, MAX_LENGTH)


@pytest.mark.parametrize("unit", ["# a\n", "# a\n\nx\n", "- a\n", "\n"])
def test_splitting_a_note_takes_little_more_memory_than_it_has_bytes(unit: str) -> None:
    text = repeated(unit)(20_000)
    tracemalloc.start()

    count_groups(text)

    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 25 * len(text)
