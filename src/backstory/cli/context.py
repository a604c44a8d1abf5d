"""context, curate: the memories that agents are given."""

from pathlib import Path

import click

from backstory.cli.app import (
    FOUND_NOTHING,
    SKIPPED_SOME,
    App,
    commands,
    echo_lines,
)
from backstory.cli.parameters import SESSION, Number
from backstory.render.objects import context_object, to_json
from backstory.render.people.notes import render_curation


@commands.command()
@click.argument("prompt", nargs=-1, required=True)
@click.option(
    "--session",
    type=SESSION,
    metavar="ID",
    help="The session that asks; what it said is left out.",
)
@click.option(
    "--max-tokens",
    type=Number(0),
    help="Maximum number of tokens. Default: the setting context.max_tokens.",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="The folder that the prompt is about. Default: the current one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def context(
    app: App,
    prompt: tuple[str, ...],
    session: str | None,
    max_tokens: int | None,
    project: Path | None,
    as_json: bool,
) -> None:
    """Show the memories that fit PROMPT, as an agent is given them.

    They go below the agent's own system prompt. Exit code 1 means that there are none.
    """
    asked = " ".join(prompt)
    found = app.memory.context(
        asked, session=session, max_tokens=max_tokens, project=project
    )
    if as_json:
        click.echo(to_json(context_object(found)))
    elif found.text:
        click.echo(found.text)
    if not found.text:
        click.echo("No memories fit this prompt.", err=True)
        raise SystemExit(FOUND_NOTHING)


@commands.command()
@click.pass_obj
def curate(app: App) -> None:
    """Tidy MEMORY.md with the language model.

    It merges facts that say the same, corrects what a later log contradicts, and adds
    what came up on several days. The old version is kept in memory/backups.
    """
    curation = app.memory.curate()
    echo_lines(render_curation(curation))
    if curation.refused:
        raise SystemExit(SKIPPED_SOME)
