"""Cutting out the part of a text that answers a query."""

import unicodedata
from datetime import date

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from backstory.text.excerpts import excerpt, find_match, find_words
from backstory.text.query import parse_query
from backstory.text.words import fold
from backstory.values.query import Query
from tests.grid import cases


def parse(text: str) -> Query:
    return parse_query(text, today=date(2026, 3, 4))


def found(text: str, query: str) -> list[str]:
    return [text[start:end] for start, end in find_words(text, parse(query))]


# -- find_match ---


@cases(
    ("text", "needle", "expected"),
    [
        pytest.param("Hello World", "o w", (4, 7), id="ASCII"),
        pytest.param("Hello", "x", None, id="not there"),
        pytest.param("Hello", "", None, id="nothing to look for"),
        pytest.param("Die Straße dort", "strasse", (4, 10), id="longer when folded"),
        pytest.param("ßßßß Ende", "ende", (5, 9), id="after letters that grow"),
        pytest.param("cafe\u0301 Noir", "noir", (6, 10), id="after one that shrinks"),
        pytest.param("Cafe\u0301!", "café", (0, 5), id="an accent of its own"),
        pytest.param("ß", "s", (0, 1), id="half of a folded letter"),
        pytest.param("İstanbul", "stan", (1, 5), id="after a dotted I"),
        pytest.param("数据库", "据库", (1, 3), id="Chinese"),
        pytest.param("ß" * 300 + "X", "x", (300, 301), id="far into the text"),
    ],
)
def test_a_match_is_found_where_it_stands_in_the_original(
    text: str, needle: str, expected: tuple[int, int] | None
) -> None:
    assert find_match(text, needle) == expected


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from("aAßİe\u0301\u0327 ﬁᾳ\u1100\u1161\u11a8한"),
    max_size=40,
)


@given(TEXTS, st.integers(0, 60), st.integers(1, 8))
def test_a_match_folds_to_what_holds_the_needle(
    text: str, start: int, size: int
) -> None:
    folded = fold(text)
    assume(folded)
    start %= len(folded)
    needle = folded[start : start + size]

    span = find_match(text, needle)

    assert span is not None
    assert needle in fold(text[span[0] : span[1]])


@given(TEXTS, TEXTS)
def test_what_is_not_in_the_folded_text_is_not_found(text: str, needle: str) -> None:
    assume(fold(needle) not in fold(text))

    assert find_match(text, fold(needle)) is None


# -- find_words ---


@cases(
    ("text", "query", "expected"),
    [
        pytest.param("The Cat sat", "cat", ["Cat"], id="case"),
        pytest.param("concatenate a cat", "cat", ["cat"], id="not inside a word"),
        pytest.param("the café", "cafe", ["café"], id="accents in the text"),
        pytest.param("the cafe\u0301!", "café", ["cafe\u0301"], id="marks"),
        pytest.param("the cafe", "café", ["cafe"], id="accents in the query"),
        pytest.param("Straße", "straße", ["Straße"], id="a sharp s"),
        pytest.param(
            "migrate: migration, migrations",
            "migrations",
            ["migration", "migrations"],
            id="other forms",
        ),
        pytest.param("we stored and store", "storing", ["stored", "store"], id="ing"),
        pytest.param("storing a story", "store", ["storing"], id="a last e"),
        pytest.param("one query, two queries", "query", ["query", "queries"], id="y"),
        pytest.param("parseJson parse_json", "parse_json", ["parseJson", "parse_json"]),
        pytest.param("see src/app.py:42", "src/app.py:42", ["src/app.py:42"]),
        pytest.param("in C++ or C", "C++", ["C++"], id="a name with signs"),
        pytest.param("Anna said", "Anna's", ["Anna"], id="a possessive"),
        pytest.param("大数据库", "数据库", ["数据库"], id="pairs that meet are one"),
        pytest.param("用Go写", "go", ["Go"], id="beside another script"),
        pytest.param("อาหารที่นี่", "ที่นี่", ["ที่นี่"], id="Thai marks"),
        pytest.param("한국 하나", "한국", ["한국"], id="Hangul"),
        pytest.param("to be or not", '"or not" xyz', ["or not"], id="a phrase"),
        pytest.param("nothing", "other", [], id="no match"),
        pytest.param("", "other", [], id="no text"),
        pytest.param("text", "?!", [], id="no terms"),
    ],
)
def test_words_are_found_in_a_text(text: str, query: str, expected: list[str]) -> None:
    assert found(text, query) == expected


def test_only_so_many_words_are_found() -> None:
    assert find_words("a cat " * 9, parse("cat"), limit=2) == [(2, 5), (8, 11)]


@given(st.text(st.characters()), st.text(st.characters(), max_size=20))
@example("00$ß", "")
def test_found_words_are_in_order_and_apart(text: str, typed: str) -> None:
    spans = find_words(text, parse(typed + " " + text[:20]))

    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start < end <= len(text) for start, end in spans)


# -- excerpt ---

PADDING = "word " * 40


@cases(
    ("text", "query", "expected"),
    [
        pytest.param("short", "x", "short", id="short enough"),
        pytest.param("x" * 30, "y", "x" * 30, id="exactly enough"),
        pytest.param("y" * 31, "x", "y" * 27 + "...", id="no match"),
        pytest.param(
            "cat " + PADDING, "cat", "cat word word word word wor...", id="early match"
        ),
        pytest.param(
            PADDING + "the cat",
            "cat",
            "...word word word word the cat",
            id="at the end",
        ),
        pytest.param(
            PADDING + "the cat sat " + PADDING,
            "cat",
            "...the cat sat word word wo...",
            id="in the middle",
        ),
        pytest.param(
            PADDING + "of x\nmy cat sat " + PADDING,
            "cat",
            "...my cat sat word word wor...",
            id="begins with a line",
        ),
        pytest.param(
            "cat " + PADDING + "dog and cat " + PADDING,
            "dog cat",
            "...dog and cat word word wo...",
            id="where most terms meet",
        ),
        pytest.param(
            "cat and dog " + PADDING + "cat, cow, dog " + PADDING,
            "dog cat cow",
            "cat and dog word word word ...",
            id="the beginning if it has most of them, too",
        ),
        pytest.param(
            "b a " + PADDING + "now a b it is " + PADDING,
            "a b",
            "...now a b it is word word ...",
            id="the whole query first",
        ),
        pytest.param(
            "tea cups " + PADDING + "the cups, tea " + PADDING,
            '"cups, tea" pot',
            "...the cups, tea word word ...",
            id="a phrase before terms",
        ),
    ],
)
def test_an_excerpt_shows_the_best_match(text: str, query: str, expected: str) -> None:
    assert excerpt(text, parse(query), max_chars=30) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("abcdef👩\u200d💻 and more", "abcdef...", id="joined emoji"),
        pytest.param("abcdefe\u0301\u0301 more", "abcdef...", id="marks"),
        pytest.param("abcdef👍🏽 and more", "abcdef...", id="a skin tone"),
    ],
)
def test_what_belongs_together_is_not_cut_apart(text: str, expected: str) -> None:
    assert excerpt(text, parse("x"), max_chars=10) == expected


@pytest.mark.parametrize(("max_chars", "expected"), [(0, ""), (2, ".."), (4, "a...")])
def test_a_very_small_excerpt_is_mostly_dots(max_chars: int, expected: str) -> None:
    assert excerpt("abcdefgh", parse("h"), max_chars=max_chars) == expected


@given(
    st.lists(
        st.sampled_from(
            [
                "cat",
                "dog",
                "é",
                "ß",
                "数据",
                "👩\u200d💻",
                "\n",
                "a\u0301",
                "longerword",
            ]
        )
    ),
    st.sampled_from(["cat dog", "数据", "ß", '"dog cat"', "longerwords", "?"]),
    st.integers(4, 60),
)
def test_an_excerpt_fits_and_is_part_of_the_text(
    words: list[str], typed: str, max_chars: int
) -> None:
    text = " ".join(words)

    shown = excerpt(text, parse(typed), max_chars=max_chars)

    assert len(shown) <= max_chars
    assert shown.removeprefix("...").removesuffix("...") in text


# Characters that form no cluster with their neighbours.
LONERS = st.characters(exclude_categories=["Mn", "Mc", "Me", "Cf", "Sk", "Cs"])


@given(st.text(LONERS, min_size=41, max_size=300), st.data())
def test_an_excerpt_shows_the_query_wherever_it_stands(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 5))
    typed = text[start : start + 5].strip()
    assume(typed and unicodedata.is_normalized("NFC", text))

    shown = excerpt(text, parse(typed), max_chars=40)

    assert fold(typed) in fold(shown)
