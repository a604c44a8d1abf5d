"""Estimates of tokens: what they weigh, and what must always hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.tokens import estimate_tokens, most_tokens, rough_tokens

ANY_TEXT = st.text(st.characters(exclude_categories=()))
# Long words, long runs without a blank, and blanks without end.
DENSE_TEXT = st.text("aZ09+/ \t\n\r.?é我かカ한🍣\x00")


@pytest.mark.parametrize(
    ("text", "likely", "most"),
    [
        ("", 0, 0),
        (" ", 0, 0),
        ("a", 1, 1),
        # A word of six letters is one token, of seven two.
        ("sashimi", 2, 2),
        ("word " * 100, 86, 86),
        ("strawberries " * 50, 86, 86),
        ("2026" * 25, 25, 75),
        ("2 " * 100, 25, 25),
        (". " * 100, 63, 86),
        # A run of line ends counts once.
        ("a\n\n\r\n" * 100, 176, 200),
        ("我" * 100, 97, 130),
        ("か" * 50 + "カ" * 50, 75, 107),
        ("한" * 100, 79, 143),
        ("é" * 100, 32, 66),
        ("ж" * 50 + "ß" * 50, 32, 66),
        ("🍣" * 100, 32, 300),
        ("\ud83d" * 100, 32, 66),
        ("\x00" * 100, 63, 86),
        (" " * 1_600, 0, 100),
        ("a1" * 100, 111, 150),
        ("schön", 3, 3),
    ],
)
def test_a_text_weighs_what_was_fitted(text: str, likely: int, most: int) -> None:
    assert (estimate_tokens(text), most_tokens(text)) == (likely, most)


# Counted with the vocabulary o200k.
@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("The restaurant is Sakura Sushi in Shibuya, and we go on Friday.\n", 16),
        ("def most_tokens(text: str) -> int:\n    return len(text) // 4\n", 19),
        ("Letzte Woche haben wir beschlossen, die Datenbank umzustellen.\n", 13),
        ("На прошлой неделе мы решили перенести базу данных.\n", 13),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n", 44),
        ("我们上周决定把数据库迁移。\n", 9),
        ("先週、移行することを決めました。\n", 12),
        ("Great 🎉 — done ✅\n", 7),
    ],
    ids=[
        "english",
        "code",
        "german",
        "russian",
        "a hash",
        "chinese",
        "japanese",
        "emoji",
    ],
)
def test_a_budget_holds_for_what_people_and_programs_write(
    text: str, counted: int
) -> None:
    assert counted * 0.9 <= most_tokens(text * 10) / 10 <= counted * 2.3


@given(ANY_TEXT | DENSE_TEXT)
def test_the_most_is_never_less_than_the_likely(text: str) -> None:
    assert 0 <= estimate_tokens(text) <= most_tokens(text)


@given(ANY_TEXT | DENSE_TEXT, ANY_TEXT | DENSE_TEXT)
def test_a_text_that_grows_never_has_fewer_tokens(text: str, more: str) -> None:
    assert estimate_tokens(text) <= estimate_tokens(text + more)
    assert most_tokens(text) <= most_tokens(text + more)


@given(DENSE_TEXT, DENSE_TEXT)
def test_parts_have_no_fewer_tokens_than_the_whole_but_for_long_runs(
    text: str, more: str
) -> None:
    whole = most_tokens(f"{text} {more}")

    assert whole <= most_tokens(text) + most_tokens(f" {more}") + 1


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "+" * 1_000_000, "a1" * 500_000, " " * 1_000_000, "é" * 300_000],
    ids=["one word", "one sign", "one code", "blanks", "accents"],
)
def test_a_megabyte_takes_no_more_than_its_length(text: str) -> None:
    assert most_tokens(text) <= len(text)


@given(text=ANY_TEXT)
def test_a_rough_token_is_four_bytes(text: str) -> None:
    size = len(text.encode(errors="replace"))

    assert rough_tokens(text) == -(-size // 4)
