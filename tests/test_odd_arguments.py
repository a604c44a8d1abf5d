"""Every method of a memory, given what makes no sense, and after it was closed."""

import datetime as dt
import inspect
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import backstory
from backstory import BackstoryError, Memory
from backstory.errors import BadQuery
from tests.chance import SOAK
from tests.grid import in_one_test
from tests.samples import a_memory

EAST, WEST = (dt.timezone(dt.timedelta(hours=hours)) for hours in (14, -14))


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("it cannot be printed")


ODD_VALUES = (
    None,
    "",
    "\ud800",
    "a\udcffb",
    "a\0b",
    "x" * 5_000,
    "\u202e%s' --*",
    "~nobody",
    b"\xff",
    0,
    -1,
    2**63,
    -(10**400),
    10**5_000,
    True,
    0.5,
    float("nan"),
    float("inf"),
    [None],
    {"a": 1},
    {"a"},
    Unprintable(),
    int,
    dt.datetime(1, 1, 1),
    dt.datetime(1, 1, 1, tzinfo=EAST),
    dt.datetime.max,
    dt.datetime.max.replace(tzinfo=WEST),
    dt.date.min,
    dt.date.max,
    dt.timedelta.max,
    Path("a\0b"),
    Path("\udcff"),
    Path("/dev/null"),
)


def usual_arguments(memory: Memory) -> dict[str, dict[str, Any]]:
    """What makes sense, for every method that cannot do without arguments."""
    query: dict[str, Any] = {"query": "hello"}
    return {
        "record": {"session": "new", "role": "user", "text": "more"},
        "record_messages": {
            "session": "new",
            "messages": [{"role": "user", "content": "more"}],
        },
        "switch_session": {"session": "trip"},
        "search": query,
        "recall": query,
        "episodes": query,
        "context": {"prompt": "hello"},
        "session": {"name": "trip"},
        "messages": {"session": "trip"},
        "short_ids": {"sessions": memory.sessions()},
        "resume_commands": {"sessions": memory.sessions()},
        "warm_ups": {"sessions": memory.sessions()},
        "live_run": {"session": "trip"},
        "index": {"path": memory.home / "nothing"},
        "folder_of": {"session": "trip"},
        "origin_of": {"session": "trip"},
        # Nothing that there is: it would be gone.
        "forget": {"project": "/nowhere"},
        "undo_forget": {"forgetting": 1},
        "export": {"path": memory.home.parent / "exported"},
        "import_export": {"path": memory.home.parent / "nothing"},
        "move_to": {"target": memory},
        "receive_push": {"batch": b""},
        "do_job": {"kind": "index"},
    }


def methods() -> dict[str, Callable[..., Any]]:
    """The methods of an open memory: not those that take the path of a home."""
    return {
        name: function
        for name, function in inspect.getmembers(Memory, inspect.isfunction)
        if not name.startswith("_") and name != "close"
    }


def parameters() -> dict[str, tuple[str, str]]:
    """Every parameter of every method, except for functions and open files."""
    return {
        f"{method}({parameter})": (method, parameter)
        for method, function in methods().items()
        for parameter in list(inspect.signature(function).parameters)[1:]
        if not parameter.startswith("on_") and parameter not in ("sleep", "lock")
    }


def call(memory: Memory, method: str, **given: Any) -> object:
    result = getattr(memory, method)(**given)
    if method == "watch":
        return next(result)
    return list(result) if isinstance(result, Iterator) else result


def refusal(memory: Memory, method: str, **given: Any) -> str:
    """What an error of ours says about the arguments; nothing if they are taken."""
    try:
        call(memory, method, **given)
    except BackstoryError as exc:
        return str(exc)
    return ""


@pytest.fixture
def trip(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Memory]:
    """A memory of one session."""
    # Where an odd path may lead, nothing is in the way.
    monkeypatch.chdir(home)
    with a_memory(tmp_path, home=home, settings=("embedder.name=none",)) as memory:
        memory.record("trip", "user", "hello world")
        memory.index()
        yield memory


@in_one_test("where", parameters())
def test_an_odd_value_is_taken_or_refused_with_an_error_of_ours(
    trip: Memory, where: tuple[str, str]
) -> None:
    method, parameter = where
    usual = usual_arguments(trip).get(method, {})
    values = ODD_VALUES if SOAK else random.Random(str(where)).sample(ODD_VALUES, 4)

    refused = [refusal(trip, method, **{**usual, parameter: value}) for value in values]

    assert all(len(sentence.encode()) < 1_000 for sentence in refused)
    assert [message.text for message in trip.messages("python/trip")] == ["hello world"]
    assert trip.search("hello", limit=1).hits


def test_a_session_may_be_opened_within_any_number_of_tokens(trip: Memory) -> None:
    trip.notebook.add_fact("the cat is called Ada")

    opened = trip.opening(max_tokens=10**400)

    assert "the cat is called Ada" in opened
    assert opened == trip.opening(max_tokens=100_000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"session": 5}, "session is 5, not a text"),
        ({"session": b"\xff"}, "session is b'\\xff', not a text"),
        ({"host": 1.5}, "host is 1.5, not a text"),
        ({"title": ["a"]}, "title is ['a'], not a text"),
        ({"project": 7}, "project is 7, not a path"),
        ({"sent_at": "today"}, "sent_at is 'today', not a datetime"),
        (
            {"sent_at": dt.datetime(1, 1, 1)},
            "sent_at is datetime.datetime(1, 1, 1, 0, 0), too far from today",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_a_clear_sentence(
    memory: Memory, given: dict[str, Any], message: str
) -> None:
    usual: dict[str, Any] = {"session": "trip", "role": "user", "text": "hello"}

    with pytest.raises(BadQuery) as raised:
        memory.record(**{**usual, **given})

    assert (str(raised.value), memory.sessions()) == (message, [])


# -- closed ---


@in_one_test("method", {name: name for name in methods()})
def test_a_closed_memory_refuses_every_method(trip: Memory, method: str) -> None:
    given = usual_arguments(trip).get(method, {})
    with a_memory(trip.home.parent / "closed") as memory:
        pass

    with pytest.raises(BadQuery, match="the memory is closed"):
        call(memory, method, **given)


def test_what_a_closed_memory_handed_out_is_closed_too(trip: Memory) -> None:
    notebook, run = trip.notebook, trip.new_run()
    live = trip.live_run("x", transcript=trip.home / "x.jsonl")
    messages, watch = trip.messages("trip"), trip.watch()
    tools = {tool.name: tool for tool in trip.tools()}

    trip.close()
    trip.close()

    uses: list[Callable[[], object]] = [
        notebook.read_memory,
        notebook.list_logs,
        notebook.summary,
        lambda: notebook.add_fact("a fact", "General"),
        lambda: notebook.forget_fact("a fact"),
        lambda: notebook.append_log(dt.date(2026, 1, 1), "a block", "a marker"),
        lambda: notebook.write_aside("a text", "a.md"),
        lambda: trip.notebook,
        lambda: run.record("user", "hello"),
        lambda: len(live),
        lambda: next(messages),
        lambda: next(watch),
        trip.__enter__,
    ]
    for use in uses:
        with pytest.raises(BadQuery, match="is closed"):
            use()
    found = tools["search_history"].call({"query": "hello"})
    saved = tools["save_memory"].call({"content": "a fact"})
    assert all("the memory is closed" in each.text for each in (found, saved))
    assert not (trip.home / "memory").exists()


def test_a_home_that_is_no_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    homes: tuple[Any, ...] = ("a\0b", "\udcff", 5, 0, b"x", b"", float("inf"), [], {})
    for home in homes:
        with pytest.raises(backstory.ConfigError, match="is not a path"):
            Memory.open(home)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("settings", [None, 5, b"a=1", [b"a=1"], [None]])
def test_settings_that_are_no_texts_are_refused(tmp_path: Path, settings: Any) -> None:
    with pytest.raises(backstory.ConfigError, match="not a list of texts"):
        Memory.open(tmp_path, settings=settings)


def test_what_is_no_text_is_refused_by_functions_too(memory: Memory) -> None:
    for value in (None, 5, b"x", ["x"]):
        odd: Any = value
        with pytest.raises(BadQuery, match="not a text"):
            backstory.most_tokens(odd)
        with pytest.raises(BadQuery, match="not a text"):
            backstory.schemas(memory.tools(), odd)
    with pytest.raises(BackstoryError, match="too long"):
        backstory.check_home("x" * 200_000)


# -- the notebook ---


@pytest.mark.parametrize("value", [None, 5, b"x", ["x"], float("nan")])
def test_the_notebook_refuses_what_is_no_text_and_no_date(
    memory: Memory, value: Any
) -> None:
    notebook, day = memory.notebook, dt.date(2026, 1, 1)
    notebook.add_fact("likes tea")
    before = notebook.read_memory()
    uses: list[Callable[[], object]] = [
        lambda: notebook.add_fact(value),
        lambda: notebook.add_fact("likes figs", value),
        lambda: notebook.forget_fact(value),
        lambda: notebook.update_fact(value, "likes figs"),
        lambda: notebook.update_fact("likes tea", value),
        lambda: notebook.merge_memory(value),
        lambda: notebook.replace_memory(value, before),
        lambda: notebook.read_log(value),
        lambda: notebook.merge_log(value, "a log"),
        lambda: notebook.merge_log(day, value),
        lambda: notebook.append_log(value, "a block", "a marker"),
        lambda: notebook.append_log(day, value, "a marker"),
        lambda: notebook.append_log(day, "a block", value),
    ]

    for use in uses:
        with pytest.raises(BadQuery, match=r"not a (text|date)"):
            use()

    assert (notebook.read_memory(), notebook.list_logs()) == (before, [])


def test_a_day_of_the_notebook_may_be_a_text_or_a_time(memory: Memory) -> None:
    notebook = memory.notebook

    notebook.append_log("2026-01-01", "one", "a")
    notebook.append_log(dt.datetime(2026, 1, 1, 12), "two", "b")
    notebook.merge_log("2026-01-01", "three")

    log = notebook.read_log("2026-01-01")
    assert log == notebook.read_log(dt.date(2026, 1, 1))
    assert notebook.list_logs() == [dt.date(2026, 1, 1)]
    assert log is not None
    assert [word in log for word in ("one", "two", "three")] == [True] * 3


# -- half characters ---


def test_names_that_differ_in_half_a_character_stay_two(memory: Memory) -> None:
    for half in ("\ud800", "\ud801"):
        memory.record("trip", "user", f"told {half!r}", message=half)
        memory.record(half, "user", f"in {half!r}", message="1")
        memory.record("\N{REPLACEMENT CHARACTER}", "user", "whole", message="1")
        memory.notebook.append_log(dt.date(2026, 1, 1), f"block {half!r}", half)

    def texts(session: str) -> list[str]:
        return [message.text for message in memory.messages(session)]

    assert texts("python/trip") == ["told '\\ud800'", "told '\\ud801'"]
    assert texts("\ud800") == ["in '\\ud800'"]
    assert texts("\ud801") == ["in '\\ud801'"]
    assert texts("\N{REPLACEMENT CHARACTER}") == ["whole"]
    log = memory.notebook.read_log("2026-01-01") or ""
    assert log.count("block") == 2
