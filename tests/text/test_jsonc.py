"""Settings with comments are edited in place: nothing else in the file changes."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backstory.text.jsonc import (
    JsoncError,
    append_item,
    find_node,
    parse_jsonc,
    remove_node,
    set_member,
)
from tests.grid import cases

ENTRY = {"command": "backstory", "args": ["mcp"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "{}",
            '{\n  "servers": {\n    "b": 1\n  }\n}',
            id="an empty object",
        ),
        pytest.param(
            '{\n\t"theme": "dark" // mine\n}\n',
            '{\n\t"theme": "dark", // mine\n\t"servers": {\n\t\t"b": 1\n\t}\n}\n',
            id="tabs, and a comment behind the last member",
        ),
        pytest.param(
            '{\r\n  "servers": {\r\n    "a": 2,\r\n  },\r\n}',
            '{\r\n  "servers": {\r\n    "a": 2,\r\n    "b": 1,\r\n  },\r\n}',
            id="Windows line ends and trailing commas",
        ),
        pytest.param(
            '{"servers": {"a": 2}}', '{"servers": {"a": 2, "b": 1}}', id="one line"
        ),
        pytest.param(
            '{"servers":{"a":2,"c":3}}',
            '{"servers":{"a":2,"c":3,"b": 1}}',
            id="no spaces",
        ),
        pytest.param(
            '{\n  "servers": {\n    // none yet\n  }\n}',
            '{\n  "servers": {\n    // none yet\n    "b": 1\n  }\n}',
            id="an object with a comment alone",
        ),
        pytest.param(
            '\ufeff/* top */\n{\n  "servers": {} /* s */\n}',
            '\ufeff/* top */\n{\n  "servers": {\n    "b": 1\n  } /* s */\n}',
            id="a byte order mark, and comments around",
        ),
        pytest.param(
            '{\n  "servers": {\n    "b": {\n      "old": true\n    }\n  }\n}',
            '{\n  "servers": {\n    "b": 1\n  }\n}',
            id="a member that is there is replaced",
        ),
        pytest.param(
            '{"servers": {"b": 0, "b": 2}}',
            '{"servers": {"b": 0, "b": 1}}',
            id="of two with one name the last counts",
        ),
    ],
)
def test_a_member_is_set_in_the_style_of_its_surroundings(
    before: str, after: str
) -> None:
    assert set_member(before, ("servers", "b"), 1) == after


def test_an_item_is_appended_in_the_style_of_its_surroundings() -> None:
    before = '{\n  "hooks": {\n    "Start": [\n      {"a": 1} // first\n    ]\n  }\n}'

    after = append_item(before, ("hooks", "Start"), {"b": 2})

    assert after == (
        '{\n  "hooks": {\n    "Start": [\n      {"a": 1}, // first\n'
        '      {\n        "b": 2\n      }\n    ]\n  }\n}'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            '{\n  "a": 1, // one\n  // ours?\n  "b": 2, // two\n  "c": 3\n}',
            '{\n  "a": 1, // one\n  // ours?\n   // two\n  "c": 3\n}',
            id="from the middle; comments stay",
        ),
        pytest.param(
            '{"a": 1, "b": 2}', '{"a": 1}', id="the last, with the comma before it"
        ),
        pytest.param('{"a": 1, "b": 2,}', '{"a": 1,}', id="with a trailing comma"),
        pytest.param('{"b": 2, "a": 1}', '{ "a": 1}', id="the first"),
        pytest.param('{\n  "b": 2\n}', "{}", id="the only one"),
        pytest.param(
            '{\n  // note\n  "b": 2\n}', "{\n  // note\n}", id="all but a comment"
        ),
        pytest.param('{"a": 1}', '{"a": 1}', id="what is not there"),
    ],
)
def test_a_member_is_removed_and_nothing_else(before: str, after: str) -> None:
    assert remove_node(before, ("b",)) == after


@cases(
    ("text", "reason"),
    [
        ("", "line 1, column 1: the text ends too early"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: expected a comma or }"),
        ('{"a" 1}', "line 1, column 6: expected a colon"),
        ("{a: 1}", "line 1, column 2: expected a name in double quotes"),
        ('{"a": }', "line 1, column 7: a value is missing"),
        ('{"a": "x', "line 1, column 7: a string is not valid, or not closed"),
        ('{"a": "\\q"}', "line 1, column 7: a string is not valid, or not closed"),
        ("{} x", "line 1, column 4: something follows the end of the value"),
        ("/* x", "line 1, column 1: a comment is not closed"),
        ("[" * 300, "line 1, column 202: nested too deeply"),
        ("[1 2]", "line 1, column 4: expected a comma or ]"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(JsoncError) as caught:
        parse_jsonc(text)

    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("[]", ("a",), "line 1, column 1: the file is not an object"),
        ('{"a": 1}', ("a", "b"), "line 1, column 7: 'a' is not an object"),
        ('{"a":\n{"b": ""}}', ("a", "b", "c"), "line 2, column 7: 'a.b' is not an"),
    ],
)
def test_a_member_is_not_set_in_what_is_no_object(
    text: str, path: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(JsoncError, match=reason):
        set_member(text, path, 1)


def test_an_item_is_not_appended_to_what_is_no_list() -> None:
    with pytest.raises(JsoncError, match="column 7: 'a' is not a list"):
        append_item('{"a": {}}', ("a",), 1)


# -- laws -----------------------------------------------------------------------------

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(-9, 9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
SPACES = st.sampled_from(
    ["", " ", "\n", "\n  ", "\n\t\t", "\r\n", " // c\n", "/* } */", "\n  // ,\n  "]
)


@st.composite
def written(draw: st.DrawFn, value: object) -> str:
    """A value as a person may write it: with comments, odd spaces, trailing commas."""

    def space() -> str:
        return draw(SPACES)

    if isinstance(value, dict):
        parts = [
            f"{space()}{json.dumps(key)}{space()}:{space()}{draw(written(inner))}"
            for key, inner in value.items()
        ]
    elif isinstance(value, list):
        parts = [space() + draw(written(inner)) for inner in value]
    else:
        return json.dumps(value)
    has_end: bool = draw(st.booleans())
    end = "," if parts and has_end else ""
    body = f"{space()},".join(parts) + space() + end + space()
    return f"{{{body}}}" if isinstance(value, dict) else f"[{body}]"


OBJECTS = st.dictionaries(st.sampled_from("abc"), PLAIN, max_size=3)
PATHS = st.lists(st.sampled_from("abxy"), min_size=1, max_size=3).map(
    lambda keys: [*keys, "ours"]
)


def with_member(value: object, path: Sequence[str], new: object) -> object:
    key, *rest = path
    inner = value if isinstance(value, dict) else {}
    return {**inner, key: with_member(inner.get(key), rest, new) if rest else new}


def can_hold(value: object, path: Sequence[str]) -> bool:
    """Whether nothing but objects is on the way."""
    if not isinstance(value, dict):
        return False
    return path[0] not in value or not path[1:] or can_hold(value[path[0]], path[1:])


@given(st.data(), OBJECTS)
def test_what_is_parsed_is_what_was_written(
    data: st.DataObject, value: dict[str, object]
) -> None:
    assert parse_jsonc(data.draw(written(value))).value == value


@given(st.data(), OBJECTS, PATHS)
def test_setting_a_member_changes_that_member_alone(
    data: st.DataObject, value: dict[str, object], path: list[str]
) -> None:
    text = data.draw(written(value))

    assume(can_hold(value, path))
    after = set_member(text, path, ENTRY)

    assert parse_jsonc(after).value == with_member(value, path, ENTRY)


@given(st.data(), OBJECTS, PATHS)
def test_removing_what_was_set_gives_the_text_back_but_for_spaces_in_brackets(
    data: st.DataObject, value: dict[str, object], path: list[str]
) -> None:
    text = data.draw(written(value))
    root = parse_jsonc(text)
    there = [n for n in range(len(path)) if find_node(root, path[:n])]
    made = path[: max(there) + 1]

    assume(can_hold(value, path))
    after = set_member(text, path, ENTRY)
    back = remove_node(after, made)

    parent = find_node(root, made[:-1])
    assert parent is not None
    inner = text[parent.start + 1 : parent.end - 1]
    around = (text[: parent.start + 1], text[parent.end - 1 :])
    assert back.startswith(around[0])
    assert back.endswith(around[1])
    inner_back = back[len(around[0]) : len(back) - len(around[1])]
    if parent.children:
        assert inner_back == inner
    else:
        assert inner_back.strip() == inner.strip()


@given(st.data(), OBJECTS.filter(bool))
def test_removing_a_member_removes_that_member_alone(
    data: st.DataObject, value: dict[str, object]
) -> None:
    text = data.draw(written(value))
    key = data.draw(st.sampled_from(sorted(value)))

    left = parse_jsonc(remove_node(text, (key,))).value

    assert left == {name: each for name, each in value.items() if name != key}


@given(st.text(alphabet='{}[]",:/* \n\\at1u', max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse_jsonc(text)
    except JsoncError:
        return
