"""What is said of a file that could not be understood."""

import pytest

from backstory.ingest.parsing.glimpse import describe_content
from tests.grid import cases


@cases(
    ("head", "expected"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(b" \n", None, id="only blanks"),
        pytest.param(b"SQLite format 3\0...", "an SQLite database", id="database"),
        pytest.param(b"PK\x03\x04...", "a zip file", id="zip"),
        pytest.param(b"# Notes\n", "text without JSON", id="text"),
        pytest.param("naïve\n".encode(), "text without JSON", id="other text"),
        pytest.param(b"\x89PNG\r\n\xff\xfe....", "neither text nor JSON", id="bytes"),
        pytest.param(b'{"a": 1}', 'a JSON object with "a"', id="an object"),
        pytest.param(
            b'{"a": 1,\n "b": {"c"', 'a JSON object with "a", "b"', id="a long object"
        ),
        pytest.param(b"{}\n", "a JSON object without anything in it", id="no key"),
        pytest.param(b"{nonsense", "something like JSON", id="not quite JSON"),
        pytest.param(
            b'{"a": 1}\n{"b": 2}\n', 'JSON lines, the first with "a"', id="lines"
        ),
        pytest.param(
            b'[{"a": 1, "b": 2}, {"c"',
            'a JSON list whose first item has "a", "b"',
            id="a list",
        ),
        pytest.param(
            b'[{"a": "x', 'a JSON list whose first item has "a"', id="a long item"
        ),
        pytest.param(b"[]", "a JSON list", id="an empty list"),
        pytest.param(b"[1, 2]", "a JSON list", id="a list of numbers"),
        pytest.param(
            b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}',
            'a JSON object with "a", "b", "c", "d", "e", "f" and 2 more',
            id="many keys",
        ),
        pytest.param(
            b'{"' + b"k" * 50 + b'":1}',
            f'a JSON object with "{"k" * 30}"',
            id="a long key",
        ),
    ],
)
def test_a_file_is_described_by_what_it_begins_with(
    head: bytes, expected: str | None
) -> None:
    assert describe_content(head) == expected
