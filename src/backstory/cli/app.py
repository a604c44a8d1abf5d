"""The group of all commands, and what they share."""

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

import click

from backstory.background import start_worker
from backstory.cli.parameters import PATH
from backstory.errors import BackstoryError
from backstory.hosts.base import Machine
from backstory.memory import Memory
from backstory.places import find_home, load_settings, this_machine
from backstory.settings import Settings

logger = logging.getLogger(__name__)

SKIPPED_SOME = 3
INTERRUPTED = 130


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Context:
    """What a command works with; nothing is opened before it is needed."""

    home: Path | None = None
    flags: tuple[str, ...] = ()
    machine: Machine = field(default_factory=this_machine)
    clock: Callable[[], datetime] = _now

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self.machine, self.flags)

    @cached_property
    def memory(self) -> Memory:
        home = find_home(self.machine, self.home)
        memory = Memory(
            home,
            self.settings,
            self.machine,
            clock=self.clock,
            start_worker=partial(start_worker, home, self.flags),
        )
        click.get_current_context().call_on_close(memory.close)
        return memory

    @property
    def user_home(self) -> Path:
        return self.machine.home


class Commands(click.Group):
    """A group whose commands may raise our errors, and be interrupted."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BackstoryError as exc:
            click.echo(f"backstory: {exc}", err=True)
            if exc.hint:
                click.echo(f"  hint: {exc.hint}", err=True)
            ctx.exit(exc.exit_code)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # Whoever read our output has seen enough; that is no failure of ours.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except (OSError, UnicodeError) as exc:
            # The output cannot be written, or a word on the command line is no text.
            logger.debug("%s", exc, exc_info=True)
            click.echo(f"backstory: {exc}", err=True)
            ctx.exit(BackstoryError.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home",
    type=PATH,
    help="Where everything is kept; otherwise $BACKSTORY_HOME or your data folder.",
)
@click.option(
    "--set",
    "flags",
    metavar="NAME=VALUE",
    multiple=True,
    help="Override a setting for this run; see 'backstory settings'.",
)
@click.version_option(package_name="backstory", message="backstory %(version)s")
@click.pass_context
def commands(ctx: click.Context, home: Path | None, flags: tuple[str, ...]) -> None:
    """A memory for AI agents: every past conversation, kept and found again."""
    # Whoever runs the commands may bring a context: one in which it is another day.
    ctx.obj = replace(ctx.obj or Context(), home=home, flags=flags)


def echo_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def terminal_width() -> int | None:
    """How wide standard output is; None when it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
