"""What an installation did, for people and as JSON."""

import difflib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from backstory.errors import BackstoryError
from backstory.install.apply import Change, CommandRun, FileChange
from backstory.install.hosts.base import HostRow
from backstory.render.format import render_path
from backstory.text.escape import neutralize
from backstory.values.structs import FrozenStruct

_DONE = {"create": "created", "change": "changed", "delete": "deleted"}


class HostReport(FrozenStruct):
    """What was done for one agent program, or the error that prevented it."""

    row: HostRow
    changes: Sequence[Change] = ()
    error: BackstoryError | None = None


def render_host(
    report: HostReport, *, home: Path, unchanged: str, is_dry_run: bool
) -> Iterator[str]:
    """The title of a program, and a line for each change."""
    yield report.row.title
    if report.error is not None:
        yield f"  error: {neutralize(str(report.error))}"
        if report.error.hint:
            yield f"    hint: {neutralize(report.error.hint)}"
        return
    if not report.changes:
        yield f"  {unchanged}"
    for change in report.changes:
        yield from _render_change(change, home, is_dry_run)


def _render_change(change: Change, home: Path, is_dry_run: bool) -> Iterator[str]:
    if isinstance(change, CommandRun):
        name = Path(change.words[0]).name
        line = shlex.join([name, *change.words[1:]])
        yield f"  {'would run' if is_dry_run else 'ran'}: {neutralize(line)}"
        return
    path = neutralize(render_path(str(change.path), home))
    verb = f"would {change.verb}" if is_dry_run else _DONE[change.verb]
    backup = ""
    if change.backup is not None and not is_dry_run:
        shown = neutralize(render_path(str(change.backup), home))
        backup = f" (backup: {shown})"
    yield f"  {verb}: {path}{backup}"
    if is_dry_run:
        yield from (f"    {neutralize(line)}" for line in _diff(change))


def _diff(change: FileChange) -> Iterator[str]:
    before = (change.before or "").splitlines()
    after = (change.after or "").splitlines()
    lines = difflib.unified_diff(before, after, lineterm="", n=1)
    # Without the two lines that name the files.
    yield from list(lines)[2:]


def host_object(report: HostReport, *, is_dry_run: bool) -> dict[str, object]:
    """The same as JSON."""
    error = None
    if report.error is not None:
        error = {"message": str(report.error), "hint": report.error.hint}
    return {
        "host": report.row.name,
        "title": report.row.title,
        "changes": [_change_object(change) for change in report.changes],
        "dry_run": is_dry_run,
        "error": error,
    }


def _change_object(change: Change) -> dict[str, object]:
    if isinstance(change, CommandRun):
        return {"kind": "command", "command": list(change.words)}
    return {
        "kind": "file",
        "action": change.verb,
        "path": str(change.path),
        "backup": None if change.backup is None else str(change.backup),
    }
