"""What only a terminal understands is removed, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.terminal import strip_terminal_codes
from tests.grid import cases


@cases(
    ("text", "expected"),
    [
        pytest.param("plain [1m] é", "plain [1m] é", id="plain text"),
        pytest.param("\x1b[1;31mred\x1b[0m", "red", id="a colour"),
        pytest.param("\x1b[38:2::1:2:3mred\x1b[m", "red", id="a colour with colons"),
        pytest.param("\x1b[?25l50 %\x1b[2K\x1b[1G", "50 %", id="moves of the cursor"),
        pytest.param("a\x1b[38;5", "a", id="a colour that is cut off"),
        pytest.param("a\x1b[", "a", id="the beginning of one"),
        pytest.param("a\x1b", "a", id="an escape character alone"),
        pytest.param("a\x1b\nb", "a\nb", id="an escape character before a line end"),
        pytest.param("\x1b\x1b[31m[32mx", "[32mx", id="an escape character twice"),
        pytest.param(
            "\x1b]8;;https://a.example\x1b\\docs\x1b]8;;\x1b\\", "docs", id="a link"
        ),
        pytest.param("\x1b]0;make\x07ok", "ok", id="a window's title"),
        pytest.param(
            "\x1b]0;make\nok \x07", "0;make\nok \x07", id="a title without an end"
        ),
        pytest.param("\x1bP1$r0m\x1b\\ok", "ok", id="an answer of the terminal"),
        pytest.param("\x1b(B\x1b7ok\x1b8\x1b=", "ok", id="short sequences"),
        pytest.param("50%\r100%\tok\x08", "50%\r100%\tok\x08", id="other controls"),
    ],
)
def test_codes_of_a_terminal_are_removed(text: str, expected: str) -> None:
    assert strip_terminal_codes(text) == expected


@given(st.text(st.sampled_from("\x1b[]m;1\\\x07 (B\nxé")))
def test_no_escape_character_is_left_and_no_line_is_lost(text: str) -> None:
    stripped = strip_terminal_codes(text)

    assert "\x1b" not in stripped
    assert stripped.count("\n") == text.count("\n")
    assert stripped.count("é") <= text.count("é")
