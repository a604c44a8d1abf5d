"""rebuild, salvage, work: take care of the files."""

import logging
import os
from contextlib import suppress

import click

from backstory.cli import progress
from backstory.cli.app import (
    FOUND_NOTHING,
    SKIPPED_SOME,
    App,
    commands,
    echo_lines,
)
from backstory.render.format import render_count, render_path
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
        f"notes. Vectors: {index.embedded:,} of {index.embeddable:,}."
    )
    echo_lines(render_problems(report.problems, home=app.user_home))
    if report.problems:
        raise SystemExit(SKIPPED_SOME)


@commands.command()
@click.pass_obj
def salvage(app: App) -> None:
    """Save what the index still knows of messages that the history has lost.

    Writes their texts, without upper case, to a file that 'backstory index --path' can
    read. Exit code 1 means that there was nothing to save.
    """
    saved = app.memory.salvage()
    if saved is None:
        click.echo("The index has no message that the history lacks.")
        raise SystemExit(FOUND_NOTHING)
    path = render_path(str(saved.path), app.user_home)
    click.echo(f"Saved {render_count(saved.messages, 'message')} to {path}.")


@commands.command(hidden=True)
@click.pass_obj
def work(app: App) -> None:
    """Do the work in the background; started by other commands."""
    # Nobody waits for it, so other programs go first.
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(10)
    logging.basicConfig(level=logging.WARNING)
    app.memory.work()
