"""status, settings: the state of a home, and how it is configured."""

import click

from backstory.cli.app import App, commands, echo_lines, terminal_width
from backstory.render.format import render_path
from backstory.render.objects import setting_object, status_object, to_json
from backstory.render.people.reports import render_settings, render_status
from backstory.system.machine import find_user_file
from backstory.text.escape import neutralize


@commands.command(short_help="Show how much is kept, and what went wrong.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(app: App, as_json: bool) -> None:
    """Show how much is kept, when it was last read, and what went wrong."""
    found = app.memory.status()
    if as_json:
        click.echo(to_json(status_object(found)))
    else:
        echo_lines(render_status(found, home=app.user_home))


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def settings(app: App, as_json: bool) -> None:
    """Show every setting, its value and where the value comes from."""
    if as_json:
        listed = [setting_object(chosen) for chosen in app.settings]
        click.echo(to_json(listed))
        return
    lines = render_settings(app.settings, home=app.user_home, width=terminal_width())
    echo_lines(lines)
    user_file = render_path(str(find_user_file(app.machine)), app.user_home)
    click.echo(f"\nYour own values go into {neutralize(user_file)}.")
