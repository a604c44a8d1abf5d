"""rebuild, work: take care of the index."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from backstory import render
from backstory.cli.app import SKIPPED_SOME, Context, commands, echo_lines

OnCount = Callable[[int, int], None]


@commands.command()
@click.pass_obj
def rebuild(context: Context) -> None:
    """Make the index again from the history and the notes.

    The old one serves until the new one is whole; stopped half-way, nothing has
    changed. No vector is made that is there already.
    """
    with counting("messages") as on_taken:
        report = context.memory.rebuild(on_taken=on_taken)
    index = context.memory.status().index
    click.echo(
        f"Indexed {index.units:,} messages, titles and notes; "
        f"{index.embedded:,} of {index.with_meaning:,} have their vector."
    )
    echo_lines(render.render_problems(report.problems, home=context.user_home))
    if report.problems:
        raise SystemExit(SKIPPED_SOME)


@commands.command(hidden=True)
@click.pass_obj
def work(context: Context) -> None:
    """Do what is left to do in the background; started by the other commands."""
    # Nobody waits for it, and somebody may be working.
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(10)
    logging.basicConfig(level=logging.WARNING)
    context.memory.work()


@contextmanager
def counting(noun: str) -> Iterator[OnCount | None]:
    """A bar that counts, on a terminal; nothing anywhere else."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(noun))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
