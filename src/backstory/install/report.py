"""What an installation did and what the doctor found, for people and as JSON."""

import difflib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from backstory.errors import BackstoryError
from backstory.install.apply import Change, CommandRun, FileChange
from backstory.install.doctor import Finding
from backstory.install.hosts.base import HostRow
from backstory.memory import Memory
from backstory.render.format import render_path
from backstory.text.escape import neutralize
from backstory.values.history import Session
from backstory.values.structs import FrozenStruct

_MAX_TITLE_CHARS = 60
_MIN_TITLE_WORDS = 2
# Sessions among which one with a telling title is looked for.
_RECENT_SESSIONS = 50
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


def render_kept(home: Path, user_home: Path) -> str:
    """What stays when we are taken out of programs."""
    shown = neutralize(render_path(str(home), user_home))
    return f"Your history and notes are still in {shown}."


def render_projects(folders: Sequence[Path], user_home: Path) -> Iterator[str]:
    """Where Backstory is still installed after it was removed everywhere else."""
    if folders:
        yield "Some folders still have it; run 'backstory uninstall --project' in each:"
    for folder in folders:
        yield neutralize(f"  {render_path(str(folder), user_home)}")


def render_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """What the doctor found, each with its fix below it."""
    width = max(len(each.about) for each in findings)
    for each in findings:
        yield neutralize(f"{each.mark:7}  {each.about:{width}}  {each.text}")
        if each.fix:
            yield neutralize(f"{'':7}  {'':{width}}  fix: {each.fix}")


# -- what to do next ---


def render_next(left: Iterable[str], first: Iterable[str]) -> Iterator[str]:
    """What is left to do after an installation, and what to try first."""
    to_do = [f"  {line}" for line in left]
    if to_do:
        yield from ("", "Still to do:", *to_do)
    yield from ("", "Try it:", *(f"  {line}" for line in first))


def suggest_first(memory: Memory, rows: Sequence[HostRow]) -> list[str]:
    """What to do first, with a question about the user's own history."""
    recent = memory.sessions(limit=_RECENT_SESSIONS)
    titles = (_to_topic(session) for session in recent)
    topic = next((title for title in titles if title), None)
    if topic is None:
        return ["have a conversation with an agent, then ask another one about it"]
    return [
        f'ask {rows[0].title}: What do you remember about "{topic}"?',
        f"or search yourself: backstory search '{topic.replace(chr(39), '')}'",
    ]


def _to_topic(session: Session) -> str:
    """What a session was about; empty if its title is a whole prompt, or one word."""
    title = neutralize(session.title)
    is_short = len(title) <= _MAX_TITLE_CHARS and "\n" not in title
    is_telling = is_short and len(title.split()) >= _MIN_TITLE_WORDS
    return title.replace('"', "") if is_telling and not session.parent_id else ""


# -- as JSON ---


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
