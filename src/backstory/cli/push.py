"""push: send what is new to a server."""

import time

import click

from backstory.cli import progress
from backstory.cli.app import SKIPPED_SOME, App, commands, echo_lines
from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreLocked,
    StoreUnreachable,
)
from backstory.render.objects import push_object, to_json
from backstory.render.people.pushes import render_push

# After a failure, a server is left alone for so long.
_PAUSE_S = 30.0


@commands.command()
@click.option(
    "--to", "url", metavar="URL", help="The server; otherwise that of push.url."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_obj
def push(app: App, url: str | None, as_json: bool) -> None:
    """Send the conversations that are new to a server ('backstory serve').

    What agents have written since the last reading is read first. The token is where
    push.token says. What the server has is not sent again; what you forget here is
    forgotten there with the next push. Exit code 3 means that something was left out.
    """
    # Before reading, which may take long.
    app.memory.check_push(url)
    with progress.bars() as bars:
        if app.settings.flag("search.read_changed"):
            app.memory.index(
                on_progress=bars.reading(),
                on_taken=bars.counting("messages made findable"),
            )
        report = app.memory.push(url, on_count=bars.counting("changes sent"))
    if as_json:
        click.echo(to_json(push_object(report)))
    else:
        echo_lines(render_push(report))
    if report.problems:
        raise SystemExit(SKIPPED_SOME)


class ContinuousPush:
    """Sends what is new each time, and says once what keeps it from sending.

    Reading never stops because of that: agent programs delete what is not read in time.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._is_wanted = bool(app.settings.text("push.url"))
        self._not_before = 0.0
        self._said = ""

    def push_new(self) -> None:
        """Send what is new, if a server is set and not left alone after a failure."""
        if not self._is_wanted or time.monotonic() < self._not_before:
            return
        try:
            report = self._app.memory.push()
        except (StoreLocked, StoreUnreachable):
            # Somebody else pushes, or there is nothing to read from; what is left is
            # sent the next time.
            return
        except (ProviderError, ConfigError) as exc:
            # Also for a token that is not there while it is replaced.
            self._not_before = time.monotonic() + _PAUSE_S
            if str(exc) != self._said:
                click.echo(f"Not pushed: {exc}", err=True)
                click.echo(f"  hint: {exc.hint}", err=True)
            self._said = str(exc)
            return
        self._said = ""
        if not report.is_empty:
            echo_lines(render_push(report))
