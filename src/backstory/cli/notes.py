"""memory, logs: show and change the notes."""

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path

import click

from backstory.address import read_database
from backstory.cli.app import (
    SKIPPED_SOME,
    App,
    Group,
    commands,
    echo_lines,
    terminal_width,
)
from backstory.cli.parameters import DAY, FIRST_DAY, PATH, FactCommand
from backstory.errors import (
    BackstoryError,
    NoModel,
    NotesConflict,
    SourceUnreadable,
    UnknownName,
)
from backstory.notes.archive import merge_archive, read_archive, write_archive
from backstory.notes.facts import DEFAULT_TOPIC, TITLE, find_duplicate
from backstory.notes.notebook import Notebook
from backstory.overview import check_complete
from backstory.render.format import render_count
from backstory.render.objects import (
    listed_log_object,
    log_object,
    memory_object,
    summary_object,
    to_json,
)
from backstory.render.people.notes import (
    render_log,
    render_log_report,
    render_logs,
    render_memory,
    render_merged,
    render_summary,
)
from backstory.system.machine import find_home
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.reports import ListedLog

_EDITORS = ("sensible-editor", "nano", "vim", "vi", "notepad")
_MAX_SHOWN_CHARS = 500


def _open_notebook(app: App) -> Notebook:
    """Only the notes if they are files: whatever is wrong with the history then."""
    if read_database(app.settings, app.machine) is None:
        home = find_home(app.machine, app.home)
        check_complete(home)
        return Notebook(home)
    return app.memory.notebook


# -- memory ---------------------------------------------------------------------------


@commands.group(cls=Group, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def memory(ctx: click.Context, as_json: bool) -> None:
    """Summarize the notes, or show and change MEMORY.md."""
    if ctx.invoked_subcommand is not None:
        return
    app: App = ctx.obj
    notebook = _open_notebook(app)
    found = notebook.summary()
    if as_json:
        click.echo(to_json(summary_object(found, notebook.folder)))
        return
    lines = render_summary(found, notebook.folder, home=app.user_home)
    echo_lines(lines)


@memory.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def show(app: App, as_json: bool) -> None:
    """Show MEMORY.md, the long-term memory."""
    notebook = _open_notebook(app)
    text = notebook.read_memory()
    if as_json:
        shown = memory_object(text, notebook.memory_path, notebook.read_origins())
        click.echo(to_json(shown))
    elif text.strip():
        width = terminal_width()
        echo_lines(render_memory(text, notebook.read_origins(), width=width))
    else:
        click.echo("MEMORY.md is empty; 'backstory memory add' adds a fact.")


@memory.command(cls=FactCommand)
@click.argument("fact", nargs=-1, required=True)
@click.option(
    "--topic",
    default=DEFAULT_TOPIC,
    show_default=True,
    help="The heading to put it under; added if missing.",
)
@click.pass_obj
def add(app: App, fact: tuple[str, ...], topic: str) -> None:
    """Add a fact to MEMORY.md, unless it is there already."""
    notebook = _open_notebook(app)
    said = " ".join(fact)
    saved = notebook.add_fact(said, topic, mask=False)
    if saved is None:
        known = find_duplicate(notebook.read_memory(), said) or said
        click.echo(f"MEMORY.md already says: {_shown(known)}")
    else:
        click.echo(f"Saved: {_shown(saved)}")


@memory.command(cls=FactCommand)
@click.argument("fact", nargs=-1, required=True)
@click.pass_obj
def forget(app: App, fact: tuple[str, ...]) -> None:
    """Remove a fact from MEMORY.md.

    FACT may be any words that occur in that fact only.
    """
    notebook = _open_notebook(app)
    found = notebook.find_fact(" ".join(fact))
    click.echo(f"Forgotten: {_shown(notebook.forget_fact(found.text))}")
    if found.copies:
        files = render_count(len(found.copies), "older or edited version")
        click.echo(f"It is gone from {files} of MEMORY.md as well.")


@memory.command()
@click.pass_obj
def edit(app: App) -> None:
    """Open MEMORY.md in your editor: $VISUAL or $EDITOR.

    You edit a copy. It replaces MEMORY.md only if it has not changed in the meantime;
    otherwise your text is kept and its path is printed.
    """
    notebook = _open_notebook(app)
    before = notebook.read_memory()
    begun = before or f"# {TITLE}\n"
    command = _find_editor(app)
    copy = notebook.write_aside(begun, "MEMORY-edited.md")
    try:
        after = _run_editor(command, copy)
        if after != begun:
            notebook.replace_memory(after, before, keep_backup=True, by_person=True)
    except (BackstoryError, OSError, KeyboardInterrupt) as exc:
        _keep_if_changed(copy, begun, exc)
        raise
    copy.unlink()
    click.echo("Saved." if after != begun else "Nothing was changed.")


@memory.command()
@click.argument("file", type=PATH)
@click.pass_obj
def export(app: App, file: Path) -> None:
    """Write MEMORY.md and all daily logs into a new zip file."""
    count = write_archive(_open_notebook(app), file)
    click.echo(f"{render_count(count, 'file')} in {neutralize(str(file))}.")


@memory.command("import")
@click.argument("file", type=PATH)
@click.pass_obj
def import_archive(app: App, file: Path) -> None:
    """Add the notes from an exported zip file that are missing here.

    Existing notes are not changed or removed.
    """
    archive = read_archive(file)
    merged = merge_archive(_open_notebook(app), archive)
    echo_lines(render_merged(merged, archive))


def _find_editor(app: App) -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        chosen = app.machine.environ.get(variable, "").strip()
        if chosen:
            return shlex.split(chosen, posix=os.name != "nt")
    # Without a terminal, nobody could use an editor that we choose.
    for name in _EDITORS if sys.stdin.isatty() else ():
        if shutil.which(name):
            return [name]
    raise click.UsageError("No editor found. Set $EDITOR to the name of one.")


def _run_editor(command: list[str], copy: Path) -> str:
    """Run the editor; returns the edited text."""
    try:
        code = subprocess.run([*command, str(copy)], check=False).returncode
    except OSError as exc:
        raise UnknownName(
            f"the editor '{command[0]}' cannot be started ({exc.strerror})",
            hint="set $EDITOR to the name of an installed editor",
        ) from exc
    if code != 0:
        raise SourceUnreadable(f"the editor '{command[0]}' exited with code {code}")
    try:
        return copy.read_bytes().decode("utf-8")
    except UnicodeDecodeError as exc:
        raise SourceUnreadable(f"{copy}: byte {exc.start:,} is not UTF-8") from exc


def _keep_if_changed(copy: Path, begun: str, exc: BaseException) -> None:
    """Keep the person's text and say where it is; an unchanged copy is deleted."""
    with suppress(OSError):
        if copy.read_bytes() == begun.encode("utf-8"):
            copy.unlink()
            return
    if isinstance(exc, NotesConflict):
        exc.hint = f"your text is in {copy}; compare the two, then edit again"
    elif isinstance(exc, BackstoryError):
        exc.hint = f"your text is in {copy}"
    else:
        click.echo(f"Your text is in {neutralize(str(copy))}", err=True)


def _shown(text: str) -> str:
    return one_line(neutralize(text), _MAX_SHOWN_CHARS)


# -- logs -----------------------------------------------------------------------------


@commands.command()
@click.argument("day", type=DAY, required=False, metavar="[DATE]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list, or one log.")
@click.option("--write", is_flag=True, help="Write the logs that are due now.")
@click.option(
    "--since",
    type=FIRST_DAY,
    metavar="DATE",
    help="With --write: every session active since this day.",
)
@click.pass_obj
def logs(
    app: App,
    day: date | None,
    as_json: bool,
    write: bool,
    since: date | None,
) -> None:
    """List the daily logs, newest last, or show the log of one day.

    DATE is one day: 2026-02-01, yesterday, 'last Tuesday', '3 days ago'.
    """
    if since is not None and not write:
        raise click.UsageError("--since requires --write.")
    if write and day is not None:
        raise click.UsageError("--write takes no DATE; use --since DATE.")
    if write:
        _write_logs(app, since)
        return
    notebook = _open_notebook(app)
    if day is not None:
        _show_log(notebook, day, as_json)
        return
    listed = [notebook.describe_log(each) for each in notebook.list_logs()]
    if as_json:
        objects = [listed_log_object(log) for log in listed]
        click.echo(to_json(objects))
    elif listed:
        echo_lines(render_logs(listed, width=terminal_width()))
    else:
        click.echo("There are no daily logs yet.")
        if app.settings.text("llm.name") == "none":
            click.echo(
                f"  hint: a language model writes them; {NoModel.hint}", err=True
            )
    if any(log.problem for log in listed):
        raise SystemExit(SKIPPED_SOME)


def _write_logs(app: App, since: date | None) -> None:
    def say(title: str, left: int) -> None:
        click.echo(f"  {left} to go: {_shown(title)}", err=True)

    report = app.memory.write_logs(since=since, on_session=say)
    echo_lines(render_log_report(report))
    if report.problems:
        raise SystemExit(SKIPPED_SOME)


def _show_log(notebook: Notebook, day: date, as_json: bool) -> None:
    text = notebook.read_log(day)
    if text is None:
        raise UnknownName(
            f"there is no daily log for {day.isoformat()}",
            hint="run 'backstory logs' to see which days have one",
        )
    if as_json:
        shown = ListedLog(day, notebook.log_path(day), text)
        click.echo(to_json(log_object(shown)))
    else:
        echo_lines(render_log(text, width=terminal_width()))
