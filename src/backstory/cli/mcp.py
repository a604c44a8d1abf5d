"""mcp: serve the memory to agent programs over the Model Context Protocol."""

import gc
import sys

import click

from backstory.cli.app import App, commands
from backstory.cli.parameters import HOST, Number
from backstory.ingest.hosts import get_host
from backstory.mcp import DEFAULT_PORT


@commands.command()
@click.option(
    "--host",
    type=HOST,
    metavar="NAME",
    help="The agent program that starts this server, such as claude-code.",
)
@click.option(
    "--http",
    "is_http",
    is_flag=True,
    help="Serve over HTTP on this machine, instead of standard input and output.",
)
@click.option(
    "--port",
    type=Number(1, 65535),
    help=f"The port for --http. Default: {DEFAULT_PORT}",
)
@click.pass_obj
def mcp(app: App, host: str | None, is_http: bool, port: int | None) -> None:
    """Serve the memory to an agent program (MCP).

    Agent programs start this command by themselves, once it is in their configuration.
    It reads what is new while it runs, and ends when the program that started it ends.
    With --http, it serves any program that knows the token, on loopback only.
    """
    if port is not None and not is_http:
        raise click.UsageError("--port is for --http.")
    if host is not None and is_http:
        raise click.UsageError(
            "--host is for a server that a program starts itself; with --http, any "
            "program may connect."
        )
    name = None if host is None else get_host(host).name
    # Thousands of classes are made and none is thrown away: looking for garbage in the
    # meantime would take a tenth of the time until the first answer.
    gc.disable()
    # Slow to import: the MCP library and all that it brings.
    from backstory.mcp.serve import serve_any, serve_host

    gc.freeze()
    gc.enable()

    if is_http:
        serve_any(
            app.memory,
            port or DEFAULT_PORT,
            tell=lambda line: click.echo(line, err=True),
        )
    else:
        if sys.stdin.isatty():
            click.echo(
                "Waiting for an agent program to speak MCP; they start this command by "
                "themselves.\nPress Ctrl-C to end.",
                err=True,
            )
        serve_host(app.memory, name, started_at=app.clock())
