"""web: search, read and edit the memory in a browser."""

import click

from backstory.cli.app import App, commands
from backstory.cli.parameters import Number
from backstory.web import DEFAULT_PORT


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

    serve_page(app.open_memory, port, machine=app.machine, tell=tell)


def _open_browser(link: str) -> None:
    """Open a link without waiting, as a browser in a terminal would have us do."""
    # Only this needs them.
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
