"""sessions, show: list conversations and read them."""

from datetime import date

import click

from backstory.cli.app import App, commands, echo_lines, terminal_width
from backstory.cli.parameters import FIRST_DAY, to_folder
from backstory.render.format import render_count
from backstory.render.objects import message_object, session_object, to_json
from backstory.render.people.reports import render_problems
from backstory.render.people.sessions import render_sessions, render_transcript


@commands.command()
@click.option("--host", metavar="NAME", help="Only sessions of this agent program.")
@click.option(
    "--project",
    metavar="FOLDER",
    help="Only sessions in this folder or below it; a path, or the folder's name.",
)
@click.option(
    "--since",
    type=FIRST_DAY,
    help="Only if active since this day: 2026-02-01, yesterday, 'last week'.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1_000_000),
    help="Maximum number of sessions.",
)
@click.option(
    "--resume",
    "with_resume",
    is_flag=True,
    help="Show how to continue each in its own program, where it can be.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def sessions(
    app: App,
    host: str | None,
    project: str | None,
    since: date | None,
    limit: int | None,
    with_resume: bool,
    as_json: bool,
) -> None:
    """List all conversations, most recently active first."""
    found = app.memory.sessions(
        host=host, project=to_folder(project), since=since, limit=limit
    )
    resumes = app.memory.resume_commands(found) if with_resume or as_json else {}
    if as_json:
        objects = [session_object(each, resumes.get(each.session_id)) for each in found]
        click.echo(to_json(objects))
    elif found:
        lines = render_sessions(
            found,
            names=app.memory.short_ids(found),
            resumes=resumes,
            home=app.user_home,
            width=terminal_width(),
        )
        echo_lines(lines)
    elif total := len(app.memory.sessions()):
        click.echo(f"None of {render_count(total, 'session')} matches.")
    else:
        click.echo("No sessions. Run 'backstory index' to read what your agents wrote.")
    if not found:
        _say_what_is_lost(app)


def _say_what_is_lost(app: App) -> None:
    """Tell what is wrong: there may have been sessions, in a history that is lost."""
    if not app.memory.sessions():
        problems = app.memory.status().problems
        for line in render_problems(problems, home=app.user_home):
            click.echo(line, err=True)


@commands.command(short_help="Show a conversation.")
@click.argument("session")
@click.option(
    "--around", metavar="MESSAGE", help="Only this message and its neighbours."
)
@click.option(
    "-C",
    "--context",
    "neighbours",
    type=click.IntRange(0, 1_000_000),
    default=5,
    show_default=True,
    help="Number of messages on each side.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def show(
    app: App, session: str, around: str | None, neighbours: int, as_json: bool
) -> None:
    """Show a conversation; SESSION is its id or the beginning of its id.

    MESSAGE is the number shown before a message, or its native id.
    """
    found = app.memory.session(session)
    messages = app.memory.messages(found, around=around, context=neighbours)
    resume = app.memory.resume_commands([found]).get(found.session_id)
    if as_json:
        whole = session_object(found, resume)
        whole["messages"] = [message_object(message) for message in messages]
        click.echo(to_json(whole))
        return
    lines = render_transcript(
        found, messages, resume=resume, home=app.user_home, width=terminal_width()
    )
    echo_lines(lines)
