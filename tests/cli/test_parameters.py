"""Days after options, in the words people use for them."""

import time
from datetime import date, datetime, timedelta

import click
import pytest
from click.testing import CliRunner, Result

from backstory.cli.parameters import DAY, FIRST_DAY, LAST_DAY


@click.command()
@click.argument("day", type=DAY, required=False)
@click.option("--since", type=FIRST_DAY)
@click.option("--until", type=LAST_DAY)
def command(day: date | None, since: date | None, until: date | None) -> None:
    click.echo(f"{day} {since} {until}")


def run(*words: str) -> Result:
    return CliRunner().invoke(command, words)


def test_a_month_reaches_from_its_first_day_to_its_last() -> None:
    result = run("--since", "2026-02", "--until", "February 2026")

    assert (result.exit_code, result.output) == (0, "None 2026-02-01 2026-02-28\n")


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Lima"])
def test_today_is_the_local_day(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    today = datetime.now().date()

    result = run("today", "--since", "2w", "--until", "yesterday")

    since, until = today - timedelta(days=14), today - timedelta(days=1)
    assert (result.exit_code, result.output) == (0, f"{today} {since} {until}\n")


@pytest.mark.parametrize("words", [("someday",), ("--since", ""), ("--until", "3")])
def test_what_is_not_a_date_is_refused_with_examples(words: tuple[str, ...]) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert result.output.endswith(
        f"'{words[-1]}' is not a date; write it as 2026-02-25, or in words: yesterday, "
        "last week, 3 days ago.\n"
    )


def test_where_one_day_is_needed_several_are_refused() -> None:
    result = run("May 2024")

    assert result.exit_code == 2
    assert result.output.endswith(
        "'May 2024' is more than one day: 2024-05-01 to 2024-05-31.\n"
    )
