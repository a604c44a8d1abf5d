"""web: search, read and edit the memory in a browser."""

from typing import TYPE_CHECKING

import click

from backstory.cli.app import COMMANDS, App, commands
from backstory.cli.parameters import Number
from backstory.web import DEFAULT_PORT

if TYPE_CHECKING:
    from backstory.web.commands import CommandHelp


@commands.command()
@click.option(
    "--port",
    type=Number(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--open/--no-open",
    "opens_browser",
    default=True,
    help="Open the page in your browser, or only print its link.",
)
@click.pass_obj
def web(app: App, port: int, opens_browser: bool) -> None:
    """Open your memory as a page in the browser.

    The page is served on this machine only, to whoever opens the link that is printed;
    the link works once. Ctrl-C ends it.
    """
    # Slow to import: the web server and the templates.
    from backstory.web.serve import serve_page

    def tell(link: str) -> None:
        click.echo(f"Your memory is at {link}")
        click.echo("Press Ctrl-C to end.", err=True)
        if opens_browser:
            _open_browser(link)

    serve_page(
        app.open_memory,
        port,
        machine=app.machine,
        tell=tell,
        list_commands=list_commands,
    )


def list_commands() -> "list[CommandHelp]":
    """All commands, as their own help describes them."""
    # Slow to import, as above.
    from backstory.web.commands import CommandHelp

    found = []
    with click.Context(commands, info_name="backstory") as parent:
        for name in COMMANDS:
            command = commands.get_command(parent, name)
            assert command is not None
            if command.hidden:
                continue
            context = click.Context(command, info_name=name, parent=parent)
            needed = [
                each.make_metavar(context)
                for each in command.params
                if isinstance(each, click.Argument) and each.required
            ]
            found.append(
                CommandHelp(
                    name,
                    " ".join(["backstory", name, *needed]),
                    command.get_short_help_str(limit=200),
                    command.get_help(context),
                )
            )
    return found


def _open_browser(link: str) -> None:
    """Open a link without waiting, as a browser in a terminal would have us do."""
    # Only this needs them.
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
