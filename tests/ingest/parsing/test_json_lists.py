"""Exports: cut into conversations whatever their size and damage."""

import io
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backstory.ingest.importers import get_format
from backstory.ingest.importers.base import (
    Origin,
)
from backstory.ingest.parsing import json_lists
from backstory.ingest.parsing.json_lists import ListItem, iter_items
from backstory.text.json_values import (
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.moments import from_microseconds
from tests.grid import cases
from tests.samples import TRANSCRIPTS

SAMPLES = {
    "chatgpt": TRANSCRIPTS / "chatgpt/branches-tools-and-media/files",
    "claude-ai": TRANSCRIPTS / "claude-ai/tools-and-attachments/files",
}

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
texts = st.recursive(
    st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def read(
    data: bytes, *, max_bytes: int = json_lists.MAX_ITEM_BYTES
) -> list[ListItem | Problem]:
    return list(iter_items(io.BytesIO(data), max_bytes=max_bytes))


def parse(format_name: str, data: bytes) -> list[Item]:
    importer = get_format(format_name).load()
    assert importer.kind == "document"
    return list(importer.parse(io.BytesIO(data), Origin(Path("conversations.json"))))


def sample(format_name: str) -> Any:
    return orjson.loads((SAMPLES[format_name] / "conversations.json").read_bytes())


each_export = pytest.mark.parametrize("format_name", sorted(SAMPLES))


# -- cutting --------------------------------------------------------------------------


@given(
    objects=st.lists(st.dictionaries(st.text(), texts), max_size=5),
    chunk_bytes=st.integers(1, 40),
    indent=st.none() | st.integers(0, 2),
)
@example([{"a": '\\"]}', "b": ["\\", "[{"]}], 1, None)
def test_a_list_is_cut_into_its_items_wherever_a_chunk_ends(
    objects: list[dict[str, Any]], chunk_bytes: int, indent: int | None
) -> None:
    data = json.dumps(objects, indent=indent).encode()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lists, "_CHUNK", chunk_bytes)
        found = read(data)

    assert found == [
        ListItem(f"conversation {number}", item)
        for number, item in enumerate(objects, start=1)
    ]


@cases(
    ("data", "expected"),
    [
        (b"", []),
        (b" \n", []),
        (b"[]", []),
        (b'{"a": 1}', [Problem("not a list of conversations")]),
        (b"\xef\xbb\xbf[{}]", [ListItem("conversation 1", {})]),
        (
            b'[{}, "text", {}]',
            [
                ListItem("conversation 1", {}),
                Problem("something after conversation 1 is not one"),
                ListItem("conversation 2", {}),
            ],
        ),
        (
            b"[{}",
            [
                ListItem("conversation 1", {}),
                Problem("the file ends after conversation 1; it is cut off"),
            ],
        ),
        (
            b'[{}, {"a',
            [
                ListItem("conversation 1", {}),
                Problem(
                    "the file ends in the middle of conversation 2, "
                    "which cannot be read"
                ),
            ],
        ),
        (
            b"[{}] and more",
            [
                ListItem("conversation 1", {}),
                Problem("what follows the list of conversations was not read"),
            ],
        ),
        (
            b'[{"a": "\\ud83d"}, {"a": "\\udc00"}]',
            [
                Problem(
                    "half characters or other things that JSON forbids were "
                    "replaced, first in conversation 1"
                ),
                ListItem("conversation 1", {"a": "\N{REPLACEMENT CHARACTER}"}),
                ListItem("conversation 2", {"a": "\N{REPLACEMENT CHARACTER}"}),
            ],
        ),
        (
            b'[{"a": "\xff"}, {"a": "\xfe"}]',
            [
                Problem(
                    "bytes that are not UTF-8 were replaced, first in conversation 1"
                ),
                ListItem("conversation 1", {"a": "\N{REPLACEMENT CHARACTER}"}),
                ListItem("conversation 2", {"a": "\N{REPLACEMENT CHARACTER}"}),
            ],
        ),
        (
            b"[" + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b", {}]",
            [
                Problem("conversation 1 is nested too deeply to be read"),
                ListItem("conversation 2", {}),
            ],
        ),
    ],
)
def test_damage_costs_only_what_it_hits(
    data: bytes, expected: list[ListItem | Problem]
) -> None:
    assert read(data) == expected


def test_a_conversation_that_is_too_long_is_left_out() -> None:
    data = orjson.dumps([{"a": 1}, {"a": "x" * 100}, {"a": 2}])

    found = read(data, max_bytes=50)

    assert found == [
        ListItem("conversation 1", {"a": 1}),
        Problem("conversation 2 has 108 bytes, too long to read"),
        ListItem("conversation 3", {"a": 2}),
    ]


class _Endless(io.RawIOBase):
    """An export of many conversations that is never in memory as a whole."""

    def __init__(self, conversations: int) -> None:
        self._pieces = self._make(conversations)
        self._rest = b""

    def _make(self, conversations: int) -> Iterator[bytes]:
        yield b"[{}"
        for _ in range(conversations):
            yield b"," + orjson.dumps({"text": "word " * 20_000})
        yield b"]"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or next(self._pieces, b"")
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def test_memory_does_not_grow_with_the_length_of_an_export() -> None:
    tracemalloc.start()

    count = sum(1 for _ in iter_items(io.BufferedReader(_Endless(300))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == 301
    assert peak < 5_000_000


def test_json_nested_too_deeply_for_python_is_still_text() -> None:
    value: list[Any] = []
    for _ in range(20_000):
        value = [value]

    assert compact_json(value) == "[nested too deeply to be shown]"


# -- never raising --------------------------------------------------------------------


def spoil(value: Any, data: st.DataObject) -> None:
    """Replace one value somewhere inside by any JSON."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = data.draw(st.sampled_from(keys))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            value[key] = data.draw(any_json)
            return
        value = inner


@each_export
@given(data=st.data())
def test_no_spoiled_export_makes_an_importer_raise(
    format_name: str, data: st.DataObject
) -> None:
    export = sample(format_name)
    spoil(export, data)
    spoil(export, data)
    spoil(export, data)

    found = parse(format_name, json.dumps(export).encode())

    assert all(isinstance(item, SessionFacts | NewMessage | Problem) for item in found)


@each_export
@given(data=st.data())
def test_no_damaged_bytes_make_an_importer_raise(
    format_name: str, data: st.DataObject
) -> None:
    export = bytearray(orjson.dumps(sample(format_name)))
    start = data.draw(st.integers(0, len(export)))
    end = data.draw(st.integers(start, start + 20))
    export[start:end] = data.draw(st.binary(max_size=20))

    found = parse(format_name, bytes(export))

    assert all(isinstance(item, SessionFacts | NewMessage | Problem) for item in found)


# -- what the samples do not show -----------------------------------------------------


def test_a_chatgpt_conversation_without_an_id_is_known_by_its_time() -> None:
    node = {
        "message": {
            "author": {"role": "user"},
            "content": {"content_type": "text", "parts": ["Hello"]},
        },
        "parent": None,
    }
    export = [{"create_time": 1700000000.5, "mapping": {"n": node}}]

    found = parse("chatgpt", orjson.dumps(export))

    session_id = "b2:40c076f6478864c99a1a8744"
    assert found == [
        SessionFacts(session_id, started=from_microseconds(1700000000500000)),
        NewMessage(session_id, "n", Role.USER, "Hello"),
    ]
