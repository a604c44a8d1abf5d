"""Days named in a text."""

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.dates import (
    day_words,
    find_days,
    find_recent,
    parse_days,
)
from backstory.values.query import DayRange, FoundDays
from tests.grid import cases

# A Wednesday.
TODAY = date(2026, 3, 4)


def days(text: str) -> list[str]:
    """The days found, as 'first' or 'first..last'."""
    ranges = [found.days for found in find_days(text, today=TODAY)]
    return [
        str(one.first) if one.first == one.last else f"{one.first}..{one.last}"
        for one in ranges
    ]


@cases(
    ("text", "expected"),
    [
        ("2026-02-25", "2026-02-25"),
        ("2026/02/25", "2026-02-25"),
        ("2026-2-5", "2026-02-05"),
        ("25.02.2026", "2026-02-25"),
        ("8 May 2023", "2023-05-08"),
        ("8 may, 2023", "2023-05-08"),
        ("8th of May 2023", "2023-05-08"),
        ("May 8, 2023", "2023-05-08"),
        ("May 8th 2023", "2023-05-08"),
        ("Monday, 8 May 2023", "2023-05-08"),
        ("Sept. 3, 2024", "2024-09-03"),
        ("8th of May", "2025-05-08"),
        ("May 8", "2025-05-08"),
        ("March 4", "2026-03-04"),
        ("March 5", "2025-03-05"),
        ("Feb 29", "2024-02-29"),
        ("May 2023", "2023-05-01..2023-05-31"),
        ("December 2023", "2023-12-01..2023-12-31"),
        ("in March", "2026-03-01..2026-03-31"),
        ("in May", "2025-05-01..2025-05-31"),
        ("last April", "2025-04-01..2025-04-30"),
        ("in 2023", "2023-01-01..2023-12-31"),
        ("the summer of 2023", "2023-01-01..2023-12-31"),
        ("during 2023", "2023-01-01..2023-12-31"),
        ("today", "2026-03-04"),
        ("this morning", "2026-03-04"),
        ("yesterday", "2026-03-03"),
        ("last night", "2026-03-03"),
        ("the day before yesterday", "2026-03-02"),
        ("this week", "2026-03-02..2026-03-08"),
        ("last week", "2026-02-23..2026-03-01"),
        ("past week", "2026-02-23..2026-03-01"),
        ("this month", "2026-03-01..2026-03-31"),
        ("last month", "2026-02-01..2026-02-28"),
        ("this year", "2026-01-01..2026-12-31"),
        ("last year", "2025-01-01..2025-12-31"),
        ("last weekend", "2026-02-28..2026-03-01"),
        ("3 days ago", "2026-03-01"),
        ("two weeks ago", "2026-02-16..2026-02-22"),
        ("a month ago", "2026-02-01..2026-02-28"),
        ("2 years ago", "2024-01-01..2024-12-31"),
        ("a few days ago", "2026-02-27..2026-03-03"),
        ("a couple of weeks ago", "2026-02-09..2026-03-01"),
        ("9-12 November", "2025-11-09..2025-11-12"),
        ("from the 9th to 12th of November 2024", "2024-11-09..2024-11-12"),
        ("November 9 – 12, 2024", "2024-11-09..2024-11-12"),
        ("between January and March", "2026-01-01..2026-03-31"),
        ("from November to February 2025", "2024-11-01..2025-02-28"),
        ("between 8 May 2023 and the 2 June 2023", "2023-05-08..2023-06-02"),
        ("2026-02-01 - 2026-02-03", "2026-02-01..2026-02-03"),
        ("from yesterday to today", "2026-03-03..2026-03-04"),
        ("between Monday and Tuesday", "2026-03-02..2026-03-03"),
        ("from Tuesday to Friday", "2026-02-24..2026-02-27"),
        ("from Friday to Tuesday", "2026-02-27..2026-03-03"),
        ("von gestern bis heute", "2026-03-03..2026-03-04"),
        ("2月9日到2月12日", "2026-02-09..2026-02-12"),
        ("since Monday", "2026-03-02..2026-03-04"),
        ("since the 8 May 2025 release", "2025-05-08..2026-03-04"),
        ("since January", "2026-01-01..2026-03-04"),
        ("since 2025", "2025-01-01..2026-03-04"),
        ("since last week", "2026-02-23..2026-03-04"),
        ("seit letzter Woche", "2026-02-23..2026-03-04"),
        ("seit Januar", "2026-01-01..2026-03-04"),
        ("since today", "2026-03-04"),
        ("past 7 days", "2026-02-25..2026-03-04"),
        ("the last two weeks", "2026-02-18..2026-03-04"),
        ("last 2 months", "2026-01-04..2026-03-04"),
        ("last few days", "2026-03-01..2026-03-04"),
        ("on Tuesday", "2026-03-03"),
        ("last Tuesday", "2026-03-03"),
        ("Thursday", "2026-02-26"),
        ("on Wednesday", "2026-02-25"),
        ("last wed", "2026-02-25"),
        ("this Wednesday", "2026-03-04"),
        ("2023年5月3日", "2023-05-03"),
        ("5月3日", "2025-05-03"),
        ("5月3号", "2025-05-03"),
        ("2023年5月", "2023-05-01..2023-05-31"),
        ("今天", "2026-03-04"),
        ("昨天", "2026-03-03"),
        ("前天", "2026-03-02"),
        ("上周", "2026-02-23..2026-03-01"),
        ("上个月", "2026-02-01..2026-02-28"),
        ("去年", "2025-01-01..2025-12-31"),
        ("heute", "2026-03-04"),
        ("gestern", "2026-03-03"),
        ("vorgestern", "2026-03-02"),
        ("letzte Woche", "2026-02-23..2026-03-01"),
        ("letzten Monat", "2026-02-01..2026-02-28"),
        ("am 3. Mai 2023", "2023-05-03"),
        ("am 3. Mai", "2025-05-03"),
        ("im März", "2026-03-01..2026-03-31"),
    ],
)
def test_a_text_names_days(text: str, expected: str) -> None:
    assert days(f"What happened {text}?") == [expected]


@cases(
    "text",
    [
        "",
        "may I ask",
        "this may be wrong",
        "march on",
        "the sun and the sat nav",
        "2023",
        "port 2023",
        "tomorrow",
        "next Tuesday",
        "every Monday",
        "2026-02-30",
        "30 February 2026",
        "32 May",
        "30 to 12 May",
        "since 30 February",
        "2026-13-01",
        "1.2.3",
        "version 10.2.20261",
        "9999 years ago",
        "Mondays",
        "the last time",
    ],
)
def test_a_text_names_no_days(text: str) -> None:
    assert days(text) == []


def test_several_days_are_found_in_order_with_their_places() -> None:
    text = "Both on May 8, 2023 and last week"

    assert find_days(text, today=TODAY) == (
        FoundDays(DayRange(date(2023, 5, 8), date(2023, 5, 8)), 8, 19),
        FoundDays(DayRange(date(2026, 2, 23), date(2026, 3, 1)), 24, 33),
    )


PIECES = """
    last this past on in of few a couple 9999 0 31 2023 May March weeks days month year
    years ago Tuesday weekend - / . , yesterday 年 月 日 上 3. Mai
"""


@given(
    st.lists(
        st.sampled_from(PIECES.split()) | st.text(st.characters(), max_size=3),
        max_size=20,
    ),
    st.dates(),
    st.sampled_from(["", " "]),
)
def test_whatever_the_text_days_lie_in_it_and_in_order(
    pieces: list[str], today: date, between: str
) -> None:
    text = between.join(pieces)

    found = find_days(text, today=today)

    assert all(one.days.first <= one.days.last for one in found)
    edges = [edge for one in found for edge in (one.start, one.end)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)


@pytest.mark.parametrize(
    "text", ["1" * 100_000, "8 May 2023 " * 9_000, "a few " * 17_000, " " * 100_000]
)
def test_a_hostile_text_is_not_slow(text: str) -> None:
    started = time.process_time()

    find_days(text, today=TODAY)

    # Measured at 2 to 6 ms; the rest is for a busy machine.
    assert time.process_time() - started < 0.5


@cases(
    "text",
    [
        "the latest plan",
        "what did I do recently",
        "most recent build",
        "when did we last time meet",
        "my current job",
        "these days",
        "our last migration",
        "Wann war ich zuletzt dort",
        "neueste Version",
        "我最近在做什么",
    ],
)
def test_a_text_asks_for_the_newest(text: str) -> None:
    assert find_recent(text)


@pytest.mark.parametrize(
    "text", ["", "concurrent", "currents", "last week", "lasting", "her last name"]
)
def test_a_text_does_not_ask_for_the_newest(text: str) -> None:
    assert not find_recent(text)


def test_where_a_text_asks_for_the_newest_is_known() -> None:
    assert find_recent("the latest and newest plan") == ((4, 10), (15, 21))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("October", ["2025-10-01..2025-10-31"]),
        (" march? ", ["2026-03-01..2026-03-31"]),
        ("may", ["2025-05-01..2025-05-31"]),
        ("the march", []),
        ("mar", []),
    ],
)
def test_a_month_needs_no_neighbour_when_it_is_all_there_is(
    text: str, expected: list[str]
) -> None:
    assert days(text) == expected


def test_a_day_is_written_as_people_write_it() -> None:
    assert day_words(date(2023, 5, 8)) == "2023-05-08 8 May 2023 Monday"


@given(st.dates(max_value=TODAY, min_value=date(1000, 1, 1)))
def test_what_is_written_of_a_day_names_that_day(day: date) -> None:
    named = find_days(day_words(day), today=TODAY)

    assert [one.days for one in named][:2] == [DayRange(day, day)] * 2


# -- days as arguments ---


@cases(
    ("text", "first", "last"),
    [
        ("2026-02-01", date(2026, 2, 1), date(2026, 2, 1)),
        ("20.2.2026", date(2026, 2, 20), date(2026, 2, 20)),
        (" Yesterday ", date(2026, 3, 3), date(2026, 3, 3)),
        ("last Tuesday", date(2026, 3, 3), date(2026, 3, 3)),
        ("8 May 2023", date(2023, 5, 8), date(2023, 5, 8)),
        ("letzte Woche", date(2026, 2, 23), date(2026, 3, 1)),
        ("昨天", date(2026, 3, 3), date(2026, 3, 3)),
        ("last 3 days", date(2026, 3, 1), date(2026, 3, 4)),
        ("In the last 3 days", date(2026, 3, 1), date(2026, 3, 4)),
        ("in February 2026", date(2026, 2, 1), date(2026, 2, 28)),
        ("since yesterday", date(2026, 3, 3), date(2026, 3, 3)),
        ("on 2026-02-01", date(2026, 2, 1), date(2026, 2, 1)),
        # Within a sentence these are no dates, or others.
        ("tue", date(2026, 3, 3), date(2026, 3, 3)),
        ("feb", date(2026, 2, 1), date(2026, 2, 28)),
        ("Mai", date(2025, 5, 1), date(2025, 5, 31)),
        ("2025", date(2025, 1, 1), date(2025, 12, 31)),
        ("2026-02", date(2026, 2, 1), date(2026, 2, 28)),
        ("3d", date(2026, 3, 1), date(2026, 3, 1)),
        ("2 weeks", date(2026, 2, 18), date(2026, 2, 18)),
        ("2w", date(2026, 2, 18), date(2026, 2, 18)),
        ("two weeks ago", date(2026, 2, 18), date(2026, 2, 18)),
        ("0 days ago", date(2026, 3, 4), date(2026, 3, 4)),
        ("a month ago", date(2026, 2, 4), date(2026, 2, 4)),
        ("1 year", date(2025, 3, 4), date(2025, 3, 4)),
    ],
)
def test_an_argument_names_days(text: str, first: date, last: date) -> None:
    assert parse_days(text, today=TODAY) == DayRange(first, last)


@cases(
    "text",
    [
        "",
        "soon",
        "3",
        "days ago",
        "-3 days",
        "3 daysago",
        "adays",
        "2026-02-30",
        "2026-13",
        "99999 years",
        "yesterday and today",
        "in the",
        "what we said yesterday",
        "next friday",
    ],
)
def test_an_argument_that_says_anything_else_names_no_day(text: str) -> None:
    assert parse_days(text, today=TODAY) is None


@given(st.text())
def test_any_text_may_be_given_as_a_day(text: str) -> None:
    parse_days(text, today=TODAY)


@given(st.dates(max_value=TODAY, min_value=date(1000, 1, 1)))
def test_every_way_to_write_a_day_is_an_argument(day: date) -> None:
    iso, written = day.isoformat(), f"{day.day} {day:%B} {day.year}"

    named = [parse_days(text, today=TODAY) for text in (iso, written)]

    assert named == [DayRange(day, day)] * 2
