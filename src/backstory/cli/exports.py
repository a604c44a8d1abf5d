"""export, import: everything as files, and back."""

from datetime import date
from pathlib import Path

import click

from backstory.cli import progress
from backstory.cli.app import (
    FOUND_NOTHING,
    SKIPPED_SOME,
    App,
    commands,
    echo_lines,
)
from backstory.cli.parameters import (
    FIRST_DAY,
    LAST_DAY,
    PATH,
    SESSION,
    host_option,
    project_option,
    to_folder,
)
from backstory.render.objects import export_object, import_object, to_json
from backstory.render.people.exports import render_export, render_import


@commands.command(short_help="Write conversations and notes into a folder or zip file.")
@click.argument("path", type=PATH)
@click.argument("session", type=SESSION, nargs=-1)
@host_option
@project_option
@click.option(
    "--since", type=FIRST_DAY, help="Only sessions active on this day or later."
)
@click.option(
    "--until", type=LAST_DAY, help="Only sessions that began on this day or before."
)
@click.option(
    "--only",
    type=click.Choice(["conversations", "notes"]),
    help="Leave out the other. Default: both, unless sessions are chosen.",
)
@click.option(
    "--mask-secrets", is_flag=True, help="Mask keys and passwords, to share it."
)
@click.option(
    "--delete", is_flag=True, help="Delete from the folder what is not exported now."
)
@click.option(
    "--force",
    is_flag=True,
    help="Overwrite a zip file, or exported files that were edited.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
@click.pass_obj
def export(
    app: App,
    path: Path,
    session: tuple[str, ...],
    host: str | None,
    project: str | None,
    since: date | None,
    until: date | None,
    only: str | None,
    mask_secrets: bool,
    delete: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write conversations and notes as files into the folder PATH.

    If PATH ends in .zip, into one zip file. Everything is exported, or only some
    sessions: SESSION is an id or the beginning of one, and subagents go with it. Each
    conversation is a Markdown file to read, and a JSONL file with everything about it
    for 'backstory import'. A folder that has an export is brought up to date. Exit code
    3 means that something could not be read.
    """
    with progress.bars() as bars:
        report = app.memory.export(
            path,
            session,
            host=host,
            project=to_folder(project),
            since=since,
            until=until,
            only=only,
            mask_secrets=mask_secrets,
            delete=delete,
            force=force,
            on_count=bars.counting("conversations and notes"),
            on_wait=_say_waiting,
        )
    if as_json:
        click.echo(to_json(export_object(report)))
    elif report.is_empty:
        click.echo("There is nothing to export; nothing was written.")
    else:
        echo_lines(render_export(report, home=app.user_home))
    if report.is_empty:
        raise SystemExit(FOUND_NOTHING)
    if report.problems:
        raise SystemExit(SKIPPED_SOME)


@commands.command("import", short_help="Add what is new in an export.")
@click.argument("path", type=PATH)
@click.option(
    "--only",
    type=click.Choice(["conversations", "notes"]),
    help="Leave out the other. Agents will treat the imported notes as yours.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@click.option(
    "--skip-damaged",
    is_flag=True,
    help="If files are missing or were changed, import the others.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
@click.pass_obj
def import_export(
    app: App,
    path: Path,
    only: str | None,
    dry_run: bool,
    skip_damaged: bool,
    as_json: bool,
) -> None:
    """Add what is new in an export; PATH is its folder or zip file.

    The files are compared with the manifest first. What is here already stays as it is,
    and what was forgotten here does not return. Importing twice changes nothing. Exit
    code 3 means that something was left out because it could not be read.
    """
    with progress.bars() as bars:
        report = app.memory.import_export(
            path,
            only=only,
            skip_damaged=skip_damaged,
            dry_run=dry_run,
            on_count=bars.counting("files checked and read"),
            on_taken=bars.counting("messages made findable"),
        )
    if as_json:
        click.echo(to_json(import_object(report)))
    else:
        echo_lines(render_import(report, home=app.user_home))
    if report.damaged or report.problems:
        raise SystemExit(SKIPPED_SOME)


def _say_waiting() -> None:
    click.echo("Another 'backstory export' is running; waiting for it.", err=True)
