"""What must not be kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.private import drop_private, drop_private_lines
from tests.grid import cases


@cases(
    ("text", "expected"),
    [
        pytest.param("nothing to hide", "nothing to hide", id="no marks"),
        pytest.param("a <private>b</private> c", "a [private] c", id="one passage"),
        pytest.param("a <PRIVATE>b</Private> c", "a [private] c", id="any case"),
        pytest.param("<private>a\nb</private>", "[private]", id="several lines"),
        pytest.param(
            "<private>a</private> b <private>c</private>",
            "[private] b [private]",
            id="two passages",
        ),
        pytest.param(
            "a<private>b<private>c</private>d</private>e",
            "a[private]e",
            id="a passage in a passage",
        ),
        pytest.param("a <private>b c", "a [private]", id="never closed"),
        pytest.param(
            "a<private>b<private>c</private>d", "a[private]", id="closed once of twice"
        ),
        pytest.param("a </private> b", "a </private> b", id="never opened"),
        pytest.param(
            "a</private>b<private>c", "a</private>b[private]", id="closed, then opened"
        ),
        pytest.param("<privateer>a", "<privateer>a", id="another mark"),
        pytest.param("< private >a</ private >b", "[private]b", id="blanks"),
        pytest.param("<private\n>a< / private >b", "[private]b", id="a line end"),
        pytest.param('<private reason="x">a</private>b', "[private]b", id="attribute"),
        pytest.param(
            "<PRIVATE a=1 data-b='c d' >a</private>b", "[private]b", id="attributes"
        ),
        pytest.param(
            r'{"t":"<private a=\"b\">x<\/private>y"}',
            '{"t":"[private]y"}',
            id="in JSON",
        ),
        pytest.param(
            r"\u003cprivate a='b'\u003ex\u003c/private\u003ey",
            "[private]y",
            id="escaped",
        ),
        pytest.param('<private a="b">x', "[private]", id="attribute, never closed"),
        pytest.param("your <private key> here", "your <private key> here", id="words"),
        pytest.param("<private/> b", "<private/> b", id="an empty passage"),
        pytest.param("x < private > y", "x [private]", id="blanks, never closed"),
    ],
)
def test_a_private_passage_is_replaced_by_a_mark(text: str, expected: str) -> None:
    assert drop_private(text) == expected


PIECES = st.sampled_from(
    ["<private>", "</private>", "<Private>", "</PRIVATE>", "<", ">"]
)


@given(st.lists(PIECES | st.just("secret"), max_size=12), st.lists(PIECES, max_size=6))
def test_nothing_between_marks_is_left_however_they_nest(
    inside: list[str], after: list[str]
) -> None:
    opened = [piece for piece in inside if piece.lower() != "</private>"]
    text = "kept <private>" + "".join(opened) + "</private>" + "".join(after)

    assert "secret" not in drop_private(text)


@given(st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_what_is_dropped_once_needs_no_dropping_again(text: str) -> None:
    once = drop_private(text)

    assert drop_private(once) == once


@given(st.text())
def test_a_text_without_an_opening_mark_stays_as_it_is(text: str) -> None:
    assert drop_private(text.replace("<", "")) == text.replace("<", "")


def test_the_lines_of_a_file_keep_their_numbers() -> None:
    text = "one\r\n<private>a\nb\n\nc</private> two\nthree <private>d\ne"

    assert drop_private_lines(text) == ("one\r\n[private]\n\n\n two\nthree [private]\n")


@given(st.lists(PIECES | st.sampled_from(["\n", "a"]), max_size=12).map("".join))
def test_lines_are_dropped_as_in_a_whole_text(text: str) -> None:
    dropped = drop_private_lines(text)

    assert dropped.count("\n") == text.count("\n")
    assert dropped.replace("\n", "").count("a") == drop_private(text).count(
        "a"
    ) - drop_private(text).count("[private]") + dropped.count("[private]")
