"""Days, in the words people use for them."""

import time
from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner

from backstory.cli.parameters import DAY, parse_day

NOW = datetime(2026, 2, 20, 14, 32, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "month", "day"),
    [
        pytest.param("2026-02-01", 2, 1, id="a date"),
        pytest.param("today", 2, 20, id="today"),
        pytest.param(" Yesterday ", 2, 19, id="yesterday"),
        pytest.param("3 days ago", 2, 17, id="days ago"),
        pytest.param("1 day ago", 2, 19, id="a day ago"),
        pytest.param("3d", 2, 17, id="days in short"),
        pytest.param("2 weeks", 2, 6, id="weeks"),
        pytest.param("2w", 2, 6, id="weeks in short"),
        pytest.param("0 days ago", 2, 20, id="no days ago"),
        pytest.param("30d", 1, 21, id="in another month"),
    ],
)
def test_a_day_is_its_first_moment(text: str, month: int, day: int) -> None:
    assert parse_day(text, NOW) == datetime(2026, month, day, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "3", "days ago", "-3 days", "2026-02-30", "20.2.2026", "3 daysago"],
)
def test_other_words_are_no_day(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not match format|is out of range"):
        parse_day(text, NOW)


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        pytest.param("Asia/Tokyo", datetime(2026, 2, 19, 15, tzinfo=UTC), id="east"),
        pytest.param("America/Lima", datetime(2026, 2, 20, 5, tzinfo=UTC), id="west"),
    ],
)
def test_a_day_begins_at_local_midnight(
    monkeypatch: pytest.MonkeyPatch, zone: str, expected: datetime
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()

    assert parse_day("today", NOW.astimezone()) == expected


def test_a_day_in_summer_begins_at_midnight_of_summer_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()

    assert parse_day("2025-07-01", NOW.astimezone()) == datetime(
        2025, 6, 30, 22, tzinfo=UTC
    )


@click.command()
@click.option("--since", type=DAY)
def command(since: datetime) -> None:
    click.echo(since.isoformat())


def test_an_option_takes_a_day() -> None:
    result = CliRunner().invoke(command, ["--since", "2026-02-01"])

    assert (result.exit_code, result.output) == (0, "2026-02-01T00:00:00+00:00\n")


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        pytest.param("UTC", "someday", id="no day"),
        pytest.param("Asia/Tokyo", "0001-01-01", id="a day before all days"),
    ],
)
def test_an_option_refuses_what_is_no_day(
    monkeypatch: pytest.MonkeyPatch, zone: str, day: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()

    result = CliRunner().invoke(command, ["--since", day])

    assert result.exit_code == 2
    assert result.output.endswith(
        f"'{day}' is not a day, such as 2026-02-01, yesterday or '3 days ago'.\n"
    )
