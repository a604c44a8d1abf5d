"""Long output on a terminal goes through a pager, as that of git does."""

import os
import sys
from collections.abc import Iterable

import click

from backstory.cli.app import echo_lines, terminal_width, to_encodable
from backstory.cli.style import is_dumb

# Asked in this order, as git asks GIT_PAGER and PAGER.
_PAGER_VARIABLES = ("BACKSTORY_PAGER", "PAGER")
_PAGERS = ("less", "more")
# These show everything as it is, which needs no other process.
_NO_PAGERS = ("", "cat")
# What git sets if nobody else did: leave at once if all fits, show colours, keep the
# text on the screen.
_LESS = "FRX"
# From here on, the shell's exit code means that a signal ended the pager.
_KILLED = 128
_IS_OFF = f"{__name__}.is_off"


def turn_off_pager(ctx: click.Context) -> None:
    """Print everything as it comes, in this command and those that it runs."""
    ctx.meta[_IS_OFF] = True


def _turn_off(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        turn_off_pager(ctx)


no_pager_option = click.option(
    "--no-pager",
    is_flag=True,
    expose_value=False,
    callback=_turn_off,
    help="Do not use a pager on a terminal.",
)


def page_lines(lines: Iterable[str]) -> None:
    """Show lines in the pager; without a terminal or a pager, print them."""
    is_off = _IS_OFF in click.get_current_context().meta
    can_page = not is_off and terminal_width() is not None and not is_dumb()
    command = _find_pager() if can_page else ""
    if not command:
        echo_lines(lines)
        return
    text = to_encodable("\n".join(lines)) + "\n"
    if not _run_pager(command, text):
        click.echo(text, nl=False)


def _find_pager() -> str:
    """The command of the pager; empty if there is none, or none is wanted."""
    for variable in _PAGER_VARIABLES:
        if (command := os.environ.get(variable)) is not None:
            return "" if command.strip() in _NO_PAGERS else command
    # Slow to import, and only needed on a terminal.
    import shutil

    return next((name for name in _PAGERS if shutil.which(name)), "")


def _run_pager(command: str, text: str) -> bool:
    """Whether the pager has shown the text, or as much as the person wanted to see."""
    # Slow to import, and only needed on a terminal.
    import signal
    import subprocess

    try:
        # Through the shell, as the variables may hold options: "less -S".
        pager = subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.PIPE,
            env={"LESS": _LESS, **os.environ},
        )
    except OSError:
        return False
    # Ctrl-C is for the pager, as it is under git: it stops a search there.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        # A person who has seen enough closes the pager before it has read everything.
        pager.communicate(text.encode(sys.stdout.encoding or "utf-8"))
    finally:
        signal.signal(signal.SIGINT, before)
    has_failed = 0 < pager.returncode < _KILLED
    return not has_failed
