"""forget: delete conversations and facts for good."""

import sys
from datetime import date

import click

from backstory.cli import INTERRUPTED
from backstory.cli.app import (
    FOUND_NOTHING,
    App,
    commands,
    echo_lines,
    terminal_width,
)
from backstory.cli.messages import find_message
from backstory.cli.parameters import (
    FIRST_DAY,
    HOST,
    LAST_DAY,
    PROJECT,
    SESSION,
    to_folder,
)
from backstory.render.objects import forget_object, forgetting_object, to_json
from backstory.render.people.forgetting import (
    render_forgettings,
    render_preview,
    render_receipt,
    render_undone,
)
from backstory.values.forgetting import ForgetReport


@commands.command(short_help="Delete conversations or a fact for good.")
@click.argument("session", type=SESSION, nargs=-1)
@click.option(
    "--message",
    "messages",
    metavar="ID",
    multiple=True,
    help="Only this message of SESSION: its number, or its native id.",
)
@click.option(
    "--project",
    type=PROJECT,
    metavar="FOLDER",
    help="All of this folder: its path or its name.",
)
@click.option("--host", type=HOST, metavar="NAME", help="All of this agent program.")
@click.option("--before", type=FIRST_DAY, help="All that was said before this day.")
@click.option("--after", type=LAST_DAY, help="All that was said after this day.")
@click.option(
    "--fact", metavar="TEXT", help="A fact of MEMORY.md: words that only it has."
)
@click.option("--with-notes", is_flag=True, help="Also what daily logs say about it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--list", "as_list", is_flag=True, help="List what was forgotten so far.")
@click.option("--undo", metavar="NUMBER", type=int, help="Let it be read again.")
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
@click.pass_obj
def forget(
    app: App,
    session: tuple[str, ...],
    messages: tuple[str, ...],
    project: str | None,
    host: str | None,
    before: date | None,
    after: date | None,
    fact: str | None,
    with_notes: bool,
    yes: bool,
    dry_run: bool,
    as_list: bool,
    undo: int | None,
    as_json: bool,
) -> None:
    """Delete conversations for good, and never read them again; or a fact.

    SESSION is an id or the beginning of one; subagents go with it. Instead of it,
    --project, --host, --before and --after narrow each other; --fact stands alone. What
    is deleted is erased from all files of the home. The agent program's own files stay;
    they are only left out from now on.
    """
    named = (session, messages, project, host, before, after, fact)
    is_named = any(each is not None and each != () for each in named)
    if (as_list or undo is not None) and (is_named or with_notes or dry_run):
        raise click.UsageError("--list and --undo stand alone: name nothing to forget.")
    if as_list and undo is not None:
        raise click.UsageError("Use either --list or --undo.")
    if as_list:
        _list(app, as_json)
        return
    if undo is not None:
        _undo(app, undo, as_json)
        return

    message_ids = _find_message_ids(app, session, messages)

    def run(*, dry_run: bool) -> ForgetReport:
        return app.memory.forget(
            session,
            messages=message_ids,
            project=to_folder(project),
            host=host,
            before=before,
            after=after,
            fact=fact,
            with_notes=with_notes,
            dry_run=dry_run,
        )

    preview = run(dry_run=True)
    if not as_json:
        _show(app, preview, is_dry_run=dry_run)
    if dry_run or preview.is_empty:
        receipt = preview
    else:
        ask_to_delete(yes=yes)
        receipt = run(dry_run=False)
    if as_json:
        click.echo(to_json(forget_object(receipt)))
    else:
        echo_lines(render_receipt(receipt))
    if preview.is_empty:
        raise SystemExit(FOUND_NOTHING)


def _find_message_ids(
    app: App, sessions: tuple[str, ...], names: tuple[str, ...]
) -> tuple[str, ...]:
    """The ids of messages that are named by their numbers in one session."""
    if not names:
        return ()
    if len(sessions) != 1:
        raise click.UsageError("--message needs the one SESSION that it is part of.")
    session = app.memory.session(sessions[0])
    return tuple(find_message(app.memory, session, name).native_id for name in names)


def _show(app: App, preview: ForgetReport, *, is_dry_run: bool) -> None:
    if preview.is_empty:
        click.echo("Nothing matches, so nothing is forgotten.")
        return
    sessions = [each.session for each in preview.sessions]
    echo_lines(
        render_preview(
            preview,
            names=app.memory.short_ids(sessions),
            home=app.user_home,
            width=terminal_width(),
            is_dry_run=is_dry_run,
        )
    )


def ask_to_delete(*, yes: bool) -> None:
    """Ask whether to go ahead, unless that was said already."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "There is no terminal to ask on. Pass --yes to go ahead."
        )
    if not click.confirm("Delete it for good?", err=True):
        click.echo("Nothing was deleted.", err=True)
        raise SystemExit(INTERRUPTED)


def _list(app: App, as_json: bool) -> None:
    found = app.memory.forgettings()
    if as_json:
        click.echo(to_json([forgetting_object(each) for each in found]))
    elif found:
        echo_lines(render_forgettings(found))
    else:
        click.echo("Nothing was forgotten.")


def _undo(app: App, number: int, as_json: bool) -> None:
    undone = app.memory.undo_forget(number)
    if as_json:
        click.echo(to_json(forgetting_object(undone)))
        return
    echo_lines(render_undone(undone))
