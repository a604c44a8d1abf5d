"""Numbers of tokens: what texts weigh, and what must always hold."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from backstory import most_tokens
from backstory.text import tokens
from backstory.text.tokens import estimate_tokens, rough_tokens
from tests.grid import cases, in_one_test

ANY_TEXT = st.text(st.characters(exclude_categories=()))
# Long words, long runs without a blank, and blanks without end.
DENSE_TEXT = st.text("aZq09+/- \t\n\r.?é我髒かカ한뛟🍣\x00")
# Texts with their tokens in three public vocabularies.
COUNTED = json.loads(
    (Path(__file__).parents[1] / "data/tokens/counted.json").read_text("utf-8")
)


@cases(
    ("text", "likely"),
    [
        ("", 0),
        (" ", 0),
        ("a", 1),
        # A word of six letters is one token, of seven two.
        ("sashimi", 2),
        ("word " * 100, 86),
        ("strawberries " * 50, 86),
        ("2026" * 25, 25),
        ("2 " * 100, 25),
        (". " * 100, 63),
        # A run of line ends counts once.
        ("a\n\n\r\n" * 100, 176),
        ("我" * 100, 97),
        ("か" * 50 + "カ" * 50, 75),
        ("한" * 100, 79),
        ("é" * 100, 32),
        ("ж" * 50 + "ß" * 50, 32),
        ("🍣" * 100, 32),
        ("\ud83d" * 100, 32),
        ("\x00" * 100, 63),
        (" " * 1_600, 0),
        ("a1" * 100, 111),
        ("schön", 3),
    ],
)
def test_an_estimate_weighs_what_was_fitted(text: str, likely: int) -> None:
    assert estimate_tokens(text) == likely


# Two tokens are added to each, unless that is more than one for each letter.
@cases(
    ("text", "most"),
    [
        ("", 0),
        ("a", 1),
        ("the", 3),
        # What no vocabulary has costs more than what all have.
        ("there " * 100, 2 + 117),
        ("zxqvk " * 100, 2 + 454),
        # Names in code are several words, and capitals cost more than small letters.
        ("parseJson " * 100, 2 + 318),
        ("HTTPServer " * 100, 2 + 462),
        ("2026 " * 100, 2 + 350),
        (". " * 100, 2 + 72),
        # A rule is cheap, but not one of bars.
        ("-" * 103, 2 + 14),
        ("|" * 100, 2 + 72),
        ("a\n" * 100, 2 + 212 - 14),
        ("\t\t." * 100, 2 + 236),
        ("        ." * 100, 2 + 172),
        (" " * 1_600, 2 + 32),
        ("我" * 100, 2 + 135),
        ("體" * 100, 2 + 187),
        ("龘" * 100, 2 + 300),
        ("한" * 100, 2 + 162),
        ("뛟" * 100, 2 + 300),
        ("か" * 100, 2 + 101),
        ("ж" * 100, 2 + 101),
        ("é" * 100, 2 + 136),
        ("🍣" * 100, 2 + 300),
        # A blank before a letter that is spelled out in bytes is a token, too.
        ("ቤት" * 100, 2 + 600),
        (" ቤት" * 100, 2 + 700),
        ("\ud83d" * 100, 2 + 300),
        ("\x00\x01" * 100, 200),
    ],
)
def test_the_most_is_the_sum_of_what_the_pieces_cost(text: str, most: int) -> None:
    assert most_tokens(text) == most


@in_one_test("counted", {row["name"]: row for row in COUNTED})
def test_the_most_holds_for_every_vocabulary_and_is_not_far_off(
    counted: dict[str, Any],
) -> None:
    most = max(counted["o200k"], counted["cl100k"], counted["claude2"])

    assert most <= most_tokens(counted["text"]) <= 2.2 * most


@given(ANY_TEXT | DENSE_TEXT, ANY_TEXT | DENSE_TEXT)
@example("A", "b")
@example("HTTPS", "erver")
@example("x" * 64, "x")
def test_a_text_that_grows_never_has_fewer_tokens(text: str, more: str) -> None:
    assert estimate_tokens(text) <= estimate_tokens(text + more)
    assert most_tokens(text) <= most_tokens(text + more)


@given(ANY_TEXT | DENSE_TEXT, ANY_TEXT | DENSE_TEXT)
@example("0", "{\x80")
def test_lines_have_no_fewer_tokens_than_their_text(text: str, more: str) -> None:
    first, second = f"some words {text}", f"\nsome words {more}"
    # A line has a token for each character at most, but more counts in a longer text.
    assume(not is_dense(first) and not is_dense(second))

    assert most_tokens(first + second) <= most_tokens(first) + most_tokens(second)


def is_dense(line: str) -> bool:
    return line.isascii() and most_tokens(line) == len(line)


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "+" * 1_000_000, "a1" * 500_000, " " * 1_000_000, "é" * 300_000],
    ids=["one word", "one sign", "one code", "blanks", "accents"],
)
def test_a_megabyte_takes_no_more_than_its_bytes(text: str) -> None:
    assert most_tokens(text) <= len(text.encode())


def test_what_is_remembered_of_words_is_bounded() -> None:
    words = ("".join(letters) for letters in product("abcdefghijklmno", repeat=4))
    text = " ".join(words)

    first = most_tokens(text)

    assert most_tokens(text) == first
    assert 0 < len(tokens._letters_costs) <= 50_000


@given(text=ANY_TEXT)
def test_a_rough_token_is_four_bytes(text: str) -> None:
    size = len(text.encode(errors="replace"))

    assert rough_tokens(text) == -(-size // 4)
