"""demo: the main job, on sample conversations that come with the package."""

import shlex
import tempfile
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import click

from backstory.cli.app import App, commands
from backstory.system.machine import CONFIG_VARIABLE, Machine

# The week after the sample conversations: what a hit scores depends on its age.
_TODAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
_STEPS = (
    ("What have the agents on this machine left behind?", ["sources"]),
    ("Read all of it into one store that keeps it.", ["index", "--wait"]),
    ("Which conversations were there?", ["sessions"]),
    ("Find something by its words.", ["search", "council export", "-n", "2"]),
    (
        "Find something by what it means: none of these words was said.",
        ["search", "why do people receive duplicate emails?", "-n", "1"],
    ),
    ("Read more of what was found.", ["show", "3c71e0d8", "--around", "4", "-C", "1"]),
    (
        "What does an agent get that searches?",
        ["call", "search_history", '{"query": "council export", "max_results": 1}'],
    ),
    (
        "Tell all agents something for good.",
        ["memory", "add", "Wants every change explained in one sentence"],
    ),
    (
        "What is an agent reminded of before it answers?",
        ["context", "what did we decide about the council export?"],
    ),
)


@commands.command()
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Show the main job on sample conversations, in a temporary folder."""
    samples = resources.files("backstory.cli") / "samples"
    with (
        resources.as_file(samples) as home,
        tempfile.TemporaryDirectory(prefix="backstory-demo-") as folder,
    ):
        # Nobody's settings but the defaults, and nothing that outlives the folder.
        config = Path(folder) / "config.toml"
        config.write_text("[embedder]\nin_background = false\n", encoding="utf-8")
        machine = Machine("linux", home, {CONFIG_VARIABLE: str(config)})
        for words, command in _STEPS:
            click.secho(f"# {words}", dim=True)
            click.secho("$ backstory " + shlex.join(command), bold=True)
            _run(ctx, _open(Path(folder), machine), command)
            click.echo()
        click.echo("For your own conversations: .venv/bin/backstory index")


def _open(home: Path, machine: Machine) -> App:
    return App(home, machine=machine, clock=lambda: _TODAY)


def _run(ctx: click.Context, app: App, command: list[str]) -> None:
    found = commands.get_command(ctx, command[0])
    assert found is not None
    with found.make_context(command[0], command[1:], parent=ctx, obj=app) as made:
        found.invoke(made)
