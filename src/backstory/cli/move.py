"""move: copy a memory from files to a database, or back."""

import click

from backstory.address import read_address
from backstory.cli import progress
from backstory.cli.app import SKIPPED_SOME, App, commands, echo_lines
from backstory.cli.parameters import PATH
from backstory.database import check
from backstory.memory import Memory
from backstory.render.people.reports import render_move, render_problems
from backstory.settings import STORE_URL, load_settings
from backstory.system.machine import absolute, find_home

_TO = "--to"
_ADDRESSES = ("postgresql://", "postgres://", "env:", "file:")


@commands.command(short_help="Copy the memory to a PostgreSQL database, or back.")
@click.option(
    _TO,
    "target",
    required=True,
    metavar="URL|FOLDER",
    help="A PostgreSQL database (postgresql://…, env:NAME or file:/path), or the "
    "folder of a home.",
)
@click.option(
    "--tenant",
    metavar="NAME",
    help="The tenant in that database; default: store.tenant.",
)
@click.pass_obj
def move(app: App, target: str, tenant: str | None) -> None:
    """Copy the whole memory to a PostgreSQL database, or from one into files.

    Conversations keep their numbers, and searches find the same. The copy is compared
    with the original, which stays as it is. If it is stopped, run it again: it
    continues where it stopped. Run again later, it copies what is new, unless the copy
    has been used in the meantime. To use the copy, set store.url, or unset it.
    """
    home, flags = find_home(app.machine, app.home), list(app.flags)
    if target.startswith(_ADDRESSES):
        # So that an error names the option, not the setting.
        check(read_address(target, _TO, app.machine.environ), named_by=_TO)
        flags.append(f"{STORE_URL}={target}")
        flags += [] if tenant is None else [f"store.tenant={tenant}"]
    elif "://" in target:
        # Not repeated: part of it may be a password.
        raise click.BadParameter(
            "It is neither the address of a PostgreSQL database nor a folder.",
            param_hint=f"'{_TO}'",
        )
    else:
        if tenant is not None:
            raise click.UsageError(
                f"--tenant is for a database, and {_TO} names a folder."
            )
        flags.append(f"{STORE_URL}=")
        home = absolute(str(PATH.convert(target, None, None)), app.machine)
    settings = load_settings(app.machine, flags)
    with (
        Memory(home, settings, app.machine, clock=app.clock) as copy,
        progress.bars() as bars,
    ):
        report = app.memory.move_to(
            copy,
            on_count=bars.counting("messages"),
            on_taken=bars.counting("messages made findable"),
        )
        place = copy.status().store or str(home)
    echo_lines(render_move(report, place, home=app.user_home))
    if report.problems:
        echo_lines(render_problems(report.problems, home=app.user_home))
        raise SystemExit(SKIPPED_SOME)
