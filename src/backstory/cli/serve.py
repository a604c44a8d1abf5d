"""serve: one memory for the agents of many people and machines."""

from pathlib import Path

import click

from backstory.cli.app import App, commands
from backstory.cli.parameters import PATH, Number
from backstory.serve import DEFAULT_PORT
from backstory.system.machine import find_home


@commands.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen on.",
)
@click.option(
    "--port",
    type=Number(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A name by which clients reach it, such as memory.example.org. Repeatable.",
)
@click.option("--certificate", type=PATH, help="PEM file with the certificate chain.")
@click.option("--key", type=PATH, help="PEM file with the key of the certificate.")
@click.option(
    "--behind-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="The address of a proxy that does TLS; its X-Forwarded headers are believed. "
    "Repeatable.",
)
@click.pass_obj
def serve(
    app: App,
    host: str,
    port: int,
    names: tuple[str, ...],
    certificate: Path | None,
    key: Path | None,
    proxies: tuple[str, ...],
) -> None:
    """Serve the memory to other machines: MCP, the page and its JSON API.

    Every client needs a token ('backstory token create'). Without --certificate or
    --behind-proxy, it listens on this machine only. SIGTERM or Ctrl-C ends it, after
    the requests that are being answered.
    """
    # Slow to import, and --help does not need it.
    from backstory.serve.listening import Listening
    from backstory.serve.start import serve_memory

    serve_memory(
        find_home(app.machine, app.home),
        app.machine,
        app.flags,
        Listening(host, port, certificate, key, proxies),
        names=names,
        clock=app.clock,
        tell=click.echo,
    )
