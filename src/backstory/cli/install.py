"""install, uninstall, doctor: connect the agent programs on this machine."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from backstory.cli import progress
from backstory.cli.app import SKIPPED_SOME, App, commands, echo_lines
from backstory.cli.parameters import INSTALLABLE, Number
from backstory.errors import BackstoryError, ConfigError
from backstory.install.doctor import Mark, examine, examine_models
from backstory.install.hosts import HOST_ROWS, get_host_row
from backstory.install.hosts.base import HostRow
from backstory.install.report import (
    HostReport,
    host_object,
    render_findings,
    render_host,
    render_kept,
    render_next,
    render_projects,
    suggest_first,
)
from backstory.install.setup import Setup
from backstory.options import check_llm, try_embedder
from backstory.render.objects import report_object, to_json
from backstory.render.people.reports import render_report
from backstory.settings import SETTINGS, change_setting, load_settings
from backstory.system.machine import find_home
from backstory.values.structs import to_builtins

_NAMES = [row.name for row in HOST_ROWS]

_Command = TypeVar("_Command", bound=Callable[..., None])


def _host_options(command: _Command) -> _Command:
    """The arguments that say where to install."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option("--dry-run", is_flag=True, help="Only show what would change."),
        click.option(
            "--project",
            "in_project",
            is_flag=True,
            help="Only for the current folder, in files of its own.",
        ),
        click.argument("names", type=INSTALLABLE, metavar="[HOST]...", nargs=-1),
    ):
        command = option(command)
    return command


@commands.command(short_help="Connect agent programs, so that they remember.")
@_host_options
@click.option("--all", "all_found", is_flag=True, help="All that are on this machine.")
@click.option(
    "--logs",
    metavar="MODEL",
    help="Which language model may write daily logs: none, claude, ollama, …",
)
@click.option(
    "--daily-tokens",
    type=Number(0),
    help="How many tokens a day it may use at most.",
)
@click.pass_obj
def install(
    app: App,
    names: tuple[str, ...],
    in_project: bool,
    dry_run: bool,
    as_json: bool,
    all_found: bool,
    logs: str | None,
    daily_tokens: int | None,
) -> None:
    """Connect agent programs, so that they remember, and read their history.

    HOST is claude-code, codex, gemini, copilot, opencode, cursor or vscode; without
    one, those on this machine are offered. Everything else in their files stays as it
    is, and 'backstory uninstall' takes our parts out again.
    """
    setup = _set_up(app, in_project=in_project, is_dry_run=dry_run)
    is_asking = not (as_json or dry_run) and _is_on_terminal()
    rows = _choose(setup, names, all_found=all_found, is_asking=is_asking)
    if not rows:
        return
    if not dry_run:
        _choose_model(app, logs, daily_tokens, is_asking=is_asking)
    reports = [setup.install(row) for row in rows]
    if as_json:
        _print_installed_json(app, setup, reports, dry_run)
    else:
        _print_installed(app, setup, reports, dry_run)
    _exit_with(reports)


@commands.command()
@_host_options
@click.pass_obj
def uninstall(
    app: App, names: tuple[str, ...], in_project: bool, dry_run: bool, as_json: bool
) -> None:
    """Remove everything that 'backstory install' added.

    Without HOST, from all agent programs. The history and the notes are kept.
    """
    setup = _set_up(app, in_project=in_project, is_dry_run=dry_run)
    rows = [get_host_row(name) for name in names] or list(HOST_ROWS)
    reports = [setup.uninstall(row) for row in rows]
    touched = [each for each in reports if names or each.changes or each.error]
    if as_json:
        listed = [host_object(each, is_dry_run=dry_run) for each in touched]
        click.echo(to_json({"hosts": listed}))
    else:
        for report in touched:
            echo_lines(
                render_host(
                    report,
                    home=app.user_home,
                    unchanged="not installed",
                    is_dry_run=dry_run,
                )
            )
        if touched:
            echo_lines(["", render_kept(setup.home, app.user_home)])
        else:
            click.echo("Backstory is not installed in any agent program.")
        if not (names or in_project):
            echo_lines(render_projects(setup.list_projects(), app.user_home))
    _exit_with(reports)


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def doctor(app: App, as_json: bool) -> None:
    """Check what is installed where, and whether it works.

    Runs a hook and the MCP server as an agent program would, and tries the embedder.
    Exit code 3 means that something is wrong; each finding comes with its fix.
    """
    setup = _set_up(app, in_project=False, is_dry_run=True)
    found = list(
        examine(
            setup.target,
            setup.home,
            lambda: app.memory,
            user_home=app.user_home,
            folder=app.machine.folder,
        )
    )
    found += examine_models(
        app.settings.text("embedder.name"),
        lambda: try_embedder(app.settings, app.machine),
        lambda: check_llm(app.settings, app.machine),
    )
    if as_json:
        click.echo(to_json({"findings": [to_builtins(each) for each in found]}))
    else:
        echo_lines(render_findings(found))
    if any(each.mark is Mark.PROBLEM for each in found):
        raise SystemExit(SKIPPED_SOME)


# -- the parts ---


def _set_up(app: App, *, in_project: bool, is_dry_run: bool) -> Setup:
    home = find_home(app.machine, app.home)
    return Setup.of(app.machine, home, in_project=in_project, is_dry_run=is_dry_run)


def _choose(
    setup: Setup, names: Sequence[str], *, all_found: bool, is_asking: bool
) -> list[HostRow]:
    """The programs that were named, or those that are here; none if declined."""
    if names and all_found:
        raise click.UsageError("Name agent programs or use --all, not both.")
    if names:
        return list(dict.fromkeys(get_host_row(name) for name in names))
    found = setup.list_here()
    if not found:
        raise ConfigError(
            "no agent program that Backstory knows is on this machine",
            hint=f"name one to install for it anyway: {', '.join(_NAMES)}",
        )
    if all_found or setup.installation.is_dry_run:
        return found
    listed = ", ".join(row.title for row in found)
    words = " ".join(row.name for row in found)
    if not is_asking:
        raise click.UsageError(
            f"On this machine: {listed}. Name those that you want "
            f"(backstory install {words}), or use --all."
        )
    click.echo(f"On this machine: {listed}.", err=True)
    if not click.confirm("Connect them to Backstory?", default=True, err=True):
        click.echo(
            "Nothing was changed. To connect only some of them, name those: "
            f"backstory install {words}",
            err=True,
        )
        return []
    return found


def _is_on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _exit_with(reports: Sequence[HostReport]) -> None:
    failed = [report.error for report in reports if report.error is not None]
    if failed:
        only = len(reports) == 1
        raise SystemExit(failed[0].exit_code if only else SKIPPED_SOME)


# -- the language model ---


def _choose_model(
    app: App, name: str | None, daily_tokens: int | None, *, is_asking: bool
) -> None:
    """Set which language model writes daily logs; ask unless that was decided."""
    if name is not None:
        change_setting(app.machine, "llm.name", name)
    elif is_asking and _is_undecided(app):
        name, daily_tokens = _ask_for_model(app, daily_tokens)
        change_setting(app.machine, "llm.name", name)
    if daily_tokens is not None:
        change_setting(app.machine, "llm.daily_tokens", str(daily_tokens))


def _is_undecided(app: App) -> bool:
    chosen = load_settings(app.machine, app.flags)
    return any(
        each.setting.name == "llm.name" and each.origin == "default" for each in chosen
    )


def _ask_for_model(app: App, daily_tokens: int | None) -> tuple[str, int | None]:
    click.echo(
        "\nA language model can write a daily log of your sessions, which is searched "
        "like\neverything else. It reads what you and the agents said; without one, "
        "nothing\nleaves this machine, and everything else works.",
        err=True,
    )
    (setting,) = [row for row in SETTINGS if row.name == "llm.name"]
    choices = ["none", *(each for each in setting.choices if each != "none")]
    name: str = click.prompt(
        "Which one may do that?",
        type=click.Choice(choices),
        default="none",
        err=True,
    )
    if name == "none" or daily_tokens is not None:
        return name, daily_tokens
    (budget,) = [row for row in SETTINGS if row.name == "llm.daily_tokens"]
    assert isinstance(budget.default, int)
    limit: int = click.prompt(
        "How many tokens a day may it use?",
        type=Number(0),
        default=budget.default,
        err=True,
    )
    return name, limit


# -- what was done ---


def _print_installed(
    app: App, setup: Setup, reports: Sequence[HostReport], is_dry_run: bool
) -> None:
    for report in reports:
        lines = render_host(
            report,
            home=app.user_home,
            unchanged="already installed",
            is_dry_run=is_dry_run,
        )
        echo_lines(lines)
    connected = [report.row for report in reports if report.error is None]
    if is_dry_run:
        click.echo("\nThis was a dry run: nothing was changed.")
    if is_dry_run or not connected:
        return
    click.echo()
    started = time.monotonic()
    with progress.bars() as bars:
        read = app.memory.index(
            on_progress=bars.reading(),
            on_taken=bars.counting("messages made findable"),
        )
    took_s = time.monotonic() - started
    index = app.memory.status().index
    echo_lines(render_report(read, home=app.user_home, took_s=took_s, index=index))
    left = _list_left_to_do(app, setup, connected)
    echo_lines(render_next(left, suggest_first(app.memory, connected)))


def _list_left_to_do(app: App, setup: Setup, connected: Sequence[HostRow]) -> list[str]:
    """What the user has to do, so that programs start us and logs are written."""
    left = list(setup.iter_left_to_do(connected))
    try:
        check_llm(app.settings, app.machine)
    except BackstoryError as exc:
        left.append(f"No daily logs can be written yet: {exc}; {exc.hint}.")
    return left


def _print_installed_json(
    app: App, setup: Setup, reports: Sequence[HostReport], is_dry_run: bool
) -> None:
    connected = [report.row for report in reports if report.error is None]
    made: dict[str, object] = {
        "hosts": [host_object(each, is_dry_run=is_dry_run) for each in reports]
    }
    if connected and not is_dry_run:
        made["read"] = report_object(app.memory.index())
        made["approve"] = _list_left_to_do(app, setup, connected)
        made["try"] = suggest_first(app.memory, connected)
    click.echo(to_json(made))
