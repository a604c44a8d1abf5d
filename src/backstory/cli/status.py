"""status, settings: the state of a home, and how it is configured."""

import shlex

import click

from backstory.cli.app import App, Group, commands, echo_lines, terminal_width
from backstory.cli.pager import no_pager_option, page_lines
from backstory.cli.parameters import SETTING, VALUE
from backstory.options import EXCLUDED_HOSTS, read_excluded_hosts
from backstory.render.format import render_path
from backstory.render.people.reports import (
    render_excluded,
    render_settings,
    render_status,
    render_value,
)
from backstory.settings import (
    SETTINGS,
    change_setting,
    get_setting,
    read_settings,
    unset_setting,
)
from backstory.system.machine import find_home, find_user_file
from backstory.text.escape import neutralize


@commands.command(short_help="Show how much is kept, and what went wrong.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(app: App, as_json: bool) -> None:
    """Show how much is kept, when it was last read, and what went wrong."""
    found = app.memory.status()
    if as_json:
        # Slow to import, and people read text.
        from backstory.render.objects import status_object, to_json

        click.echo(to_json(status_object(found)))
    else:
        lines = render_status(found, home=app.user_home, width=terminal_width())
        echo_lines(lines)


class _Settings(Group):
    """The group of settings, which tells what to type for the name of one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if any(name == setting.name for setting in SETTINGS):
            words = shlex.join(["get" if len(args) == 1 else "set", *args])
            ctx.fail(f"No such command '{name}'. Did you mean 'settings {words}'?")
        return super().resolve_command(ctx, args)


@commands.group(cls=_Settings, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@no_pager_option
@click.pass_context
def settings(ctx: click.Context, as_json: bool) -> None:
    """Show every setting, its value and where the value comes from."""
    if ctx.invoked_subcommand is not None:
        return
    app: App = ctx.obj
    if as_json:
        # As above.
        from backstory.render.objects import setting_object, to_json

        listed = [setting_object(chosen) for chosen in app.settings]
        click.echo(to_json(listed))
        return
    lines = render_settings(app.settings, home=app.user_home, width=terminal_width())
    page_lines([*lines, "", f"Your own values go into {_user_file(app)}."])


@settings.command("get", short_help="Show the value of one setting.")
@click.argument("name", type=SETTING)
@click.pass_obj
def get_value(app: App, name: str) -> None:
    """Show the value of one setting, as it counts now; a key is not shown."""
    click.echo(neutralize(render_value(get_setting(app.settings, name).shown)))


# A value may begin with a dash, as -1 does; only the setting knows whether it is one.
@settings.command(
    "set",
    short_help="Set a value in your own configuration file.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("name", type=SETTING)
@click.argument("value", type=VALUE)
@click.pass_obj
def set_value(app: App, name: str, value: str) -> None:
    """Set a value in your own configuration file; everything else in it stays.

    Items of a list are separated by commas, or written as in the file: '["a", "b"]'.
    """
    if name == EXCLUDED_HOSTS:
        # With an unknown name in the file, no command would work.
        read_excluded_hosts(read_settings(environ={}, flags=[f"{name}={value}"]))
    chosen = change_setting(app.machine, name, value)
    click.echo(f"Set {chosen.setting.name} in {_user_file(app)}.")
    _say_if_overridden(app, chosen.setting.variable)
    if name.startswith("exclude.") and find_home(app.machine, app.home).is_dir():
        echo_lines(render_excluded(app.memory.excluded()))


@settings.command("unset", short_help="Go back to the default of a setting.")
@click.argument("name", type=SETTING)
@click.pass_obj
def unset_value(app: App, name: str) -> None:
    """Remove a value from your own configuration file, so that the default counts."""
    if unset_setting(app.machine, name):
        click.echo(f"Removed {name} from {_user_file(app)}.")
    else:
        click.echo(f"{name} is not set in {_user_file(app)}.")


def _user_file(app: App) -> str:
    path = render_path(str(find_user_file(app.machine)), app.user_home)
    return neutralize(path)


def _say_if_overridden(app: App, variable: str) -> None:
    if app.machine.environ.get(variable):
        click.echo(f"{variable} in the environment overrides it.", err=True)
