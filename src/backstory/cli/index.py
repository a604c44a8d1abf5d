"""index, sources: read what the agents on this machine wrote."""

import shlex
import time
from pathlib import Path

import click
import orjson

from backstory.cli import progress
from backstory.cli.app import (
    SKIPPED_SOME,
    App,
    commands,
    echo_lines,
    terminal_width,
)
from backstory.cli.parameters import HOST, PATH
from backstory.cli.push import ContinuousPush
from backstory.errors import StoreUnreachable
from backstory.ingest.hosts import HOSTS
from backstory.render.format import render_count
from backstory.render.objects import report_object, source_object, to_json
from backstory.render.people.forgetting import render_forgetting
from backstory.render.people.reports import (
    render_excluded,
    render_problems,
    render_report,
    render_sources,
)
from backstory.values.history import Problem
from backstory.values.reports import IndexReport


def _to_current_name(option: str) -> str:
    """The name of an option; ``--host`` was called ``--source``."""
    return "host" if option == "source" else option


@commands.command(
    context_settings={
        "token_normalize_func": _to_current_name,
        # To say what is wrong with them.
        "allow_extra_args": True,
    }
)
@click.option("--host", type=HOST, metavar="NAME", help="Only this agent program.")
@click.option(
    "--path",
    type=PATH,
    help="Only this file or folder, wherever it is.",
)
@click.option("--watch", is_flag=True, help="Keep running; read files as they grow.")
@click.option("--wait", is_flag=True, help="Also make all vectors before exiting.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def index(
    ctx: click.Context,
    host: str | None,
    path: Path | None,
    watch: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Read the agents' conversations that are new or have grown.

    They can be searched by words at once; vectors, for search by meaning, are made in
    the background. Exit code 3 means that something could not be read or embedded.
    """
    app: App = ctx.obj
    if ctx.args:
        given = ctx.args[0]
        is_host = any(given == each.name for each in HOSTS)
        what = "agent program" if is_host else "file or folder"
        option = "--host" if is_host else "--path"
        words = shlex.join(["backstory", "index", option, given])
        raise click.UsageError(f"To read only some {what}: {words}")
    if watch:
        _watch(app, host, path, as_json)
        return
    started = time.monotonic()
    before = {each.forgetting_id for each in app.memory.forgettings()}
    has_all = True
    with progress.bars() as bars:
        report = app.memory.index(
            host=host,
            path=path,
            on_progress=bars.reading(),
            on_taken=bars.counting("messages made findable"),
            on_wait=_say_waiting,
        )
        if wait:
            has_all = app.memory.embed(on_embedded=bars.counting("vectors"))
    if as_json:
        click.echo(to_json(report_object(report)))
    else:
        took_s = time.monotonic() - started
        lines = render_report(
            report,
            home=app.user_home,
            took_s=took_s,
            path=path,
            index=None if wait else app.memory.status().index,
        )
        echo_lines(lines)
        # What the settings do not keep, or a person moved to a program's trash.
        done = [
            each
            for each in app.memory.forgettings()
            if each.forgetting_id not in before
        ]
        echo_lines(map(render_forgetting, done))
        echo_lines(render_excluded(app.memory.excluded()))
    if not has_all:
        index = app.memory.status().index
        missing = render_count(index.with_meaning - index.embedded, "vector")
        click.echo(f"The embedder did not make {missing}.", err=True)
    if report.problems or not has_all:
        raise SystemExit(SKIPPED_SOME)


@commands.command(short_help="Show what the agents have on this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def sources(app: App, as_json: bool) -> None:
    """Show what each agent program has on this machine, and how much was read."""
    found = app.memory.sources()
    if as_json:
        click.echo(to_json([source_object(source) for source in found]))
    elif found:
        lines = render_sources(found, home=app.user_home, width=terminal_width())
        echo_lines(lines)
    else:
        click.echo("No agent program has left conversations on this machine.")


def _watch(app: App, host: str | None, path: Path | None, as_json: bool) -> None:
    click.echo("Watching; stop with Ctrl-C.", err=True)
    known: tuple[Problem, ...] = ()
    push = ContinuousPush(app)
    reports = app.memory.watch(
        host=host, path=path, on_lost=_say_lost, on_back=_say_back
    )
    for report in reports:
        if report.read or report.problems != known:
            _echo_change(report, app.user_home, as_json)
        known = report.problems
        push.push_new()


def _say_lost(problem: StoreUnreachable) -> None:
    click.echo(f"Waiting for the database. {problem}", err=True)


def _say_back() -> None:
    click.echo("The database can be reached again.", err=True)


def _echo_change(report: IndexReport, home: Path, as_json: bool) -> None:
    if as_json:
        click.echo(orjson.dumps(report_object(report)))
        return
    at = time.strftime("%H:%M:%S")
    new = render_count(report.new_messages, "new message")
    click.echo(f"{at}  {new} in {render_count(report.read, 'source')}")
    echo_lines(render_problems(report.problems, home=home))


def _say_waiting() -> None:
    click.echo("Another 'backstory index' is running; waiting for it.", err=True)
