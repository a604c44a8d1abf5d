"""What may be asked of a memory, and how it may be written."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from backstory.errors import BadQuery, UnknownName
from backstory.memory import Memory
from backstory.search.projects import in_project
from backstory.search.scopes import to_sources
from backstory.store.base.history import SessionFilter
from backstory.text.arguments import EVER, Period, to_day, to_instant, to_period
from backstory.values.hits import HitSource
from backstory.values.moments import start_in_utc, start_of_day
from backstory.values.structs import replace
from tests.samples import a_memory

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
TODAY = NOW.date()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory of one question and its answer, in which it is the week after."""
    settings = ("embedder.name=none",)
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as opened:
        sent_at = datetime(2026, 2, 25, 12, tzinfo=UTC)
        opened.record(
            "s1", "user", "Which zyzzyva?", sent_at=sent_at, project="/srv/Site"
        )
        opened.record("s1", "assistant", "The red one.", sent_at=sent_at)
        yield opened


ASK: list[Callable[..., object]] = [Memory.search, Memory.recall, Memory.episodes]


def name_of(ask: Callable[..., object]) -> str:
    return ask.__name__


# -- what is asked ---


@pytest.mark.parametrize("ask", ASK, ids=name_of)
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "the query is empty"),
        (" \n", "the query is empty"),
        (None, "the query is None, not a text"),
        (5, "the query is 5, not a text"),
    ],
)
def test_a_query_is_a_text_that_says_something(
    memory: Memory, ask: Callable[..., object], query: object, message: str
) -> None:
    with pytest.raises(BadQuery, match=f"^{message}$"):
        ask(memory, query)


@pytest.mark.parametrize("ask", ASK, ids=name_of)
@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("5", "limit is '5', not a whole number"),
        (2.5, "limit is 2.5, not a whole number"),
        (None, "limit is None, not a whole number"),
        (True, "limit is True, not a whole number"),
        (0, "limit is 0, but must be 1 or more"),
        (-1, "limit is -1, but must be 1 or more"),
    ],
)
def test_a_limit_is_a_whole_number_above_zero(
    memory: Memory, ask: Callable[..., object], limit: object, message: str
) -> None:
    with pytest.raises(BadQuery, match=f"^{message}$"):
        ask(memory, "zyzzyva", limit=limit)


def test_a_limit_may_be_larger_than_a_database_can_count(memory: Memory) -> None:
    assert len(memory.search("zyzzyva", limit=10**30).hits) == 1
    assert len(memory.sessions(limit=10**30)) == 1


@pytest.mark.parametrize("ask", [Memory.search, Memory.episodes], ids=name_of)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"days": "7"}, "days is '7', not a whole number"),
        ({"date_from": "soon"}, "date_from is 'soon', not a date"),
        ({"date_to": 20260225}, "date_to is 20260225, not a date"),
        ({"date_to": ""}, "date_to is '', not a date"),
    ],
    ids=str,
)
def test_what_is_no_day_is_refused(
    memory: Memory,
    ask: Callable[..., object],
    arguments: dict[str, object],
    message: str,
) -> None:
    with pytest.raises(BadQuery, match=f"^{message}$"):
        ask(memory, "zyzzyva", **arguments)


# -- which sources ---


def test_one_source_needs_no_list() -> None:
    assert to_sources("all", "message") == {HitSource.MESSAGE}


@pytest.mark.parametrize(
    ("scope", "sources", "hint"),
    [
        ("memories", None, "did you mean 'memory'?"),
        ("all", ["massage"], "did you mean 'message'?"),
        ("all", "messages", "did you mean 'message'?"),
    ],
)
def test_a_scope_or_source_that_there_is_not_is_refused_with_the_nearest(
    scope: str, sources: list[str] | str | None, hint: str
) -> None:
    with pytest.raises(UnknownName) as raised:
        to_sources(scope, sources)

    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("scope", "sources", "message"),
    [
        ("memory", ["message"], "scope 'memory' does not include message"),
        (
            "sessions",
            ["guidance", "memory"],
            "scope 'sessions' does not include guidance or mem",
        ),
        ("all", [], "scope 'all' does not include an empty list of sources"),
    ],
)
def test_sources_that_a_scope_does_not_have_are_refused(
    scope: str, sources: list[str], message: str
) -> None:
    with pytest.raises(BadQuery, match=f"^{message}"):
        to_sources(scope, sources)


# -- which days ---


@pytest.mark.parametrize(
    "value",
    [
        date(2026, 2, 25),
        "2026-02-25",
        " 2026-02-25 ",
        "20260225",
        datetime(2026, 2, 25, 23, 59),
        "2026-02-25T23:59",
        # In Tokyo, that is the next morning.
        datetime(2026, 2, 24, 22, tzinfo=UTC),
        "2026-02-24T22:00:00Z",
    ],
    ids=str,
)
def test_a_day_may_be_written_in_many_ways(
    monkeypatch: pytest.MonkeyPatch, value: date | str
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()

    assert to_day(value, "date_from", today=TODAY) == date(2026, 2, 25)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Lima"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"date_from": date.min, "date_to": date.max}, 1),
        ({"date_from": datetime.min, "date_to": datetime.max}, 1),
        ({"date_to": date.max}, 1),
        ({"date_to": date.min}, 0),
        ({"date_from": date.max}, 0),
        ({"date_from": datetime.max.replace(tzinfo=UTC)}, 0),
        ({"days": 10**9}, 1),
        ({"days": -5}, 1),
        ({"days": 5}, 0),
        ({"days": 6}, 1),
    ],
    ids=str,
)
def test_days_reach_from_the_first_there_is_to_the_last(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    zone: str,
    arguments: dict[str, date],
    expected: int,
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()

    found = memory.search("zyzzyva", **arguments)  # type: ignore[arg-type]

    assert len(found.hits) == expected


def a_period(first: date, behind: date) -> Period:
    days = (start_in_utc(first), start_in_utc(behind))
    return Period(start_of_day(first), start_of_day(behind), days)


def test_a_period_reaches_from_the_first_named_day_to_the_last() -> None:
    period = to_period("last week", "February 2026", 0, now=NOW)

    assert period == a_period(date(2026, 2, 23), date(2026, 3, 1))


def test_both_ends_of_a_period_count() -> None:
    period = to_period("2026-02-24", "2026-02-25", 0, now=NOW)

    assert period == a_period(date(2026, 2, 24), date(2026, 2, 26))
    assert period.why_empty == ""


@pytest.mark.parametrize(
    ("date_from", "date_to", "days", "expected"),
    [
        (
            "2026-03-05",
            "2026-03-01",
            0,
            "the first day, 2026-03-05, is after the last, 2026-03-01",
        ),
        (
            None,
            "2026-02-20",
            3,
            "the first day, 2026-02-28, is after the last, 2026-02-20",
        ),
        ("2026-03-01", "2026-03-01", 0, ""),
        (None, None, 0, ""),
    ],
)
def test_a_period_says_why_nothing_can_be_in_it(
    date_from: str | None, date_to: str | None, days: int, expected: str
) -> None:
    period = to_period(date_from, date_to, days, now=NOW)

    assert period.why_empty == expected


def test_an_impossible_period_finds_nothing(memory: Memory) -> None:
    notice = "the first day, 2026-03-01, is after the last, 2026-02-01"

    hits = memory.search("zyzzyva", date_from="2026-03-01", date_to="2026-02-01")
    episodes = memory.episodes("zyzzyva", date_from="2026-03-01", date_to="2026-02-01")

    assert (hits.hits, hits.notices) == ((), (notice,))
    assert (episodes.episodes, episodes.notices) == ((), (notice,))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (date(2026, 2, 25), datetime(2026, 2, 25, tzinfo=UTC)),
        ("2026-02-25", datetime(2026, 2, 25, tzinfo=UTC)),
        ("2026-02-25T09:30+01:00", datetime(2026, 2, 25, 8, 30, tzinfo=UTC)),
        ("last month", datetime(2026, 2, 1, tzinfo=UTC)),
        (datetime(2026, 2, 25, 9), datetime(2026, 2, 25, 9, tzinfo=UTC)),
        (date.min, datetime(1970, 1, 2, tzinfo=UTC)),
        (datetime.max, datetime.max.replace(tzinfo=UTC)),
    ],
    ids=str,
)
def test_a_time_may_be_a_day(value: date | str | None, expected: object) -> None:
    assert to_instant(value, "since", today=TODAY) == expected


def test_sessions_since_a_day_that_is_text(memory: Memory) -> None:
    found = [len(memory.sessions(since=f"2026-02-{day}")) for day in (25, 26)]

    assert found == [1, 0]


def test_ever_is_never_empty() -> None:
    assert EVER.why_empty == ""


# -- which folders ---

KNOWN = ["/home/dev/Site", "/srv/site/app", "C:\\Users\\dev\\App", "/srv/App"]


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        (Path("/srv/site"), SessionFilter(folder="/srv/site")),
        ("/srv/site/app", SessionFilter(folder="/srv/site/app")),
        ("Site", SessionFilter(folder_name="Site")),
        ("SITE", SessionFilter(folder_name="Site")),
        ("site/app", SessionFilter(folder_name="site/app")),
        ("site\\app", SessionFilter(folder_name="site/app")),
        ("DEV/app", SessionFilter(folder_name="dev\\App")),
        ("/", SessionFilter(folder="/")),
    ],
    ids=str,
)
def test_a_project_is_a_path_or_how_one_ends(
    project: str | Path, expected: SessionFilter
) -> None:
    found = in_project(SessionFilter(limit=5), project, KNOWN)

    assert found == [replace(expected, limit=5)]


def test_a_name_in_another_case_may_stand_for_several_folders() -> None:
    found = in_project(SessionFilter(), "APP", KNOWN)

    assert [each.folder_name for each in found] == ["App", "app"]


def test_a_name_as_it_was_typed_stands_for_itself_alone() -> None:
    found = in_project(SessionFilter(), "app", KNOWN)

    assert [each.folder_name for each in found] == ["app"]


@pytest.mark.parametrize(
    ("project", "known", "message", "hint"),
    [
        (
            "sit",
            KNOWN,
            "no session ran in a folder called 'sit'",
            "did you mean 'Site'?",
        ),
        (
            "ite/app",
            KNOWN,
            "no session ran in a folder called 'ite/app'",
            "did you mean 'App'?",
        ),
        (
            Path("/srv/sit"),
            KNOWN,
            "no session ran in /srv/sit or below it",
            "did you mean '/srv/site/app'?",
        ),
        (
            "",
            ["/a"],
            "no session ran in a folder called ''",
            "the names are: a",
        ),
        (
            "x",
            [],
            "no session ran in a folder called 'x'",
            "no conversation has been read yet; run 'backstory index'",
        ),
        (
            "x",
            [f"/p/folder{number}" for number in range(30)],
            "no session ran in a folder called 'x'",
            "the names are: "
            + ", ".join(f"folder{number}" for number in range(20))
            + " and 10 more",
        ),
    ],
    ids=["part of a name", "part of a path", "path", "empty", "none", "many"],
)
def test_a_folder_that_no_session_ran_in_is_refused(
    project: str | Path, known: list[str], message: str, hint: str
) -> None:
    with pytest.raises(UnknownName) as raised:
        in_project(SessionFilter(), project, known)

    assert (str(raised.value), raised.value.hint) == (message, hint)


def test_sessions_of_several_folders_are_listed_by_their_activity(
    memory: Memory,
) -> None:
    for number, folder in enumerate(["/a/SITE", "/b/site", "/c/SITE"]):
        sent_at = datetime(2026, 2, 26, tzinfo=UTC) + timedelta(days=number)
        memory.record(f"t{number}", "user", "x", sent_at=sent_at, project=folder)

    found = [each.native_id for each in memory.sessions(project="sIte", limit=3)]

    assert found == ["t2", "t1", "t0"]


def test_a_search_goes_by_the_same_names(memory: Memory) -> None:
    assert len(memory.search("zyzzyva", project="site").hits) == 1
    assert len(memory.episodes("zyzzyva", project=Path("/srv")).episodes) == 1
    with pytest.raises(UnknownName, match="no session ran in a folder called 'sit'"):
        memory.search("zyzzyva", project="sit")
