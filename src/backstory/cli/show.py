"""show: print a conversation to read, or to take elsewhere."""

import click

from backstory.cli.app import App, commands, echo_lines, terminal_width
from backstory.cli.messages import find_message
from backstory.cli.pager import no_pager_option, page_lines
from backstory.cli.parameters import SESSION, Number
from backstory.cli.style import choose_style
from backstory.render.objects import message_object, session_object, to_json
from backstory.render.people.markdown import render_shown
from backstory.render.people.messages import Folding, to_place
from backstory.render.people.transcript import render_transcript
from backstory.values.history import Message

_FORMATS = ("text", "markdown", "html", "json")


@commands.command(short_help="Show a conversation.")
@click.argument("session", type=SESSION)
@click.option(
    "--around", metavar="MESSAGE", help="Only this message and its neighbours."
)
@click.option(
    "-C",
    "--context",
    "neighbours",
    type=Number(0, 1_000_000),
    default=5,
    show_default=True,
    help="Number of messages on each side.",
)
@click.option("--tools", is_flag=True, help="Show tool calls and results in full.")
@click.option(
    "--format",
    "as_format",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="How to print it; html is a page of its own, for a file.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@no_pager_option
@click.pass_obj
def show(
    app: App,
    session: str,
    around: str | None,
    neighbours: int,
    tools: bool,
    as_format: str,
    as_json: bool,
) -> None:
    """Show a conversation; SESSION is its id or the beginning of its id.

    MESSAGE is the number shown before a message, or its native id. Tool calls and
    results take one line each; --tools shows them in full, and edits of files as diffs.
    """
    found = app.memory.session(session)
    asked = None if around is None else find_message(app.memory, found, around)
    messages = (
        app.memory.messages(found)
        if asked is None
        else app.memory.messages(found, around=asked.message_id, context=neighbours)
    )
    folding = Folding(tools, None if asked is None else asked.message_id)
    resume = app.memory.resume_commands([found]).get(found.session_id)
    if as_json or as_format == "json":
        whole = session_object(found, resume)
        whole["messages"] = [_to_object(message) for message in messages]
        click.echo(to_json(whole))
    elif as_format == "html":
        # It imports what makes HTML of Markdown, which takes long.
        from backstory.render.people.html import render_html

        echo_lines(render_html(found, messages, folding=folding))
    else:
        lines = (
            render_shown(found, messages, folding=folding)
            if as_format == "markdown"
            else render_transcript(
                found,
                messages,
                resume=resume,
                home=app.user_home,
                width=terminal_width(),
                style=choose_style(),
                folding=folding,
            )
        )
        page_lines(lines)


def _to_object(message: Message) -> dict[str, object]:
    """A message with the number that ``show`` gives it, and the one of the memory."""
    return message_object(message) | {
        "number": to_place(message),
        "message_id": message.message_id,
    }
