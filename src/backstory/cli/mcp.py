"""mcp: serve the memory to agent programs over the Model Context Protocol."""

import gc

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
    default=DEFAULT_PORT,
    show_default=True,
    help="The port for --http.",
)
@click.pass_obj
def mcp(app: App, host: str | None, is_http: bool, port: int) -> None:
    """Serve the memory to an agent program (MCP).

    Agent programs start this command by themselves, once it is in their configuration.
    It reads what is new while it runs, and ends when the program that started it ends.
    With --http, it serves any program that knows the token, on loopback only.
    """
    name = None if host is None else get_host(host).name
    # Thousands of classes are made and none is thrown away: looking for garbage in the
    # meantime would take a tenth of the time until the first answer.
    gc.disable()
    # Slow to import: the MCP library and all that it brings.
    from backstory.mcp.serve import serve_any, serve_host

    gc.freeze()
    gc.enable()

    if is_http:
        serve_any(app.memory, port, tell=lambda line: click.echo(line, err=True))
    else:
        serve_host(app.memory, name, started_at=app.clock())
