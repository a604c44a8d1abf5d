"""The tools: what they say of themselves, what they refuse, and what they answer."""

import asyncio
import inspect
import logging
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from backstory.errors import StoreLocked, UnknownName
from backstory.memory import Memory
from backstory.render.object_schemas import RECALLED_SCHEMA
from backstory.settings import read_settings
from backstory.system.machine import Machine
from backstory.text.escape import UNSAFE
from backstory.text.tokens import most_tokens
from backstory.tools import (
    ALL_TOOLS,
    TOOLS,
    Tool,
    ToolResult,
    ToolRow,
    bind_tools,
    schemas,
)
from backstory.values.hits import SearchResult
from tests.chance import SOAK
from tests.samples import a_memory

BY_WORDS = ("embedder.name=none",)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory that searches by words alone, which needs no model."""
    with a_memory(tmp_path, settings=BY_WORDS) as opened:
        yield opened


def talk(memory: Memory) -> None:
    """Have two conversations."""
    dinner = datetime(2026, 2, 25, 12, tzinfo=UTC)
    memory.record(
        "s1",
        "user",
        "Can you help me find a good sushi restaurant near Shibuya station?",
        title="Dinner Planning",
        sent_at=dinner,
    )
    memory.record(
        "s1",
        "assistant",
        "Sakura Sushi. Its booking password = hunter2x",
        sent_at=dinner + timedelta(minutes=1),
    )
    memory.record(
        "s1",
        "tool_call",
        {"command": "ls tables"},
        tool_name="Bash",
        call_id="c1",
        sent_at=dinner + timedelta(minutes=2),
    )
    memory.record(
        "s1",
        "tool_result",
        "reservations.csv",
        call_id="c1",
        sent_at=dinner + timedelta(minutes=3),
    )
    memory.record("s1", "user", "Thank you!", sent_at=dinner + timedelta(minutes=4))
    memory.record(
        "s2",
        "user",
        "Which database shall we take?",
        title="Storage",
        sent_at=datetime(2026, 3, 1, 9, tzinfo=UTC),
    )


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory of two conversations; copied, never changed."""
    folder = tmp_path_factory.mktemp("talked")
    with a_memory(folder, settings=BY_WORDS) as memory:
        talk(memory)
        memory.search("anything")
    return folder


@pytest.fixture
def used(talked: Path, tmp_path: Path) -> Iterator[Memory]:
    """A memory with two conversations in it."""
    shutil.copytree(talked, tmp_path, dirs_exist_ok=True)
    with a_memory(tmp_path, settings=BY_WORDS) as memory:
        yield memory


def tool(memory: Memory, name: str = "search_history") -> Tool:
    return next(each for each in bind_tools(memory) if each.name == name)


# -- what they say of themselves ---


def test_search_history_describes_itself_as_designed(memory: Memory) -> None:
    assert schemas([tool(memory)], "plain") == [
        {
            "name": "search_history",
            "description": "Search past conversation history, memory, and daily logs "
            "for information the user mentioned before. read_session opens what it "
            "finds.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "Search keywords or phrase",
                    },
                    "scope": {
                        "type": "string",
                        "enum": ["all", "memory", "daily_log", "sessions"],
                        "default": "all",
                        "description": "Data sources to search. One of: "
                        '"all" (default), "memory", "daily_log", "sessions".',
                    },
                    "date_from": {
                        "type": "string",
                        "description": "Start date filter in YYYY-MM-DD format",
                    },
                    "date_to": {
                        "type": "string",
                        "description": "End date filter in YYYY-MM-DD format",
                    },
                    "days": {
                        "type": "integer",
                        "default": 0,
                        "description": "Only the last N days, today included. "
                        "Default: 0, all of them",
                    },
                    "max_results": {
                        "type": "integer",
                        "default": 10,
                        "maximum": 50,
                        "description": "Maximum number of results to return. "
                        "Default: 10",
                    },
                    "view": {
                        "type": "string",
                        "enum": ["ranked", "episodes"],
                        "default": "ranked",
                        "description": 'How to show results. "ranked" (default): '
                        'excerpts, best first. "episodes": messages that contain the '
                        "query, newest first, each with the messages before and after "
                        "it.",
                    },
                    "project": {
                        "type": "string",
                        "description": "Only conversations in this folder or below it: "
                        "its path, or its name",
                    },
                    "host": {
                        "type": "string",
                        "description": "Only conversations of this agent program, such "
                        "as claude-code",
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        }
    ]


MEMORY_SEARCH_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Natural language search query"},
        "source_type": {
            "type": "string",
            "enum": ["conversation", "file", "all"],
            "default": "all",
            "description": "Filter by source type",
        },
        "limit": {"type": "integer", "default": 10, "maximum": 25},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "openai",
            {
                "type": "function",
                "function": {
                    "name": "memory_search",
                    "description": "…",
                    "parameters": MEMORY_SEARCH_SCHEMA,
                },
            },
        ),
        (
            "anthropic",
            {
                "name": "memory_search",
                "description": "…",
                "input_schema": MEMORY_SEARCH_SCHEMA,
            },
        ),
        (
            "mcp",
            {
                "name": "memory_search",
                "title": "Search memory for context",
                "description": "…",
                "inputSchema": MEMORY_SEARCH_SCHEMA,
                "outputSchema": {
                    "type": "object",
                    "properties": {"results": RECALLED_SCHEMA},
                    "required": ["results"],
                },
                "annotations": {
                    "readOnlyHint": True,
                    "destructiveHint": False,
                    "idempotentHint": True,
                    "openWorldHint": False,
                },
            },
        ),
        (
            "plain",
            {
                "name": "memory_search",
                "description": "…",
                "parameters": MEMORY_SEARCH_SCHEMA,
            },
        ),
    ],
)
def test_memory_search_describes_itself_as_designed_to_every_api(
    memory: Memory, name: str, expected: dict[str, object]
) -> None:
    recall = tool(memory, "memory_search")
    described = recall.description

    assert described == (
        "Search past conversations and workspace files for relevant context. "
        "Use this when you need to recall previous discussions, decisions, "
        "or information from earlier sessions."
    )
    said = str(schemas([recall], name)).replace(described, "…")
    assert said == str([expected])


def test_an_unknown_api_is_refused_with_the_nearest(memory: Memory) -> None:
    with pytest.raises(UnknownName, match="'openia'") as raised:
        schemas(bind_tools(memory), "openia")

    assert raised.value.hint == "did you mean 'openai'?"


def test_a_schema_may_be_changed_without_harm(memory: Memory) -> None:
    mine = tool(memory).parameters
    mine.clear()

    assert tool(memory).parameters["type"] == "object"


@pytest.mark.parametrize("row", ALL_TOOLS, ids=lambda row: row.name)
def test_every_tool_refuses_arguments_that_it_does_not_know(row: ToolRow[Any]) -> None:
    assert row.parameters["additionalProperties"] is False


@pytest.mark.parametrize("row", ALL_TOOLS, ids=lambda row: row.name)
def test_a_setting_turns_a_tool_off(tmp_path: Path, row: ToolRow[Any]) -> None:
    with a_memory(tmp_path, settings=(f"{row.setting}=false",)) as memory:
        left = [each.name for each in memory.tools(run=memory.new_run())]

    assert left == [each.name for each in ALL_TOOLS if each is not row]


def test_without_a_run_there_are_no_tools_for_one(memory: Memory) -> None:
    assert [each.name for each in memory.tools()] == [each.name for each in TOOLS]


# -- what they refuse ---

REQUIRED = "Parameter 'query' is required and cannot be empty"
SCOPES = "Must be one of: all, memory, daily_log, sessions"
NAMES = "query, scope, date_from, date_to, days, max_results, view, project, host"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, REQUIRED),
        (None, REQUIRED),
        ({"query": ""}, REQUIRED),
        ({"query": " \n\t"}, REQUIRED),
        ({"query": None}, REQUIRED),
        ({"query": 5}, "Parameter 'query' must be a string: 5"),
        ({"query": ["x"]}, "Parameter 'query' must be a string: ['x']"),
        ({"query": "x", "scope": "messages"}, f"Invalid scope 'messages'. {SCOPES}"),
        ({"query": "x", "scope": ""}, f"Invalid scope ''. {SCOPES}"),
        ({"query": "x", "scope": "ALL"}, f"Invalid scope 'ALL'. {SCOPES}"),
        ({"query": "x", "scope": 5}, f"Invalid scope '5'. {SCOPES}"),
        ({"query": "x", "scope": "a\n--- b"}, f"Invalid scope 'a --- b'. {SCOPES}"),
        (
            {"query": "x", "view": "list"},
            "Invalid view 'list'. Must be one of: ranked, episodes",
        ),
        (
            {"query": "x", "view": "episodes", "scope": "memory"},
            "Invalid scope 'memory' for view 'episodes', which shows conversations. "
            "Must be one of: all, sessions",
        ),
        (
            {"query": "x", "view": "episodes", "scope": "daily_log"},
            "Invalid scope 'daily_log' for view 'episodes', which shows conversations. "
            "Must be one of: all, sessions",
        ),
        (
            {"query": "x", "limit": 5},
            f"Unknown parameter 'limit'. Must be one of: {NAMES}",
        ),
        (["x"], "Arguments must be a JSON object: ['x']"),
    ],
)
def test_bad_arguments_are_refused_in_the_words_of_the_spec(
    memory: Memory, arguments: dict[str, object], expected: str
) -> None:
    found = tool(memory).call(arguments)

    assert found == ToolResult(expected, None, "validation_error")


@pytest.mark.parametrize("name", ["date_from", "date_to"])
@pytest.mark.parametrize(
    "value",
    [
        "2026-2-5",
        "2026-02-30",
        "20260225",
        "2026-02-25T00:00",
        "2026-W09-3",
        " 2026-02-25",
        "02/25/2026",
        "yesterday",
        "",
        "0000-01-01",
        "２０２６-02-25",
        20260225,
        2026.5,
    ],
)
def test_a_date_has_one_form_only(memory: Memory, name: str, value: object) -> None:
    found = tool(memory).call({"query": "x", name: value})

    said = str(value).strip()
    expected = f"Date must be in YYYY-MM-DD format: {said}"
    assert found == ToolResult(expected, None, "validation_error")


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("search_history", "max_results"),
        ("search_history", "days"),
        ("memory_search", "limit"),
    ],
)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("many", "many"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        ([5], "[5]"),
        ({}, "{}"),
        (float("nan"), "nan"),
        ("inf", "inf"),
    ],
)
def test_a_number_is_needed(
    memory: Memory, name: str, parameter: str, value: object, said: str
) -> None:
    found = tool(memory, name).call({"query": "x", parameter: value})

    expected = f"Parameter '{parameter}' must be a number: {said}"
    assert found == ToolResult(expected, None, "validation_error")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, REQUIRED),
        (
            {"query": "x", "source_type": "memory"},
            "Invalid source_type 'memory'. Must be one of: conversation, file, all",
        ),
        (
            {"query": "x", "scope": "all"},
            "Unknown parameter 'scope'. Must be one of: query, source_type, limit",
        ),
    ],
)
def test_memory_search_refuses_in_the_same_words(
    memory: Memory, arguments: dict[str, object], expected: str
) -> None:
    found = tool(memory, "memory_search").call(arguments)

    assert found == ToolResult(expected, None, "validation_error")


# -- how many ---


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory of sixty answers, no two alike; copied, never changed."""
    folder = tmp_path_factory.mktemp("filled")
    with a_memory(folder, settings=BY_WORDS) as memory:
        for number in range(60):
            words = " ".join(f"word{number}{letter}" for letter in "abcdefgh")
            memory.record(
                f"s{number}",
                "user",
                f"needle {words}",
                sent_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number),
            )
        memory.search("anything")
    return folder


@pytest.fixture
def full(filled: Path, tmp_path: Path) -> Iterator[Memory]:
    """A memory with sixty answers."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    with a_memory(tmp_path, settings=BY_WORDS) as memory:
        yield memory


@pytest.mark.parametrize("view", ["ranked", "episodes"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 10),
        (0, 10),
        (-5, 10),
        (1, 1),
        (5, 5),
        ("5", 5),
        (5.0, 5),
        ("5.0", 5),
        (50, 50),
        (51, 50),
        (10**30, 50),
        pytest.param(10**5000, 50, id="a very long number"),
        pytest.param("9" * 300, 50, id="a long number as text"),
    ],
)
def test_max_results_is_clamped(
    full: Memory, view: str, value: object, expected: int
) -> None:
    found = tool(full).run(
        query="needle", max_results=value, view=view, scope="sessions"
    )

    assert isinstance(found.data, dict)
    assert len(found.data["results"]) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, 10), (0, 10), (-1, 10), ("3", 3), (25, 25), (99, 25)]
)
def test_the_limit_of_memory_search_is_clamped(
    full: Memory, value: object, expected: int
) -> None:
    found = tool(full, "memory_search").run(query="needle", limit=value)

    assert isinstance(found.data, list)
    assert len(found.data) == expected


# -- what they answer ---


def test_search_history_finds_what_was_said(used: Memory) -> None:
    found = tool(used).run(query="restaurant", scope="sessions", max_results=1)

    assert found.error is None
    head, _, first, text, reply = found.text.splitlines()
    assert head == '[Search Results for "restaurant" (scope: sessions, 1 result)]'
    assert first.startswith("--- Result 1 (score: ")
    assert first.endswith(
        ', source: message, date: 2026-02-25, session: "Dinner Planning", '
        "id: s1, message: 1, host: python) ---"
    )
    assert text == (
        "User: Can you help me find a good sushi restaurant near Shibuya station?"
    )
    assert reply == "Agent: Sakura Sushi. Its booking password = [masked]"


def test_a_tools_output_says_which_tool_it_is_of(used: Memory) -> None:
    found = tool(used).run(query="reservations.csv")

    assert "\nTool (Bash): reservations.csv" in found.text


def test_secrets_are_masked_in_text_and_data(used: Memory) -> None:
    ranked = tool(used).run(query="booking password")
    episodes = tool(used).run(query="booking password", view="episodes")
    recalled = tool(used, "memory_search").run(query="booking password")

    assert "password = [masked]" in ranked.text
    assert "password = [masked]" in episodes.text
    assert "password = [masked]" in recalled.text
    assert "hunter2x" not in repr((ranked, episodes, recalled))


def test_episodes_stand_between_their_neighbours(used: Memory) -> None:
    found = tool(used).run(query="sakura sushi", view="episodes")

    assert found.text == (
        """\
## Match 1 — Session: s1 | 2026-02-25 12:01 | message: 2 | host: python

USER: Can you help me find a good sushi restaurant near Shibuya station?
**ASSISTANT: Sakura Sushi. Its booking password = [masked]**
USER: Thank you!

---"""
    )


def test_memory_search_gives_the_stretch_around(used: Memory) -> None:
    found = tool(used, "memory_search").run(query="database")

    head, text = found.text.splitlines()
    assert head.startswith("[1] Storage (conversation, 2026-03-01, relevance: ")
    assert text == "User: Which database shall we take?"
    assert isinstance(found.data, list)
    assert found.data[0]["show"] == "backstory show s2 --around 1"


@pytest.mark.parametrize("view", ["ranked", "episodes"])
@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        ({}, 1),
        ({"date_from": "2026-02-25"}, 1),
        ({"date_to": "2026-02-25"}, 1),
        ({"date_from": "2026-02-25", "date_to": "2026-02-25"}, 1),
        ({"date_from": None, "date_to": None}, 1),
        ({"date_from": "0001-01-01", "date_to": "9999-12-31"}, 1),
        ({"date_from": "2026-02-26"}, 0),
        ({"date_to": "2026-02-24"}, 0),
        ({"date_from": "2026-02-26", "date_to": "2026-02-24"}, 0),
        ({"date_from": "9999-12-31"}, 0),
        ({"date_to": "0001-01-01"}, 0),
        ({"days": 1}, 0),
        ({"days": "100000000000"}, 1),
        ({"days": -3}, 1),
    ],
)
def test_dates_narrow_the_search(
    used: Memory, view: str, dates: dict[str, object], expected: int
) -> None:
    found = tool(used).call(
        {"query": "sushi restaurant near", "scope": "sessions", "view": view, **dates}
    )

    assert found.error is None
    assert found.is_empty == (expected == 0)


@pytest.mark.parametrize("view", ["ranked", "episodes"])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"project": "/home/dev/demo"}, ["s3"]),
        ({"project": "Demo"}, ["s3"]),
        ({"host": "bot"}, ["s3"]),
        ({"host": "python", "project": ""}, ["s2"]),
        ({"host": "python", "project": "demo"}, []),
        ({"host": None, "project": " "}, ["s2", "s3"]),
    ],
)
def test_project_and_host_narrow_the_search(
    used: Memory, view: str, where: dict[str, object], expected: list[str]
) -> None:
    used.record(
        "s3", "user", "Which database is that?", host="bot", project="/home/dev/demo"
    )

    found = tool(used).call(
        {"query": "which database", "scope": "sessions", "view": view, **where}
    )

    assert isinstance(found.data, dict)
    ids = {each["session"]["id"] for each in found.data["results"]}
    assert sorted(ids) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (
            {"host": "pyhton"},
            "No agent program is called 'pyhton'. Did you mean 'python'?",
        ),
        (
            {"project": "demon"},
            "No session ran in a folder called 'demon'. Did you mean 'demo'?",
        ),
        ({"host": 5}, "Parameter 'host' must be a string: 5"),
    ],
)
def test_an_unknown_project_or_host_is_refused_with_the_nearest(
    used: Memory, where: dict[str, object], expected: str
) -> None:
    used.record("s3", "user", "Hello", project="/home/dev/demo")

    found = tool(used).call({"query": "x", **where})

    assert found == ToolResult(expected, None, "validation_error")


@pytest.mark.parametrize("view", ["ranked", "episodes"])
def test_a_hit_says_where_to_read_on(used: Memory, view: str) -> None:
    name = "a trip, weak match) ---"
    used.record(name, "user", "Where is the zyzzyva?", project="/a b/c")

    found = tool(used).run(query="zyzzyva", view=view)

    assert isinstance(found.data, dict)
    (hit, *_) = found.data["results"]
    number = hit["message_id"] if view == "ranked" else hit["matched"]["message_id"]
    assert f"message: {number}" in found.text
    assert 'project: "/a b/c"' in found.text
    assert ") ---, message" not in found.text
    read = tool(used, "read_session").run(session=hit["session"]["id"], message=number)
    assert "> Where is the zyzzyva?" in read.text


@pytest.mark.parametrize("view", ["ranked", "episodes"])
def test_an_impossible_range_finds_nothing_and_says_why(
    used: Memory, view: str
) -> None:
    found = tool(used).run(
        query="sushi", date_from="2026-02-26", date_to="2026-02-24", view=view
    )

    assert (found.error, found.is_empty) == (None, True)
    assert found.text.endswith(
        "\n\n[Notice: the first day, 2026-02-26, is after the last, 2026-02-24]"
    )


def test_data_are_as_safe_to_print_as_the_text(memory: Memory) -> None:
    hostile = "needle \x1b[31m\x9b\u202e\x07"
    memory.record(
        "s\x1b",
        "user",
        hostile,
        host="h\x1b",
        title=f"t{hostile}",
        project="/p\x1b",
    )
    memory.record("s\x1b", "assistant", hostile, host="h\x1b")
    asked = "needle \x1b[31m"

    found = [
        tool(memory).run(query=asked).data,
        tool(memory).run(query=asked, view="episodes").data,
        tool(memory, "memory_search").run(query=asked).data,
    ]

    assert all(found)
    assert not UNSAFE.search("".join(_texts(found)))


def _texts(value: object) -> Iterator[str]:
    """Every text in some data."""
    match value:
        case str():
            yield value
        case dict():
            yield from _texts(list(value.values()))
        case list():
            for each in value:
                yield from _texts(each)


SECRETS = (
    "sk-ant-" + "api03-" + "Zq8Wx3" * 8,
    "password = Zq8Wx3Zq8Wx3Zq8Wx3",
    "https://me:Zq8Wx3Zq8Wx3@example.com/",
)


@pytest.mark.parametrize("secret", SECRETS, ids=["key", "password", "URL"])
@pytest.mark.parametrize("near", [80, 200, 300, 500, 4096])
def test_a_secret_is_never_shown_in_part_wherever_a_text_is_cut(
    tmp_path: Path, near: int, secret: str
) -> None:
    # Each is cut elsewhere: what is before it grows, in a soak letter by letter.
    steps = range(0, len(secret) + 4, 1 if SOAK else 7)
    with a_memory(tmp_path, settings=BY_WORDS) as memory:
        for number in steps:
            before = f"needle{number} " + "word " * 2000
            start = near - len(secret) - 2 + number
            text = f"{before[:start]} {secret} and more words " + "tail " * 300
            memory.record(f"s{number}", "user", text)
            memory.record(f"s{number}", "assistant", text)
        shown = [
            tool(memory, name).run(query=f"needle{number}", **more)
            for number in steps
            for name, views in _VIEWS.items()
            for more in views
        ]

    assert all(found.error is None and not found.is_empty for found in shown)
    # Four letters say what kind of secret it was.
    assert "8Wx3" not in "".join(_texts([[each.text, each.data] for each in shown]))


_VIEWS: dict[str, tuple[dict[str, object], ...]] = {
    "search_history": ({}, {"view": "episodes"}, {"scope": "sessions"}),
    "memory_search": ({},),
}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "search_history",
            {},
            '[Search Results for "zyzzyva" (scope: all, 0 results)]\n\n'
            "No matching results found. Try broader keywords or a different scope.",
        ),
        ("search_history", {"view": "episodes"}, "No matches found for 'zyzzyva'."),
        ("memory_search", {}, "No relevant memories found for: zyzzyva"),
    ],
)
def test_nothing_found_is_no_error(
    used: Memory, name: str, arguments: dict[str, object], expected: str
) -> None:
    found = tool(used, name).call({"query": "zyzzyva", **arguments})

    assert (found.text, found.error) == (expected, None)
    assert found.is_empty


def test_memory_search_without_an_index_says_when_there_will_be_one(
    memory: Memory,
) -> None:
    assert tool(memory, "memory_search").run(query="x") == ToolResult(
        "No memory index found. Memory will be indexed after conversations complete.",
        [],
    )


@pytest.mark.parametrize(
    "query",
    [
        "what's",
        '"',
        "C++",
        "10:30",
        "path/to/x",
        "a OR NOT (b*",
        "'; DROP TABLE messages; --",
        "100%_\\",
        "x" * 5000,
        "\ud800",
        "\x00",
        "🍣",
        "*",
    ],
)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_history", {}),
        ("search_history", {"view": "episodes"}),
        ("memory_search", {}),
    ],
)
def test_any_query_is_answered(
    used: Memory, name: str, arguments: dict[str, object], query: str
) -> None:
    found = tool(used, name).call({"query": query, **arguments})

    assert found.error is None
    assert orjson.dumps(found.data)


def test_what_a_session_is_just_saying_is_not_found(used: Memory) -> None:
    used.record("s2", "user", "Do you remember the zyzzyva?")

    asking, *_ = bind_tools(used, session="s2")
    other, *_ = bind_tools(used)

    assert asking.run(query="zyzzyva", view="episodes").is_empty
    assert not other.run(query="zyzzyva", view="episodes").is_empty


# -- trouble ---


class LockedMemory(Memory):
    """A memory that another process does not let go of."""

    def search(self, query: str, **_: object) -> SearchResult:
        raise StoreLocked(f"{query}\n: another process is writing")


def test_trouble_is_a_search_error_and_never_raised(
    memory: Memory, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine("linux", home, {})
    locked = LockedMemory(memory.home, memory.settings, machine)

    with locked, caplog.at_level(logging.ERROR):
        found = tool(locked).run(query="x")

    assert found == ToolResult(
        "Search failed: x : another process is writing", None, "search_error"
    )
    # Its words are for whoever asked; a trace would be for us.
    assert caplog.records == []


def test_a_mistake_of_ours_is_a_search_error_with_a_trace_in_the_log(
    memory: Memory, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class BrokenMemory(Memory):
        def search(self, query: str, **_: object) -> SearchResult:
            raise ZeroDivisionError("a mistake")

    machine = Machine("linux", home, {})
    with BrokenMemory(memory.home, memory.settings, machine) as broken:
        found = tool(broken).run(query="x")

    assert found == ToolResult("Search failed: a mistake", None, "search_error")
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_tool_can_be_awaited(used: Memory) -> None:
    search = tool(used)
    assert inspect.iscoroutinefunction(search.acall)

    found = asyncio.run(search.acall({"query": "restaurant"}))

    assert found.text == search.call({"query": "restaurant"}).text


# -- how long an answer may be ---


@pytest.mark.parametrize(
    ("name", "arguments", "limit"),
    [
        ("search_history", {"max_results": 50}, 50),
        ("search_history", {"max_results": 50, "view": "episodes"}, 50),
        ("memory_search", {"limit": 25}, 25),
    ],
)
def test_an_answer_has_no_more_tokens_than_allowed_as_the_caller_counts(
    tmp_path: Path, name: str, arguments: dict[str, Any], limit: int
) -> None:
    with a_memory(tmp_path, settings=BY_WORDS) as memory:
        for number in range(60):
            chance = random.Random(number)
            words = ("".join(chance.choices("aeioubdfgkt", k=7)) for _ in range(60))
            memory.record(f"s{number}", "user", f"walrus {' '.join(words)}")
    given = {"query": "walrus", **arguments}
    machine = Machine("linux", tmp_path / "nobody", {})

    def ask(allowed: int) -> ToolResult:
        settings = read_settings(
            environ={}, flags=(*BY_WORDS, f"tools.search_tokens={allowed}")
        )
        home = tmp_path / "backstory"
        with Memory(home, settings, machine, count_tokens=len) as memory:
            tools = {tool.name: tool for tool in memory.tools()}
            return tools[name].call(given)

    def count(answer: ToolResult) -> int:
        found: Any = answer.data
        return len(found["results"] if isinstance(found, dict) else found)

    whole, some, one = ask(1_000_000), ask(10_000), ask(500)

    assert count(whole) == limit
    assert "left out" not in whole.text
    assert 1 < count(some) < limit
    assert len(some.text) <= 10_000
    left = limit - count(some)
    assert f"[Notice: {left} results left out: the answer would be too long]" in (
        some.text
    )
    assert count(one) == 1
    assert len(one.text) <= 500


@pytest.mark.parametrize("name", ["search_history", "memory_search"])
@pytest.mark.parametrize("unit", ["🪷", "龘", "x9", "ቤት "])
def test_one_long_result_is_cut_to_the_tokens_allowed(
    tmp_path: Path, name: str, unit: str
) -> None:
    settings = (*BY_WORDS, "tools.search_tokens=500")
    with a_memory(tmp_path, settings=settings) as memory:
        memory.record("s", "user", "walrus " + unit * (6_000 // len(unit)))

        text = tool(memory, name).call({"query": "walrus"}).text

    assert most_tokens(text) <= 500
    assert "walrus" in text
    assert text.endswith(
        "…\n\n[Notice: the end is cut off: the answer would be too long]"
    )
