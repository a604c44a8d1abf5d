"""rebuild, work: take care of the index."""

import logging
import os
from contextlib import suppress

import click

from backstory.cli import progress
from backstory.cli.app import (
    SKIPPED_SOME,
    App,
    commands,
    echo_lines,
)
from backstory.render.format import render_count
from backstory.render.people.reports import render_problems


@commands.command()
@click.pass_obj
def rebuild(app: App) -> None:
    """Make the index again from the history and the notes.

    The old one serves until the new one is whole; stopped half-way, nothing has
    changed. No vector is made that is there already.
    """
    with progress.counting("messages") as on_taken:
        report = app.memory.rebuild(on_taken=on_taken)
    index = app.memory.status().index
    click.echo(
        f"Indexed {render_count(index.units, 'unit')}: messages, titles and "
        f"notes. Vectors: {index.embedded:,} of {index.with_meaning:,}."
    )
    echo_lines(render_problems(report.problems, home=app.user_home))
    if report.problems:
        raise SystemExit(SKIPPED_SOME)


@commands.command(hidden=True)
@click.pass_obj
def work(app: App) -> None:
    """Do what is left to do in the background; started by the other commands."""
    # Nobody waits for it, and somebody may be working.
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(10)
    logging.basicConfig(level=logging.WARNING)
    app.memory.work()
