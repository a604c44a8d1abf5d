"""Words as the full-text index files them."""

import unicodedata

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.words import (
    STOP_WORDS,
    fold,
    index_words,
    is_spaceless,
    letters_and_digits,
    word_parts,
    word_set,
)
from tests.grid import cases

HAN = st.text(
    st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
    | st.characters(min_codepoint=0x20000, max_codepoint=0x2A6DF),
    min_size=1,
    max_size=12,
)


def is_found(text: str, phrase: str) -> bool:
    """Whether a full-text index of the kind we build finds the phrase in the text."""
    db = apsw.Connection(":memory:")
    db.execute(
        """
        CREATE VIRTUAL TABLE texts USING fts5
        (words, content='', tokenize="porter unicode61 remove_diacritics 2")
        """
    )
    db.execute("INSERT INTO texts (rowid, words) VALUES (1, ?)", (index_words(text),))
    rows = db.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (f'"{phrase}"',))
    return rows.fetchall() == [(1,)]


# -- fold ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Hello", "hello", id="ASCII"),
        pytest.param("STRASSE straße", "strasse strasse", id="a sharp s"),
        pytest.param("Cafe\u0301", "café", id="an accent of its own"),
        pytest.param("  a\n B ", "  a\n b ", id="white space stays"),
        pytest.param("数据", "数据", id="no case"),
        pytest.param("A\ud800\0", "a\ud800\0", id="half a character and NUL"),
    ],
)
def test_folding_takes_case_away(text: str, expected: str) -> None:
    assert fold(text) == expected


@given(st.text(st.characters()))
def test_both_ways_of_writing_an_accent_fold_to_the_same(text: str) -> None:
    apart = unicodedata.normalize("NFD", text)

    assert fold(apart) == fold(unicodedata.normalize("NFC", text))


# -- index_words ---


@cases(
    ("text", "expected"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("What's up, Doc?", "What's up, Doc?", id="plain English"),
        pytest.param("parse_json 10:30", "parse_json 10:30", id="split by the index"),
        pytest.param("a\0b", "a b", id="NUL"),
        pytest.param("parseJson", "parseJson parse Json", id="camel case"),
        pytest.param(
            "HTTPServer2", "HTTPServer2 HTTP Server 2 HTTPServer", id="capitals, digits"
        ),
        pytest.param("the iPhone15", "the iPhone15 i Phone 15 iPhone", id="a product"),
        pytest.param("my_parseJson", "my_parseJson parse Json", id="after underscore"),
        pytest.param("utf8", "utf8 utf 8", id="letters and a digit"),
        pytest.param("9f4e2a", "9f4e2a", id="a hash has no parts"),
        pytest.param("C++ c++17", "C++ c++17 cplusplus cplusplus", id="C++"),
        pytest.param("C#, F#", "C#, F# csharp fsharp", id="sharps"),
        pytest.param(
            ".NET ASP.NET x.net", ".NET ASP.NET x.net dotnet dotnet", id=".NET"
        ),
        pytest.param("abc#d abc++", "abc#d abc++", id="not names"),
    ],
)
def test_ascii_text_is_kept_and_what_it_hides_is_put_after_it(
    text: str, expected: str
) -> None:
    assert index_words(text) == expected


@given(st.text("aBz09_ .-\n", max_size=40))
def test_the_parts_of_every_joined_word_come_after_the_text(text: str) -> None:
    words = "".join(c if c.isalnum() else " " for c in text).split()
    expected: list[str] = []
    for word in words:
        parts = word_parts(word)
        more = [run for run in letters_and_digits(word) if run not in (word, *parts)]
        expected += [*parts, *(more if parts else ())]

    after = index_words(text).removeprefix(text)

    assert after.split() == expected


@cases(
    ("text", "expected"),
    [
        pytest.param("数据库", "数 数据 据 据库 库", id="Chinese"),
        pytest.param("用Python写", "用 python 写", id="Latin between"),
        pytest.param("データ", "デ デー ー ータ タ", id="Katakana"),
        pytest.param("ﾃﾞｰﾀ", "デ デー ー ータ タ", id="halfwidth Katakana"),
        pytest.param("한국", "한 한국 국", id="Hangul"),
        pytest.param("\u1112\u1161\u11ab", "한", id="Hangul in pieces"),
        pytest.param("\U00020000\U00020001", "𠀀 𠀀𠀁 𠀁", id="astral Han"),
        pytest.param("ที่นี่", "ท ทน น", id="Thai without its marks"),
        pytest.param("हिन्दी", "हनद", id="Hindi stays one word"),
        pytest.param("ＡＢＣ１", "abc1 abc 1", id="fullwidth"),
        pytest.param("Straße", "strasse", id="a sharp s"),
        pytest.param("cafe\u0301", "café", id="an accent of its own"),
        pytest.param("great🤔idea", "great idea", id="an emoji between"),
        pytest.param("a\ud800b\ue000c\0", "a b c", id="what no database can hold"),
        pytest.param("“parseJson” — ok", "parsejson ok parse json", id="curly quotes"),
        pytest.param("“C++”", "c++ cplusplus", id="a name in curly quotes"),
        pytest.param("größerAls", "größerals größer als", id="camel with umlauts"),
    ],
)
def test_text_of_other_scripts_becomes_words(text: str, expected: str) -> None:
    expected = expected.replace("ß", "ss")

    assert index_words(text).split() == expected.split()


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        pytest.param("We use parseJson.", "json", id="a part"),
        pytest.param("We use parseJson.", "parse json", id="its parts"),
        pytest.param("We use parseJson.", "parsejson", id="the whole"),
        pytest.param("buy an iPhone15", "iphone", id="a name before digits"),
        pytest.param("C++ it is", "cplusplus", id="C++"),
        pytest.param("Größe", "grosse", id="umlauts are optional"),
        pytest.param("wow🤔", "wow", id="an emoji after"),
        pytest.param("x /parseJson/ y", "x parsejson y", id="phrases stay whole"),
    ],
)
def test_the_index_finds_what_it_was_given(text: str, phrase: str) -> None:
    assert is_found(text, phrase)


@given(HAN, st.data())
def test_any_one_or_two_neighbours_find_a_spaceless_text(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    size = data.draw(st.integers(1, 2))

    assert is_found(f"Said: {text}. ok", text[start : start + size])


@given(st.text(st.characters()))
def test_what_is_indexed_can_be_stored(text: str) -> None:
    words = index_words(text)

    assert "\0" not in words
    assert words.encode().decode() == words


@given(st.text(st.characters(min_codepoint=0x80)))
def test_beyond_ascii_only_letters_and_digits_are_left(text: str) -> None:
    left = {character for character in index_words(text) if character > "\x7f"}

    assert {character for character in left if not character.isalnum()} == set()


# -- words and parts ---


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        pytest.param("word", (), id="plain"),
        pytest.param("Word", (), id="capitalized"),
        pytest.param("WORD", (), id="capitals"),
        pytest.param("2023", (), id="digits"),
        pytest.param("parseJSONFile", ("parse", "JSON", "File"), id="capitals inside"),
        pytest.param("v2", ("v", "2"), id="a version"),
        pytest.param("a1b2c3d4", (), id="crumbs"),
        pytest.param("aB" * 40, (), id="too long"),
    ],
)
def test_a_joined_word_is_taken_apart(word: str, parts: tuple[str, ...]) -> None:
    assert word_parts(word) == parts


@pytest.mark.parametrize(
    ("character", "expected"),
    [("数", True), ("か", True), ("한", True), ("ท", True), ("é", False), ("7", False)],
)
def test_scripts_without_spaces_are_known(character: str, expected: bool) -> None:
    assert is_spaceless(character) is expected


# -- word_set ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", set(), id="nothing"),
        pytest.param("The cat, the HAT", {"the", "cat", "hat"}, id="English"),
        pytest.param("parse_json", {"parse", "json"}, id="an underscore"),
        pytest.param("数据库 好", {"数据", "据库", "好"}, id="Chinese"),
        pytest.param("हिन्दी “Straße”", {"हनद", "strasse"}, id="marks and quotes"),
    ],
)
def test_a_text_has_a_set_of_words(text: str, expected: set[str]) -> None:
    assert word_set(text) == expected


def test_only_the_beginning_of_a_long_text_is_compared() -> None:
    assert word_set("a " * 2_000 + "b") == {"a"}


@cases("word", ["what", "did", "we", "the", "s", "ll", "und", "nous", "qué", "什么"])
def test_function_words_are_known(word: str) -> None:
    assert word in STOP_WORDS


@pytest.mark.parametrize("word", ["die", "war", "son", "c", "may", "won", "hat"])
def test_words_that_say_something_in_english_are_not_function_words(word: str) -> None:
    assert word not in STOP_WORDS
