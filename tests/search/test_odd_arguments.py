"""Arguments that make no sense are refused in our own words, and nothing breaks."""

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from backstory import BackstoryError, Memory
from tests.grid import in_one_test
from tests.samples import a_memory

TEXT = "walnut tree in the garden"
HUGE = 10**5_000
HALF = "\ud83d"
EAST, WEST = timezone(timedelta(hours=23)), timezone(timedelta(hours=-23))

NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    True,
    2.5,
    math.nan,
    math.inf,
    10**12,
    HUGE,
    -HUGE,
    "5",
    b"5",
    [],
)
DAYS: tuple[Any, ...] = (
    *(datetime(1, 1, 1), date.min, datetime(1, 1, 1, tzinfo=UTC), date.max),
    *(datetime.max, datetime.max.replace(tzinfo=WEST)),
    *(datetime.min.replace(tzinfo=EAST), "0001-01-01", "9999-12-31", "2026-02-30"),
    *("10000000000000 days ago", "99999999999w", HALF, "", 5, 2.5, b"x", [], HUGE),
)
NAMES: tuple[Any, ...] = (
    HALF,
    f"{HALF} {TEXT}",
    "\x00",
    "",
    "\u202e",
    "x" * 100_000,
    b"x",
    5,
    HUGE,
    [],
)


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Methods of a memory, each with one argument that is odd."""
    for number in NUMBERS:
        for method in ("search", "recall", "episodes"):
            yield method, {"query": TEXT, "limit": number}
        yield "search", {"query": TEXT, "days": number}
        yield "sessions", {"limit": number}
        yield "context", {"prompt": TEXT, "max_tokens": number}
        yield "messages", {"session": "s", "around": 1, "context": number}
        yield "messages", {"session": "s", "around": number}
    for day in DAYS:
        yield "search", {"query": TEXT, "date_from": day}
        yield "episodes", {"query": TEXT, "date_to": day}
        yield "sessions", {"since": day}
    for name in NAMES:
        for method in ("search", "recall", "episodes"):
            yield method, {"query": name}
        for filtered in ("scope", "sources", "host", "project", "session"):
            yield "search", {"query": TEXT, filtered: name}
        yield "recall", {"query": TEXT, "source_type": name}
        yield "context", {"prompt": name}
        yield "context", {"prompt": TEXT, "session": name}
        yield "session", {"name": name}
        yield "messages", {"session": name}
        yield "live_run", {"session": name}


def tool_calls() -> Iterator[tuple[str, dict[Any, Any]]]:
    """Tools, each with one argument that is odd."""
    for number in NUMBERS:
        yield "search_history", {"query": TEXT, "max_results": number}
        yield "search_history", {"query": TEXT, "days": number}
        yield "memory_search", {"query": TEXT, "limit": number}
    for day in DAYS:
        yield "search_history", {"query": TEXT, "date_from": day}
    for name in NAMES:
        yield "search_history", {"query": name}
        yield "search_history", {"query": TEXT, "view": name}
        yield "search_history", {"query": TEXT, "scope": name}
        yield "memory_search", {"query": TEXT, "source_type": name}
        yield "memory_search", {"query": TEXT, str(name)[:50] if name != HUGE else 1: 1}


def by_number(cases: Iterator[Any]) -> dict[str, Any]:
    return {f"{number} {case[0]}": case for number, case in enumerate(cases)}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder: Path = tmp_path_factory.mktemp("odd")
    with a_memory(folder, settings=("embedder.name=none",)) as made:
        made.record("s", "user", TEXT)
        yield made
        # None of it broke anything.
        assert [hit.text for hit in made.search(TEXT).hits] == [TEXT]


@in_one_test("call", by_number(calls()))
def test_a_memory_answers_or_refuses_in_words_that_can_be_printed(
    call: tuple[str, dict[str, Any]], memory: Memory
) -> None:
    method, arguments = call
    try:
        answer = getattr(memory, method)(**arguments)
        # Messages come one by one.
        list(answer) if method == "messages" else repr(answer)
    except BackstoryError as exc:
        f"{exc} {exc.hint}".encode()


@in_one_test("call", by_number(tool_calls()))
def test_a_tool_answers_or_says_which_argument_is_wrong(
    call: tuple[str, dict[str, Any]], memory: Memory
) -> None:
    name, arguments = call
    (tool,) = [tool for tool in memory.tools() if tool.name == name]

    answer = tool.call(arguments)

    assert answer.error in (None, "validation_error")
    answer.text.encode()
