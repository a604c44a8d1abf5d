"""demo: a tour of the commands, on sample conversations that come with the package."""

import shlex
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import click

from backstory.cli.app import App, commands
from backstory.cli.pager import turn_off_pager
from backstory.system.files import write_new
from backstory.system.machine import CONFIG_VARIABLE, Machine

# In the week after the sample conversations, because scores depend on age.
_TODAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
_STEPS = (
    ("Which conversations have agents left on this machine?", ["sources"]),
    ("Read them all into one history that keeps them.", ["index", "--wait"]),
    ("List the conversations.", ["sessions"]),
    ("Search by words.", ["search", "council export", "-n", "2"]),
    (
        'Search by meaning: nobody said "duplicate" or "emails".',
        ["search", "why do people receive duplicate emails?", "-n", "1"],
    ),
    ("Read more around a hit.", ["show", "3c71e0d8", "--around", "4", "-C", "1"]),
    (
        "What an agent gets when it searches.",
        ["call", "search_history", '{"query": "council export", "max_results": 1}'],
    ),
    (
        "Tell all agents something for good.",
        ["memory", "add", "Wants every change explained in one sentence"],
    ),
    (
        "The memories an agent is given before it answers.",
        ["context", "what did we decide about the council export?"],
    ),
)


@commands.command(short_help="Show what Backstory does, on samples.")
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Show what Backstory does, on sample conversations in a temporary folder."""
    # A tour is read from top to bottom.
    turn_off_pager(ctx)
    samples = resources.files("backstory.cli") / "samples"
    with (
        resources.as_file(samples) as home,
        tempfile.TemporaryDirectory(prefix="backstory-demo-") as folder,
    ):
        # Only default settings, and no worker that outlives the folder.
        config = Path(folder) / "config.toml"
        write_new(config, b"[embedder]\nin_background = false\n")
        machine = Machine("linux", home, {CONFIG_VARIABLE: str(config)})
        for words, command in _STEPS:
            click.secho(f"# {words}", dim=True)
            click.secho("$ backstory " + shlex.join(command), bold=True)
            _run(ctx, _open(Path(folder), machine), command)
            click.echo()
        click.echo(f"For your own conversations: {_find_program()} install")


def _find_program() -> str:
    """What to type: in a checkout, the program may not be on the path."""
    typed = Path(sys.argv[0])
    is_elsewhere = typed.stem == "backstory" and shutil.which("backstory") is None
    return shlex.quote(str(typed)) if is_elsewhere else "backstory"


def _open(home: Path, machine: Machine) -> App:
    return App(home, machine=machine, clock=lambda: _TODAY)


def _run(ctx: click.Context, app: App, command: list[str]) -> None:
    found = commands.get_command(ctx, command[0])
    assert found is not None
    with found.make_context(command[0], command[1:], parent=ctx, obj=app) as made:
        found.invoke(made)
