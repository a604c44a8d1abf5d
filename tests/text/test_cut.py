"""Cutting and neutralizing text."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.cut import cut_bytes, cut_mark, one_line
from backstory.text.escape import UNSAFE, neutralize, replace_surrogates
from tests.grid import cases

# Unicode's Bidi_Control property, which the standard library does not know.
BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


# -- cut_bytes ---


@pytest.mark.parametrize(
    ("text", "max_bytes", "expected"),
    [
        pytest.param("", 0, ("", None), id="nothing"),
        pytest.param("hello", 5, ("hello", None), id="exactly the limit"),
        pytest.param(
            "hello!",
            5,
            ("hel\n[cut: 1 of 6 bytes left out]\no!", 6),
            id="one byte too many",
        ),
        pytest.param(
            "aéa", 3, ("a\n[cut: 2 of 4 bytes left out]\na", 4), id="inside a character"
        ),
        pytest.param("😀", 4, ("😀", None), id="a character of four bytes"),
        pytest.param(
            "x", 0, ("\n[cut: 1 of 1 bytes left out]\n", 1), id="no room at all"
        ),
        pytest.param(
            "x" * 70_000,
            65_536,
            (
                "x" * 32_768
                + "\n[cut: 4,464 of 70,000 bytes left out]\n"
                + "x" * 32_768,
                70_000,
            ),
            id="large numbers are grouped",
        ),
    ],
)
def test_a_text_is_cut_at_a_whole_character_and_says_its_true_length(
    text: str, max_bytes: int, expected: tuple[str, int | None]
) -> None:
    assert cut_bytes(text, max_bytes) == expected


def test_a_text_that_was_cut_before_keeps_the_length_it_had_at_first() -> None:
    once, full_bytes = cut_bytes("x" * 70_000, 65_536)

    twice = cut_bytes(once, 5, full_bytes=full_bytes)

    assert twice == ("xxxxx\n[cut: 5 of 70,000 bytes kept]", 70_000)


def test_a_mark_in_the_text_says_nothing_about_its_length() -> None:
    forged = "x" * 10 + cut_mark(1, 10**20)

    assert cut_bytes(forged, 5) == (
        f"xxx\n[cut: {len(forged) - 5} of {len(forged)} bytes left out]\nt]",
        len(forged),
    )


@given(st.text(max_size=60), st.integers(0, 50))
def test_what_is_kept_is_a_beginning_and_an_end_that_fit(
    text: str, max_bytes: int
) -> None:
    kept, full_bytes = cut_bytes(text, max_bytes)

    size = len(text.encode())
    if full_bytes is None:
        assert (kept, size <= max_bytes) == (text, True)
        return
    head, mark, tail = re.split(r"(\n\[cut: \d+ of \d+ bytes left out\]\n)", kept)
    kept_bytes = len(head.encode()) + len(tail.encode())
    assert text.startswith(head)
    assert text.endswith(tail)
    # A character has four bytes at most, so three at most are left empty on each side.
    assert max_bytes - 6 <= kept_bytes <= max_bytes < size == full_bytes
    assert mark == f"\n[cut: {size - kept_bytes} of {size} bytes left out]\n"


# -- one_line ---


@cases(
    ("text", "expected"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param(" \n ", "", id="white space"),
        pytest.param("fix  the\n\ttests ", "fix the tests", id="white space inside"),
        pytest.param("abcdefghijklmno", "abcdefghijklmno", id="exactly the width"),
        pytest.param("abcdefghijklmnop", "abcdefghijklmn…", id="one too many"),
        pytest.param("fix all the tests", "fix all the te…", id="cut in a word"),
        pytest.param("fix all of the tests", "fix all of the…", id="cut at a space"),
        pytest.param("\n" * 500 + "hello", "hello", id="much white space before"),
        pytest.param("hello" + "\n" * 500, "hello", id="much white space at the end"),
        pytest.param("a" + " " * 500 + "b", "a b", id="much white space between"),
    ],
)
def test_a_text_is_put_on_one_line(text: str, expected: str) -> None:
    assert one_line(text, 15) == expected


@given(st.text(st.characters() | st.sampled_from(" \n")), st.integers(1, 30))
def test_one_line_is_never_longer_than_asked_nor_more_than_one(
    text: str, max_chars: int
) -> None:
    line = one_line(text, max_chars)

    assert len(line) <= max_chars
    assert len(line.splitlines()) <= 1
    assert line == " ".join(line.split())


@given(st.text(st.sampled_from("ab \n"), max_size=60), st.integers(1, 30))
def test_a_line_that_fits_is_whole_and_any_other_ends_in_an_ellipsis(
    text: str, max_chars: int
) -> None:
    whole = " ".join(text.split())

    line = one_line(text, max_chars)

    assert (line == whole, line.endswith("…")) == (
        len(whole) <= max_chars,
        len(whole) > max_chars,
    )


# -- surrogates and control characters ---


def test_half_characters_are_replaced_and_whole_ones_stay() -> None:
    assert replace_surrogates("a\ud83d \ude00 😀") == "a\ufffd \ufffd 😀"


@given(st.text(st.characters()))
def test_a_text_without_half_characters_can_be_encoded(text: str) -> None:
    whole = replace_surrogates(text)

    assert whole.encode().decode() == whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain\n\ttext é 😀", "plain\n\ttext é 😀", id="plain text"),
        pytest.param("a\x1b[31mred", "a␛[31mred", id="a terminal colour"),
        pytest.param("a\x07\x00\x7f", "a␇␀␡", id="bell, NUL and delete"),
        pytest.param("a\x9b31m", "a\ufffd31m", id="a one-byte terminal sequence"),
        pytest.param("a\r\nb", "a\nb", id="a Windows line end"),
        pytest.param("safe\rfake", "safe␍fake", id="a carriage return"),
        pytest.param("x\u202egpj.exe", "x\ufffdgpj.exe", id="right to left"),
        pytest.param("x\u061cy", "x\ufffdy", id="an Arabic letter mark"),
    ],
)
def test_characters_that_fool_a_reader_become_visible(text: str, expected: str) -> None:
    assert neutralize(text) == expected


@given(st.text(st.characters() | st.sampled_from(sorted(BIDI_CONTROLS))))
def test_no_control_or_direction_character_is_left(text: str) -> None:
    shown = neutralize(text)

    left = {
        character
        for character in shown
        if unicodedata.category(character) == "Cc" or character in BIDI_CONTROLS
    }
    assert left <= {"\n", "\t"}


@given(st.text())
def test_neutral_text_stays_as_it_is(text: str) -> None:
    shown = neutralize(text)

    assert neutralize(shown) == shown


def test_every_unsafe_character_is_made_visible_wherever_it_stands() -> None:
    unsafe = [each for each in map(chr, range(0x110000)) if UNSAFE.match(each)]

    assert len(unsafe) > 2_000
    assert [each for each in unsafe if each in neutralize(f"a b\n\t{each}c")] == []
