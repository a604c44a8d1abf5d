"""stats: when was how much said, as pictures in the terminal, as SVG or as JSON."""

from datetime import date
from pathlib import Path

import click

from backstory.cli.app import NO_SESSIONS, App, commands, terminal_width
from backstory.cli.pager import no_pager_option, page_lines
from backstory.cli.parameters import (
    FIRST_DAY,
    LAST_DAY,
    PATH,
    YEAR,
    Number,
    host_option,
    project_option,
    to_folder,
)
from backstory.cli.style import choose_style
from backstory.render.calendar import MEASURES
from backstory.render.objects import statistics_object, to_json
from backstory.render.people.statistics import render_statistics
from backstory.render.statistics_picture import draw_statistics
from backstory.system.files import storing
from backstory.text.arguments import MAX_DAYS
from backstory.values.statistics import Statistics


@commands.command()
@host_option
@project_option
@click.option(
    "--year",
    type=YEAR,
    help="Only this year, such as 2025. Default: the year up to the latest session.",
)
@click.option(
    "--since",
    type=FIRST_DAY,
    help="Only from this day on: 2026-02-01, 'last monday', '3 months ago'.",
)
@click.option("--until", type=LAST_DAY, help="Only up to and including this day.")
@click.option(
    "--days",
    type=Number(1, MAX_DAYS),
    help="Only the last N days, today included.",
)
@click.option(
    "--by",
    type=click.Choice(MEASURES),
    default=MEASURES[0],
    show_default=True,
    help="What makes a day of the calendar darker.",
)
@click.option(
    "--svg",
    type=PATH,
    metavar="FILE",
    help="Write a picture instead; - is standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@no_pager_option
@click.pass_obj
def stats(
    app: App,
    host: str | None,
    project: str | None,
    year: int | None,
    since: date | None,
    until: date | None,
    days: int | None,
    by: str,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Show when you worked with which agent, on what, at which hours.

    A session counts on the day on which it was last active. What was said in a
    subagent counts, the subagent itself does not. Warm-ups of Claude Code do not count.
    """
    if year is not None and (since or until or days):
        raise click.UsageError("--year cannot be used with --since, --until or --days.")
    if svg is not None and as_json:
        raise click.UsageError("--svg cannot be used with --json.")
    if year is not None:
        since, until = date(year, 1, 1), date(year, 12, 31)
    found = app.memory.stats(
        host=host,
        project=to_folder(project),
        since=since,
        until=until,
        days=days or 0,
    )
    if svg is not None:
        _write(svg, draw_statistics(found, by=by, home=app.user_home))
    elif as_json:
        click.echo(to_json(statistics_object(found)))
    else:
        _echo(app, found, by)
    for notice in found.notices:
        click.echo(f"Notice: {notice}", err=True)


def _write(path: Path, picture: str) -> None:
    if str(path) == "-":
        click.echo(picture, nl=False)
        return
    with storing(path, is_named=True):
        path.write_bytes(picture.encode())
    click.echo(f"Wrote {path}.", err=True)


def _echo(app: App, found: Statistics, by: str) -> None:
    if not found.sessions and not app.memory.sessions(limit=1):
        click.echo(NO_SESSIONS)
        return
    page_lines(
        render_statistics(
            found,
            by=by,
            home=app.user_home,
            width=terminal_width(),
            style=choose_style(),
        )
    )
