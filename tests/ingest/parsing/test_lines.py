"""JSON lines: whole ones are read once, broken ones are repaired or reported."""

import io
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.ingest.importers.base import Record
from backstory.ingest.parsing.lines import LineReader
from backstory.values.history import CutString, Problem
from tests.grid import cases

CUT_OFF = "the last line is cut off after {} bytes; it will be read when it is complete"


def read(content: bytes, **more: int) -> list[Record | Problem]:
    return list(LineReader(io.BytesIO(content), **more).records())


def resume(content: bytes, reader: LineReader) -> LineReader:
    """A reader that resumes, in the same or a grown file, where another stopped."""
    file = io.BytesIO(content)
    file.seek(reader.read_to)
    return LineReader(
        file, reader.read_to, reader.line, max_line_bytes=reader.max_line_bytes
    )


def end_of_line(content: bytes, item: Record | Problem) -> int:
    return len(b"".join(content.splitlines(keepends=True)[: item.line]))


# -- whole lines ---


@cases(
    ("content", "expected"),
    [
        pytest.param(b"", [], id="an empty file"),
        pytest.param(b'{"a":1}\n', [Record(1, {"a": 1})], id="one line"),
        pytest.param(
            b'{"a":1}\r\n{"a":2}\r\n',
            [Record(1, {"a": 1}), Record(2, {"a": 2})],
            id="Windows line ends",
        ),
        pytest.param(
            b'{"a":1}\n\n \n{"a":2}\n',
            [Record(1, {"a": 1}), Record(4, {"a": 2})],
            id="empty lines count as lines",
        ),
        pytest.param(
            b'\xef\xbb\xbf{"a":1}\n', [Record(1, {"a": 1})], id="a byte order mark"
        ),
        pytest.param(
            b'\xef\xbb\xbf{"a":1}',
            [Record(1, {"a": 1})],
            id="a byte order mark and no line end",
        ),
        pytest.param(b'{"a":1}', [Record(1, {"a": 1})], id="a whole last line"),
        pytest.param(
            b'{"a":"\\ud83d"}',
            [
                Problem(
                    "the line was repaired: half of a surrogate pair or a control "
                    "character in it was replaced",
                    1,
                ),
                Record(1, {"a": "\ufffd"}),
            ],
            id="a whole last line that must be repaired",
        ),
        pytest.param(
            b'{"a":1}\n{"a":',
            [Record(1, {"a": 1}), Problem(CUT_OFF.format(5), 2)],
            id="a cut-off last line",
        ),
        pytest.param(
            b'{"a":1}\n  ', [Record(1, {"a": 1})], id="white space at the end"
        ),
    ],
)
def test_lines_give_records_with_their_numbers(
    content: bytes, expected: list[Record | Problem]
) -> None:
    assert read(content) == expected


# -- broken lines ---


@pytest.mark.parametrize(
    ("line", "reason", "value"),
    [
        pytest.param(
            b'{"a":"caf\xe9"}',
            "the line was repaired: bytes that are not UTF-8 were replaced",
            {"a": "caf\ufffd"},
            id="bytes that are not UTF-8",
        ),
        pytest.param(
            b'{"a":"x\x00y"}\x00',
            "the line was repaired: NUL bytes in it were left out",
            {"a": "xy"},
            id="NUL bytes",
        ),
        pytest.param(
            b'{"\\ud83d":["\\ude00"]}',
            "the line was repaired: half of a surrogate pair or a control character "
            "in it was replaced",
            {"\ufffd": ["\ufffd"]},
            id="half characters in names and lists",
        ),
        pytest.param(
            b'{"a":"x\x01y"}',
            "the line was repaired: half of a surrogate pair or a control character "
            "in it was replaced",
            {"a": "x\x01y"},
            id="a bare control character",
        ),
        pytest.param(
            b'{"a":NaN,"b":-Infinity}',
            "the line was repaired: NaN, which is not valid JSON, became null",
            {"a": None, "b": None},
            id="numbers that JSON does not have",
        ),
    ],
)
def test_a_line_that_can_be_repaired_is_read_and_reported(
    line: bytes, reason: str, value: dict[str, Any]
) -> None:
    assert read(line + b"\n") == [Problem(reason, 1), Record(1, value)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(b"[1]", "not a JSON object", id="a list"),
        pytest.param(b'["\\ud83d"]', "not a JSON object", id="a list to be repaired"),
        pytest.param(b"\x00\x00", "a line of NUL bytes", id="nothing but NUL bytes"),
        pytest.param(
            b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
            "nested too deeply to be read",
            id="very deep nesting",
        ),
        pytest.param(
            b'{"a":' * 800 + b'"\xff"' + b"}" * 800,
            "nested too deeply to be read",
            id="deep nesting that must be repaired as well",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_reported_and_the_rest_is_read(
    line: bytes, reason: str
) -> None:
    found = read(line + b'\n{"a":2}\n')

    assert found == [Problem(reason, 1), Record(2, {"a": 2})]


def test_what_is_no_json_is_reported_with_the_reason() -> None:
    (found,) = read(b"no JSON\n")

    assert isinstance(found, Problem)
    assert found.line == 1
    assert found.reason.startswith("not valid JSON (")


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line)))
def test_no_bytes_make_the_reader_raise_or_lose_a_good_line(lines: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in [*lines, b'{"good":1}'])

    found = read(content)

    assert found[-1] == Record(len(lines) + 1, {"good": 1})


# -- stopping and going on ---

LINES = st.sampled_from(
    [
        b'{"a":1}',
        b"",
        b"   ",
        b"rubbish",
        b'{"b":"\xff"}',
        b'{"c":"' + b"long" * 30 + b'"}',
        b'{"d":[' + b"1," * 60 + b"1]}",
    ]
)


@given(lines=st.lists(LINES, max_size=8), ends=st.booleans(), taken=st.integers(0, 20))
def test_reading_that_stops_anywhere_goes_on_as_if_it_had_not(
    lines: list[bytes], ends: bool, taken: int
) -> None:
    content = b"\n".join(lines) + b"\n" * ends
    whole = read(content, max_line_bytes=64)
    reader = LineReader(io.BytesIO(content), max_line_bytes=64)
    first = list(islice(reader.records(), taken))

    rest = list(resume(content, reader).records())

    # Only the line that was under way is met again.
    done = [item for item in first if end_of_line(content, item) <= reader.read_to]
    assert done + rest == whole


@given(lines=st.lists(LINES, max_size=6), stop=st.integers(0, 400))
def test_a_file_read_while_it_grows_gives_what_it_gives_when_it_is_whole(
    lines: list[bytes], stop: int
) -> None:
    content = b"".join(line + b"\n" for line in lines)
    reader = LineReader(io.BytesIO(content[:stop]))
    first = [item for item in reader.records() if not _is_cut_off(item)]

    rest = list(resume(content, reader).records())

    assert first + rest == read(content)


def _is_cut_off(item: Record | Problem) -> bool:
    return isinstance(item, Problem) and "is cut off after" in item.reason


def test_a_line_read_before_its_end_was_there_is_counted_once() -> None:
    reader = LineReader(io.BytesIO(b'{"a":1}'))
    list(reader.records())

    rest = list(resume(b'{"a":1}\n{"a":2}\n', reader).records())

    assert rest == [Record(2, {"a": 2})]


def test_the_place_to_go_on_from_moves_only_when_the_next_record_is_asked_for() -> None:
    reader = LineReader(io.BytesIO(b'{"a":1}\n{"a":2}\n'))
    records = reader.records()

    places = [(next(records) and reader.read_to, reader.line) for _ in range(2)]

    assert places == [(0, 0), (8, 1)]


# -- lines that are too long ---


def test_long_strings_of_an_over_long_line_are_cut_and_reported() -> None:
    line = orjson.dumps({"a": "x" * 2000, "b": "y"}) + b"\n"

    found = read(line + b'{"c":1}\n', max_line_bytes=500, max_string_bytes=10)

    assert found == [
        Problem(
            "a line of 2,017 bytes; strings in it longer than 10 bytes were cut",
            1,
            cuts=(CutString("\n[cut: 10 of 2,000 bytes kept]", 2000),),
        ),
        Record(1, {"a": "xxxxxxxxxx\n[cut: 10 of 2,000 bytes kept]", "b": "y"}),
        Record(2, {"c": 1}),
    ]


def test_an_over_long_last_line_is_read_when_it_is_whole() -> None:
    line = orjson.dumps({"a": "x" * 2000})

    found = read(line, max_line_bytes=500, max_string_bytes=10)

    assert found[1:] == [Record(1, {"a": "xxxxxxxxxx\n[cut: 10 of 2,000 bytes kept]"})]


def test_an_over_long_line_without_long_strings_is_reported_and_left_out() -> None:
    line = orjson.dumps({"a": [1] * 1000}) + b"\n"

    found = read(line + b'{"c":1}\n', max_line_bytes=500)

    assert found == [
        Problem("a line of 2,008 bytes, too long to read", 1),
        Record(2, {"c": 1}),
    ]


def test_an_over_long_last_line_that_is_cut_off_waits_for_its_end() -> None:
    line = orjson.dumps({"a": "x" * 2000})

    found = read(line[:-1], max_line_bytes=500, max_string_bytes=10)

    assert found == [Problem(CUT_OFF.format("2,007"), 1)]


# Characters of every length, and those that JSON writes with an escape.
LONG_TEXT = st.text(
    st.sampled_from('x/u0é\u2028😀"\\\n\x01')
    | st.characters(exclude_categories=["Cs"]),
    min_size=300,
    max_size=320,
)


@given(
    text=LONG_TEXT,
    ascii_only=st.booleans(),
    max_string_bytes=st.integers(2, 60),
    max_line_bytes=st.integers(150, 200),
)
def test_a_string_is_only_ever_cut_between_two_characters(
    text: str, ascii_only: bool, max_string_bytes: int, max_line_bytes: int
) -> None:
    written = json.dumps(text, ensure_ascii=ascii_only)
    line = f'{{"a":{written},"b":"\\""}}\n'

    found = read(
        line.encode(),
        max_line_bytes=max_line_bytes,
        max_string_bytes=max_string_bytes,
    )

    # A third item would be the problem of a line that had to be repaired.
    _, record = found
    assert isinstance(record, Record)
    kept, _, mark = record.value["a"].rpartition("\n[cut: ")
    assert text.startswith(kept)
    assert len(json.dumps(kept, ensure_ascii=ascii_only).encode()) >= (
        max_string_bytes - 16
    )
    assert mark.endswith(f" of {len(written.encode()) - 2:,} bytes kept]")
    assert record.value["b"] == '"'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | LONG_TEXT | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=40), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(value=st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=3))
def test_any_object_is_still_an_object_when_its_strings_are_cut(
    value: dict[str, Any],
) -> None:
    line = json.dumps({"long": "x" * 3000, **value}).encode() + b"\n"

    found = read(line, max_line_bytes=3000, max_string_bytes=100)

    (_, record) = found
    assert isinstance(record, Record)
    assert list(record.value) == ["long", *value]


_READ_ALL = """
import resource, sys
from backstory.ingest.parsing.lines import LineReader
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open(sys.argv[1], "rb") as file:
    for item in LineReader(file).records():
        print(str(item)[:32])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("small" if (peak - before) * UNIT < 80_000_000 else peak - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no resource module")
def test_a_line_of_fifty_megabytes_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(b'{"a":"' + b"word\\n" * 8_750_000 + b'"}\n{"b":1}\n')
    unit = "1" if sys.platform == "darwin" else "1024"

    done = subprocess.run(
        [sys.executable, "-c", _READ_ALL.replace("UNIT", unit), str(file)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [
        ":1: a line of 52,500,009 bytes; ",
        "Record(line=1, value={'a': 'word",
        "Record(line=2, value={'b': 1})",
        "small",
    ]
