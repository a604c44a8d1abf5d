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
    """Rebuild the index from the history and the notes.

    The old index serves until the new one is complete, so it is safe to stop at any
    time. Existing vectors are kept.
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
@click.option("--lock", type=int, help="Descriptor of the lock that is handed on.")
@click.pass_obj
def work(app: App, lock: int | None) -> None:
    """Do the work in the background; started by other commands."""
    # What it does itself must not make it look for work again and again.
    app.starts_workers = False
    # Nobody waits for it, so other programs go first.
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(10)
    logging.basicConfig(level=logging.WARNING)
    app.memory.work(lock=lock)
