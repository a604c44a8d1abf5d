"""What every dialect must do, for every row of DIALECTS and every sample of it."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backstory.errors import BadQuery
from backstory.runs.dialects import (
    DIALECTS,
    find_dialect,
    find_said,
    parts_of,
    replace_results,
    to_plain,
)
from backstory.runs.dialects.base import Dialect, Part
from backstory.text.json_values import JsonObject
from backstory.values.history import Role
from backstory.values.structs import replace
from tests.dialect_samples import REPLIES, SAMPLES, SHARED, SHORT, Reply, Sample
from tests.grid import cases

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
WITH_RESULTS = [
    sample
    for sample in SAMPLES
    if any(part.role is Role.TOOL_RESULT for part in sample.parts)
]
# Keys of values that nobody reads: ids, types, settings, bytes, what is encrypted.
NO_WORDS = {
    "annotations",
    "audio_url",
    "beams",
    "cache_control",
    "call_id",
    "citations",
    "container_id",
    "detail",
    "data",
    "encrypted_content",
    "file_data",
    "file_id",
    "fingerprint",
    "format",
    "id",
    "image_url",
    "images",
    "kind",
    "media_type",
    "mimeType",
    "name",
    "outcome",
    "part_kind",
    "role",
    "server_label",
    "server_name",
    "signature",
    "speaker",
    "state",
    "status",
    "timestamp",
    "tool_call_id",
    "tool_use_id",
    "type",
}

each_sample = cases(
    "sample", SAMPLES, ids=lambda sample: f"{sample.dialect}-{sample.name}"
)
each_with_results = cases(
    "sample", WITH_RESULTS, ids=lambda sample: f"{sample.dialect}-{sample.name}"
)
each_reply = cases("reply", REPLIES, ids=lambda reply: reply.name)


def readable(value: object) -> str:
    """The same in every process, which pytest-xdist asks for."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def numbers_of_results(parts: list[Part]) -> list[int]:
    return [
        number for number, part in enumerate(parts) if part.role is Role.TOOL_RESULT
    ]


def all_short(parts: list[Part]) -> dict[int, str]:
    """The texts that make every result short; its media stay, and so do their marks."""
    return dict.fromkeys(numbers_of_results(parts), SHORT)


def recognizing(message: JsonObject) -> list[Dialect]:
    return [dialect for dialect in DIALECTS if dialect.recognizes(message)]


# -- reading --------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect_has_samples_of_its_own(dialect: Dialect) -> None:
    own = {sample.dialect for sample in SAMPLES if "shared" not in sample.name}

    assert dialect.name in own


@each_sample
def test_a_dialect_recognizes_its_own_samples(sample: Sample) -> None:
    assert BY_NAME[sample.dialect].recognizes(sample.message)


@each_sample
def test_a_sample_has_exactly_the_parts_that_are_expected(sample: Sample) -> None:
    before = copy.deepcopy(sample.message)

    assert BY_NAME[sample.dialect].parts(sample.message) == sample.parts
    assert sample.message == before


@each_sample
def test_all_dialects_that_recognize_a_message_read_the_same_in_it(
    sample: Sample,
) -> None:
    read = [dialect.parts(sample.message) for dialect in recognizing(sample.message)]

    assert read == [sample.parts] * len(read)
    assert parts_of(sample.message) == sample.parts


@pytest.mark.parametrize("message", [message for message, _ in SHARED], ids=readable)
def test_what_every_api_takes_is_recognized_by_all_its_dialects(
    message: JsonObject,
) -> None:
    named = [dialect.name for dialect in recognizing(message)]

    assert named == ["anthropic", "openai-chat", "openai-responses", "plain"]


@each_sample
def test_no_text_of_a_message_is_lost(sample: Sample) -> None:
    read = "\n".join(f"{part.tool_name} {part.text}" for part in sample.parts)

    lost = [
        text
        for text in texts_in(sample.message)
        if text not in read and json.dumps(text, ensure_ascii=False)[1:-1] not in read
    ]

    assert lost == []


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict) and not {value.get("type"), value.get("kind")} & {
        "url",
        "image",
        "image-url",
    }:
        for key, item in value.items():
            if is_for_readers(key, value):
                yield from texts_in(item)


def is_for_readers(key: str, within: JsonObject) -> bool:
    if (key, within.get("type")) in (
        ("data", "text"),  # a document that is a text
        ("result", "program_output"),
    ):
        return True
    return key not in NO_WORDS | {"result"}


def test_a_list_may_mix_dialects() -> None:
    messages: list[JsonObject] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "ls"}}]},
        {"type": "function_call_output", "call_id": "1", "output": "a"},
        {"role": "summary", "text": "They met."},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]},
    ]

    found = [(find_dialect(message).name, parts_of(message)) for message in messages]

    assert found == [
        ("anthropic", [Part(Role.USER, "Hi")]),
        ("openai-chat", [Part(Role.TOOL_CALL, "", "ls")]),
        ("openai-responses", [Part(Role.TOOL_RESULT, "a", None, "1")]),
        ("plain", [Part(Role.SUMMARY, "They met.")]),
        ("anthropic", [Part(Role.TOOL_RESULT, "", None, "1")]),
    ]


@pytest.mark.parametrize("role", Role)
def test_every_role_of_ours_is_understood(role: Role) -> None:
    parts = parts_of({"role": role.value, "text": "words"})

    assert parts == [Part(role, "words")]


# Shapes that no API promises, and that loops have all the same.
ODD = [
    (
        {"role": "assistant", "content": None, "tool_calls": {"name": "ls"}},
        [Part(Role.TOOL_CALL, "", "ls")],
    ),
    (
        {"role": "assistant", "tool_calls": ["ls -l", None]},
        [Part(Role.TOOL_CALL, "ls -l"), Part(Role.TOOL_CALL, "")],
    ),
    (
        {"role": "user", "content": [{"type": "text", "text": {"value": "a"}}, "b", 3]},
        [Part(Role.USER, '{"value":"a"}\nb\n3')],
    ),
    ({"role": "user", "content": {"a": "b"}}, [Part(Role.USER, '{"a":"b"}')]),
    ({"role": "user", "content": [{"type": "text"}, None]}, []),
    (
        {"role": "tool", "tool_call_id": 5, "content": {"ok": True}},
        [Part(Role.TOOL_RESULT, '{"ok":true}', None, "5")],
    ),
    (
        {"role": "tool", "content": "", "text": "a"},
        [Part(Role.TOOL_RESULT, "a")],
    ),
    (
        {"role": "tool", "content": ["a", "b"]},
        [Part(Role.TOOL_RESULT, '["a","b"]')],
    ),
    (
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm."}],
            "tool_calls": [{"id": "1", "function": {"name": "ls", "arguments": "{}"}}],
        },
        [Part(Role.SYSTEM, "Hm."), Part(Role.TOOL_CALL, "{}", "ls", "1")],
    ),
    (
        {"role": "user", "content": [{"type": "tool_result", "content": {"a": 1}}]},
        [Part(Role.TOOL_RESULT, '{"a":1}')],
    ),
]


@cases(("message", "parts"), ODD, ids=readable)
def test_odd_values_lose_no_text(message: JsonObject, parts: list[Part]) -> None:
    assert parts_of(message) == parts


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        ({}, "none"),
        ({"content": "Hi"}, "content"),
        ({"role": "wizard", "content": "Hi"}, "role, content"),
        ({"role": ["user"], "content": "Hi"}, "role, content"),
        ({"type": "text", "text": "Hi"}, "type, text"),
        ({"\x1b[31m\n\ud83d": 1, "b": 2}, "␛[31m �, b"),
        ({"k" * 500: 1}, "k" * 99 + "…"),
    ],
    ids=["nothing", "no role", "strange role", "odd role", "block", "escape", "long"],
)
def test_a_message_in_no_known_shape_is_refused_by_its_keys(
    message: JsonObject, keys: str
) -> None:
    with pytest.raises(BadQuery) as caught:
        find_dialect(message)

    assert str(caught.value) == f"a message in an unknown format (its keys: {keys})"


# -- replacing ------------------------------------------------------------------------


@each_sample
def test_replacing_results_changes_their_text_and_nothing_else(sample: Sample) -> None:
    before = copy.deepcopy(sample.message)

    changed = replace_results(sample.message, all_short(sample.parts))

    assert changed == (sample.trimmed or before)
    assert changed is not sample.message
    assert sample.message == before


@each_with_results
def test_replacing_one_result_leaves_the_others(sample: Sample) -> None:
    number = numbers_of_results(sample.parts)[0]

    changed = replace_results(sample.message, {number: SHORT, 99: SHORT})

    read = parts_of(changed)
    rest = [part for place, part in enumerate(read) if place != number]
    assert rest == [part for place, part in enumerate(sample.parts) if place != number]


@each_with_results
def test_replacing_with_the_same_text_changes_nothing(sample: Sample) -> None:
    texts = {place: sample.parts[place].text for place in range(len(sample.parts))}

    assert replace_results(sample.message, texts) == sample.message


@each_with_results
def test_a_text_that_ends_with_the_marks_is_read_back_as_it_was_given(
    sample: Sample,
) -> None:
    shorter = [
        part
        if part.is_fixed or part.role is not Role.TOOL_RESULT
        else replace(part, text="\n".join([SHORT, *marks_of(part)]))
        for part in sample.parts
    ]

    changed = replace_results(
        sample.message, {place: part.text for place, part in enumerate(shorter)}
    )

    assert parts_of(changed) == shorter


def marks_of(part: Part) -> list[str]:
    return part.text.split("\n")[-part.media :] if part.media else []


def test_what_is_no_result_is_never_replaced() -> None:
    message = {"role": "assistant", "content": "Hi", "tool_calls": [{"name": "ls"}]}

    assert replace_results(message, {0: SHORT, 1: SHORT}) == message


# -- rubbish --------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
_words = st.sampled_from(
    ["text", "image", "tool_use", "tool_result", "message", "function_call", "tool"]
)
_keys = st.sampled_from(
    ["role", "type", "content", "text", "tool_calls", "source", "output", "name"]
)
_shaped = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner),
    max_leaves=12,
)


# A type that names an item of an API, and a role that names a speaker.
TYPE_AND_ROLE = [
    (
        {"type": "function_call", "role": "tool_result", "content": None},
        "openai-responses",
        [Part(Role.TOOL_CALL, "")],
    ),
    (
        {"type": "function_call", "role": "assistant", "name": "ls", "arguments": "{}"},
        "openai-responses",
        [Part(Role.TOOL_CALL, "{}", "ls")],
    ),
    (
        {"type": "function_call_output", "role": "tool", "output": "a"},
        "openai-responses",
        [Part(Role.TOOL_RESULT, "a")],
    ),
    (
        {"type": "reasoning", "role": "assistant", "content": "Hm."},
        "openai-responses",
        [Part(Role.SYSTEM, "Hm.")],
    ),
    (
        {"type": "function_call_output", "role": "tool", "content": "a"},
        "plain",
        [Part(Role.TOOL_RESULT, "a")],
    ),
    (
        {"type": "function_call", "role": "assistant", "tool_calls": [{"name": "ls"}]},
        "plain",
        [Part(Role.TOOL_CALL, "", "ls")],
    ),
]


@pytest.mark.parametrize(("message", "dialect", "parts"), TYPE_AND_ROLE, ids=readable)
def test_a_message_with_a_type_and_a_role_is_read_where_its_words_are(
    message: JsonObject, dialect: str, parts: list[Part]
) -> None:
    assert [each.name for each in recognizing(message)] == [dialect]
    assert parts_of(message) == parts


@given(data=st.data(), sample=st.sampled_from(SAMPLES), rubbish=_json | _shaped)
def test_rubbish_in_any_field_never_raises(
    data: st.DataObject, sample: Sample, rubbish: object
) -> None:
    message = copy.deepcopy(sample.message)
    holder: JsonObject = data.draw(st.sampled_from(list(objects_in(message))))
    holder[data.draw(st.sampled_from(list(holder)))] = rubbish

    assert_all_agree(message)


@given(_shaped | st.dictionaries(_keys | st.text(max_size=3), _json | _shaped))
@example({"type": "function_call", "role": "tool_result", "content": None})
def test_rubbish_is_refused_or_read(message: object) -> None:
    plain = message if isinstance(message, dict) else {"role": "user", "text": message}

    assert_all_agree(plain)


def objects_in(value: object) -> Iterator[JsonObject]:
    """Every object in a JSON value that has a field."""
    if isinstance(value, dict) and value:
        yield value
        for item in value.values():
            yield from objects_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from objects_in(item)


def assert_all_agree(message: JsonObject) -> None:
    """Every dialect reads and replaces; those that recognize it read the same."""
    before = repr(message)
    for dialect in DIALECTS:
        parts = dialect.parts(message)
        changed = dialect.replace_results(message, all_short(parts))
        assert all(part.text or "TOOL" in part.role.name for part in parts)
        assert [part.role for part in dialect.parts(changed)] == [
            part.role for part in parts
        ]
    read = [dialect.parts(message) for dialect in recognizing(message)]
    assert read == read[:1] * len(read)
    assert isinstance(find_said(message), list | None)
    assert repr(message) == before


def test_a_message_without_end_is_refused() -> None:
    message: JsonObject = {"role": "user"}
    message["content"] = [message]

    with pytest.raises(BadQuery, match="nested too deeply"):
        parts_of(message)


# -- objects --------------------------------------------------------------------------


class SdkObject:
    """Stands for the objects of the providers' packages, which are not installed here.

    Like theirs its ``model_dump`` takes options, and dumps what it is made of.
    """

    def __init__(self, **values: object) -> None:
        self._values = values

    def model_dump(
        self,
        *,
        mode: str = "python",
        by_alias: bool = False,
        exclude_none: bool = False,
        warnings: bool = True,
    ) -> JsonObject:
        dumped = {
            key: as_dumped(value)
            for key, value in self._values.items()
            if value is not None or not exclude_none
        }
        return dumped if mode == "json" else {**dumped, "mode": mode}


class StrictObject:
    """An object whose ``model_dump`` takes no options."""

    def model_dump(self) -> JsonObject:
        return {"role": "user", "content": "Hi"}


class BrokenObject:
    """An object that cannot be dumped."""

    def model_dump(self, **options: object) -> JsonObject:
        raise ValueError("no")


def as_dumped(value: object) -> object:
    match value:
        case SdkObject():
            return value.model_dump(mode="json", exclude_none=True)
        case list():
            return [as_dumped(item) for item in value]
        case _:
            return value


def to_objects(value: object) -> object:
    """The same JSON with an object of an SDK for every dict that has a type or role."""
    if isinstance(value, list):
        return [to_objects(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: to_objects(item) for key, item in value.items()}
    return SdkObject(**fields) if {"type", "role"} & fields.keys() else fields


@dataclass
class Turn:
    """A message as somebody's own loop may have it."""

    role: str
    content: object
    name: str | None = None
    _secret: str = "none of it"


class Speaker:
    """An object that is nothing but its attributes."""

    def __init__(self) -> None:
        self.role = "user"
        self.content = "Hi"
        self._client = object()


@each_sample
def test_objects_are_read_as_the_messages_they_stand_for(sample: Sample) -> None:
    assert parts_of(to_objects(sample.message)) == sample.parts


@each_with_results
def test_results_in_objects_are_replaced_in_a_plain_copy(sample: Sample) -> None:
    plain = to_plain(to_objects(sample.message))
    texts = all_short(sample.parts)

    changed = replace_results(to_objects(sample.message), texts)

    assert changed == replace_results(plain, texts)


@pytest.mark.parametrize(
    "message",
    [
        SdkObject(role="user", content="Hi", name=None),
        StrictObject(),
        Turn("user", "Hi"),
        SimpleNamespace(role="user", content="Hi", name=None),
        Speaker(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_an_object_is_made_plain(message: object) -> None:
    assert to_plain(message) == {"role": "user", "content": "Hi"}


def test_objects_within_a_dict_are_made_plain_too() -> None:
    message = {
        "role": "assistant",
        "content": (SdkObject(type="text", text="Hi"), Turn("a", ["b"])),
    }

    assert to_plain(message) == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}, {"role": "a", "content": ["b"]}],
    }


@each_sample
def test_a_plain_message_is_not_copied(sample: Sample) -> None:
    assert to_plain(sample.message) is sample.message


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Hi", "str"),
        (None, "NoneType"),
        ([{"role": "user"}], "list"),
        (iter([]), "list_iterator"),
        (object(), "object"),
        (Turn, "type"),
        (BrokenObject(), "BrokenObject"),
    ],
    ids=readable,
)
def test_what_is_no_message_is_refused_by_its_kind(message: object, kind: str) -> None:
    with pytest.raises(BadQuery) as caught:
        to_plain(message)

    assert str(caught.value) == f"a message that is a {kind}, not a dict"


# -- replies --------------------------------------------------------------------------


@each_reply
def test_the_messages_in_a_reply_are_found(reply: Reply) -> None:
    assert find_said(reply.reply) == reply.said
    assert all(isinstance(parts_of(message), list) for message in reply.said)


@each_reply
def test_the_messages_in_a_reply_that_is_an_object_are_found(reply: Reply) -> None:
    said = [to_plain(to_objects(message)) for message in reply.said]

    assert find_said(SdkObject(**fields_of(reply.reply))) == said


def fields_of(reply: JsonObject) -> JsonObject:
    return {key: to_objects(value) for key, value in reply.items()}


@cases(
    "reply",
    [
        None,
        "Hi",
        5,
        [],
        {},
        {"choices": []},
        {"choices": None, "output": 5, "content": {}},
        {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "H"}}]},
        {"done": False, "message": {"role": "assistant", "content": "H"}},
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "response.output_text.delta", "delta": "H"},
        {"error": {"message": "no"}, "message": "no"},
        BrokenObject(),
        SimpleNamespace(response=object()),
    ],
    ids=readable,
)
def test_what_is_no_reply_has_no_messages(reply: object) -> None:
    assert find_said(reply) is None


def test_a_stream_is_not_consumed() -> None:
    stream = ({"role": "assistant", "content": letter} for letter in "ab")

    assert find_said(stream) is None
    assert len(list(stream)) == 2
