"""check, rebuild, salvage, work: take care of the files."""

import logging
import os
from contextlib import suppress

import click

from backstory.address import read_database
from backstory.cli import progress
from backstory.cli.app import (
    FOUND_NOTHING,
    SKIPPED_SOME,
    App,
    commands,
    echo_lines,
)
from backstory.errors import StoreDamaged, StoreProblem
from backstory.render.format import render_count
from backstory.render.objects import checked_object, to_json
from backstory.render.people.reports import (
    render_checked,
    render_indexed,
    render_salvaged,
    render_saved,
)
from backstory.repair import check_home, check_repaired, repair_home
from backstory.system.machine import find_home


@commands.command()
@click.option("--deep", is_flag=True, help="Also compare all rows with each other.")
@click.option("--repair", is_flag=True, help="Repair what is damaged.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def check(app: App, deep: bool, repair: bool, as_json: bool) -> None:
    """Look for damage in the files of the home, or in its PostgreSQL database.

    With --repair, a new history.db takes the place of a damaged one: it has everything
    that can be read, and the damaged file is kept. A damaged index is rebuilt. Other
    damage in a PostgreSQL database has to be repaired there. Exit code 23 means that
    something is damaged or lost, 20 that a file could not be checked.
    """
    home = find_home(app.machine, app.home)
    database = read_database(app.settings, app.machine)
    if repair:
        saved = repair_home(home) if database is None else None
        if saved is not None:
            lines = render_salvaged(saved, home=app.user_home)
            for line in lines:
                click.echo(line, err=as_json)
        found = check_repaired(
            home, lambda: app.memory.rebuild(), is_deep=deep, database=database
        )
    else:
        found = check_home(home, is_deep=deep, database=database)
    if as_json:
        click.echo(to_json([checked_object(file) for file in found]))
    else:
        echo_lines(render_checked(found, home=app.user_home))
    if any(file.problems for file in found):
        raise SystemExit(StoreDamaged.exit_code)
    if any(file.not_checked for file in found):
        raise SystemExit(StoreProblem.exit_code)


@commands.command()
@click.pass_obj
def rebuild(app: App) -> None:
    """Rebuild the index from the history and the notes.

    The old index is used until the new one is complete, so it is safe to stop at any
    time. Existing vectors are kept.
    """
    with progress.bars() as bars:
        report = app.memory.rebuild(on_taken=bars.counting("messages"))
    index = app.memory.status().index
    echo_lines(render_indexed(index, report.problems, home=app.user_home))
    if report.problems:
        raise SystemExit(SKIPPED_SOME)


@commands.command(short_help="Save messages that only the index knows.")
@click.pass_obj
def salvage(app: App) -> None:
    """Save what the index still knows of messages that the history has lost.

    Writes their texts, in lower case, to a file that 'backstory index --path' can read.
    Exit code 1 means that there was nothing to save.
    """
    saved = app.memory.salvage()
    click.echo(render_saved(saved, home=app.user_home))
    if saved is None:
        raise SystemExit(FOUND_NOTHING)


@commands.command(short_help="Do the background work of a database's tenants.")
# The lock that is handed on by whoever starts it for a home.
@click.option("--lock", type=int, hidden=True)
@click.option(
    "--tenants",
    is_flag=True,
    help="Do the work of all tenants of a database, until told to end.",
)
@click.option("--once", is_flag=True, help="With --tenants: only what is due now.")
@click.pass_obj
def work(app: App, lock: int | None, tenants: bool, once: bool) -> None:
    """Make vectors and write daily logs, which is otherwise done in the background.

    For a home, other commands start it when there is work. With --tenants, any number
    of processes share the work of a database, beside 'backstory serve'.
    """
    if tenants:
        # Only this needs it, and it is slow to import.
        from backstory.serve.start import work_for_tenants

        home = find_home(app.machine, app.home)
        done = work_for_tenants(
            home, app.machine, app.flags, clock=app.clock, is_once=once
        )
        if once:
            click.echo(f"Did {render_count(done, 'job')}.")
        return
    # What it does itself must not make it look for work again and again.
    app.starts_workers = False
    # Nobody waits for it, so other programs go first.
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(10)
    logging.basicConfig(level=logging.WARNING)
    app.memory.work(lock=lock)
