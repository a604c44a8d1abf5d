"""What every importer must do, for every row of FORMATS and every sample of it."""

import io
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.ingest.importers import FORMATS
from backstory.ingest.importers.base import FormatRow, Memo, Origin, Record
from backstory.ingest.parsing.lines import LineReader
from backstory.ingest.parsing.recognize import find_format, iter_recognized
from backstory.ingest.parsing.streams import read_head
from backstory.values.history import Item, NewMessage, Problem, SessionFacts, Source
from tests.chance import examples
from tests.grid import cases
from tests.samples import (
    Case,
    a_memory,
    all_cases,
    contents,
    describe_reading,
    parse_records,
    read_sample,
)

CASES = all_cases()
LINE_ROWS = [row for row in FORMATS if row.load().kind == "lines"]
DOCUMENT_ROWS = [row for row in FORMATS if row.load().kind == "document"]
DOCUMENT_IMPORTERS = [
    importer for row in FORMATS if (importer := row.load()).kind == "document"
]


def each(items: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", items, ids=lambda case: f"{case.format}-{case.name}"
    )


each_line_row = cases("row", LINE_ROWS, ids=lambda row: row.name)


def each_row(rows: list[FormatRow]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def test_every_format_has_a_sample() -> None:
    read = {source.format for source in _recognized_sources()}

    assert {row.name for row in FORMATS} == read | {case.format for case in CASES}


@each(CASES)
def test_a_sample_gives_exactly_what_is_expected(case: Case, tmp_path: Path) -> None:
    root = case.lay_out(tmp_path)
    expected = orjson.loads(case.expected_file.read_bytes())

    with a_memory(tmp_path, home=root) as memory:
        found = describe_reading(memory, root, read_sample(memory, root))

    assert found == expected


@each(CASES)
def test_reading_a_sample_again_writes_nothing_even_if_it_was_touched(
    case: Case, tmp_path: Path
) -> None:
    root = case.lay_out(tmp_path)
    with a_memory(tmp_path, home=root) as memory:
        first = read_sample(memory, root)
        before = contents(memory, root)
        last_change = memory._parts.history.last_change_id()

        again = read_sample(memory, root)
        for file in root.rglob("*"):
            file.touch()
        touched = read_sample(memory, root)

        assert (again.read, again.new_messages, again.changed_messages) == (0, 0, 0)
        assert again.unchanged >= first.read
        assert (touched.new_messages, touched.changed_messages) == (0, 0)
        assert contents(memory, root) == before
        # So nothing is indexed or embedded again.
        assert memory._parts.history.last_change_id() == last_change


@each(CASES)
def test_a_sample_is_recognized_by_its_own_format_alone(
    case: Case, tmp_path: Path
) -> None:
    root = case.lay_out(tmp_path)

    found = [
        item for item in iter_recognized(root, FORMATS) if isinstance(item, Source)
    ]

    assert found
    for source in found:
        if source.entry:
            continue
        head = read_head(source.file.path)
        takers = [
            row.name for row in FORMATS if row.load().recognizes(source.file.path, head)
        ]
        assert takers == [source.format]


@each([case for case in CASES if case.format in {row.name for row in LINE_ROWS}])
def test_a_file_that_grows_line_by_line_gives_the_same_as_one_reading(
    case: Case, tmp_path: Path
) -> None:
    root = case.lay_out(tmp_path)
    with a_memory(tmp_path / "whole", home=root) as memory:
        read_sample(memory, root)
        expected = contents(memory, root)
    files = [file for file in root.rglob("*.jsonl") if file.is_file()]
    lines = {file: file.read_bytes().splitlines(keepends=True) for file in files}

    with a_memory(tmp_path / "growing", home=root) as memory:
        for count in range(max(map(len, lines.values()), default=0) + 1):
            for file in files:
                file.write_bytes(b"".join(lines[file][:count]))
            read_sample(memory, root)
        grown = contents(memory, root)

    assert grown == expected


@each_line_row
def test_a_cut_off_last_line_is_one_problem_and_loses_nothing_else(
    row: FormatRow,
) -> None:
    data = _first_line_file(row)
    lines = data.splitlines(keepends=True)
    cut = b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2]

    whole = list(_parse(row, b"".join(lines[:-1])))
    found = list(_parse(row, cut))

    assert found[:-1] == whole
    assert isinstance(found[-1], Problem)
    assert found[-1].line == len(lines)


@each_line_row
def test_a_record_of_an_unknown_kind_is_reported_and_the_rest_is_read(
    row: FormatRow,
) -> None:
    data = _first_line_file(row)
    unknown = b'{"type":"a-kind-of-tomorrow","role":"a-role-of-tomorrow"}\n'

    plain = list(_parse(row, data))
    found = list(_parse(row, data + unknown))

    assert found[: len(plain)] == plain
    assert [type(item) for item in found[len(plain) :]] == [Problem]
    assert found[-1].line == data.count(b"\n") + 1  # type: ignore[union-attr]


@each_line_row
def test_ids_are_the_same_every_time_and_never_empty(row: FormatRow) -> None:
    data = _first_line_file(row)

    first, second = list(_parse(row, data)), list(_parse(row, data))

    assert first == second
    assert all(
        item.native_id and item.session_id
        for item in first
        if isinstance(item, NewMessage)
    )


@each_line_row
def test_facts_about_a_session_come_before_its_messages(row: FormatRow) -> None:
    told: set[str] = set()

    for item in _parse(row, _first_line_file(row)):
        match item:
            case SessionFacts():
                told.add(item.native_id)
            case NewMessage():
                assert item.session_id in told


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@each_row(LINE_ROWS)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_no_json_makes_a_line_importer_raise(
    row: FormatRow, data: st.DataObject
) -> None:
    """Real records with parts replaced by rubbish reach deeper than rubbish alone."""
    records = [orjson.loads(line) for line in _first_line_file(row).splitlines()]
    record = data.draw(st.sampled_from(records))
    record = orjson.loads(orjson.dumps(record))
    for _ in range(data.draw(st.integers(1, 3))):
        _spoil(record, data)

    found = _parse_records(row, [Record(1, record)])

    assert all(isinstance(item, Item) for item in found)


@each_row(LINE_ROWS)
def test_no_value_in_a_record_makes_a_line_importer_raise(row: FormatRow) -> None:
    records = [
        item.value
        for data in _line_files(row)
        for item in LineReader(io.BytesIO(data)).records()
        if isinstance(item, Record)
    ]

    found = [
        item
        for record in _spoil_each_place(records)
        for item in _parse_records(row, [Record(1, record)])
    ]

    assert all(isinstance(item, Item) for item in found)


@each_row(DOCUMENT_ROWS)
def test_no_value_in_a_document_makes_its_importer_raise(row: FormatRow) -> None:
    importer = row.load()
    assert importer.kind == "document"
    documents = list(_iter_documents(row))

    found = [
        item
        for document in _spoil_each_place(documents)
        for item in importer.parse(
            io.BytesIO(orjson.dumps(document)), Origin(Path("/x/a.json"))
        )
    ]

    assert all(isinstance(item, Item) for item in found)


# A value of every kind that JSON has.
_VALUES: tuple[object, ...] = (None, True, 7, "", [], {}, [[]])


def _spoil_each_place(samples: list[Any]) -> Iterator[Any]:
    """The samples, each time with another value of another kind at one place.

    Places with the same names on the way to them are spoiled once.
    """
    spoiled = set()
    for sample in samples:
        kind = sample.get("type") if isinstance(sample, dict) else None
        for place in _iter_places(sample):
            names = (str(kind), *(each for each in place if isinstance(each, str)))
            if names not in spoiled:
                spoiled.add(names)
                for value in _VALUES:
                    yield _put(sample, place, value)


def _iter_places(value: object) -> Iterator[tuple[str | int, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, part in inner:
        yield (name,)
        yield from ((name, *rest) for rest in _iter_places(part))


def _put(sample: object, place: tuple[str | int, ...], value: object) -> object:
    changed = orjson.loads(orjson.dumps(sample))
    inner = changed
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return changed


def _spoil(value: object, data: st.DataObject) -> None:
    """Replace one value somewhere inside by any JSON."""
    while True:
        if isinstance(value, dict) and value:
            key: object = data.draw(st.sampled_from(sorted(value)))
        elif isinstance(value, list) and value:
            key = data.draw(st.integers(0, len(value) - 1))
        else:
            return
        inner = value[key]  # type: ignore[call-overload]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            value[key] = data.draw(_json)  # type: ignore[call-overload]
            return
        value = inner


@given(rubbish=st.binary(max_size=300) | _json.map(lambda value: repr(value).encode()))
def test_no_bytes_make_a_document_importer_raise(rubbish: bytes) -> None:
    found = [
        item
        for importer in DOCUMENT_IMPORTERS
        for item in importer.parse(io.BytesIO(rubbish), Origin(Path("x")))
    ]

    assert all(isinstance(item, Item) for item in found)


# Documents that only tell about a session, or are not JSON.
OTHER_DOCUMENTS = {
    "aider",
    "claude-code-agent-meta",
    "copilot-cli-workspace",
    "cursor-chat",
    "oneclaw-notes",
    "qwen-code-agent-meta",
    "squidbot-notes",
}


@cases(
    "row",
    [row for row in DOCUMENT_ROWS if row.name not in OTHER_DOCUMENTS],
    ids=lambda row: row.name,
)
@cases(
    "document",
    [b'{"hologram": 1}\n', b'{"sessionId": "a", "id": "a", "hologram": [1]}\n'],
)
def test_a_document_of_another_shape_is_a_problem_and_not_an_empty_session(
    row: FormatRow, document: bytes
) -> None:
    importer = row.load()
    assert importer.kind == "document"

    found = list(importer.parse(io.BytesIO(document), Origin(Path("/x/a.json"))))

    assert [item for item in found if isinstance(item, Problem)] != []


@cases("row", FORMATS, ids=lambda row: row.name)
def test_an_importer_does_not_recognize_rubbish(row: FormatRow) -> None:
    names = ["notes.md", "package.json", "log.jsonl", "data.db", "a.zip", "config.yaml"]
    heads = [b"", b"{}\n", b'{"a": 1}\n', b"# Notes\n", b"\x00\xff", b"[]"]

    taken = [
        (name, head)
        for name in names
        for head in heads
        if find_format(Path("/tmp/project") / name, head, [row])
    ]

    assert taken == []


# -- pieces ---


@cache
def _line_files(row: FormatRow) -> list[bytes]:
    return [
        file.read_bytes()
        for case in CASES
        if case.format == row.name
        for file in sorted(case.folder.rglob("*.jsonl"))
        if row.load().recognizes(file, file.read_bytes()[:65536])
    ]


@cache
def _recognized_sources() -> list[Source]:
    return [
        source
        for case in CASES
        for source in iter_recognized(case.folder, FORMATS)
        if isinstance(source, Source)
    ]


def _iter_documents(row: FormatRow) -> Iterator[Any]:
    """The samples of a format that are JSON; of a list, each item in one of its own."""
    for source in _recognized_sources():
        if source.format == row.name:
            with suppress(orjson.JSONDecodeError):
                document = orjson.loads(source.file.path.read_bytes())
                yield from (
                    ([item] for item in document)
                    if isinstance(document, list)
                    else [document]
                )


def _first_line_file(row: FormatRow) -> bytes:
    return next(data for data in _line_files(row) if data.count(b"\n") > 1)


def _parse(row: FormatRow, data: bytes) -> Iterator[Item]:
    read = list(LineReader(io.BytesIO(data)).records())
    yield from _parse_records(row, [item for item in read if isinstance(item, Record)])
    yield from (item for item in read if isinstance(item, Problem))


def _parse_records(row: FormatRow, records: list[Record]) -> list[Item]:
    importer = row.load()
    assert importer.kind == "lines"
    memo: Memo = {}
    origin = Origin(Path("/home/dev/sample/session.jsonl"))
    found = parse_records(importer, records, origin, memo)
    assert orjson.loads(orjson.dumps(memo)) == memo
    return found
