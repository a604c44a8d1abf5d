"""status, settings: how things stand."""

import click

from backstory.cli.app import Context, commands, echo_lines, terminal_width
from backstory.render import reports as render


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="One object.")
@click.pass_obj
def status(context: Context, as_json: bool) -> None:
    """Show how much is kept, when it was last read, and what went wrong."""
    found = context.memory.status()
    if as_json:
        click.echo(render.to_json(render.status_object(found)))
    else:
        echo_lines(render.render_status(found, home=context.user_home))


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@click.pass_obj
def settings(context: Context, as_json: bool) -> None:
    """Show every setting, its value, and where the value came from."""
    if as_json:
        listed = [render.setting_object(chosen) for chosen in context.settings]
        click.echo(render.to_json(listed))
        return
    lines = render.render_settings(
        context.settings, home=context.user_home, width=terminal_width()
    )
    echo_lines(lines)
