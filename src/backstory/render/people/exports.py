"""What was exported and imported, for people."""

from collections.abc import Iterator
from pathlib import Path

from backstory.render.format import render_count, render_path, render_size
from backstory.render.layout import to_cell
from backstory.render.people.reports import render_problems
from backstory.values.exports import ExportReport, ImportReport

# Of more files than this, only the first are listed.
_MAX_LISTED = 5


def render_export(report: ExportReport, *, home: Path) -> Iterator[str]:
    """What an export has, and what was done to it."""
    place = to_cell(render_path(str(report.path), home))
    what = []
    if report.sessions:
        messages = render_count(report.messages, "message")
        what.append(f"{messages} of {render_count(report.sessions, 'session')}")
    if report.has_memory:
        what.append("MEMORY.md")
    if report.daily_logs:
        what.append(render_count(report.daily_logs, "daily log"))
    size = render_size(report.size_bytes)
    if report.path.suffix.lower() == ".zip":
        size += " unpacked"
    yield f"Exported {_join(what)} to {place} ({size})."
    if report.unchanged or report.deleted:
        done = [f"{report.written:,} written", f"{report.unchanged:,} unchanged"]
        if report.deleted:
            done.append(f"{report.deleted:,} deleted")
        yield f"Files: {', '.join(done)}."
    if report.kept_sessions:
        others = render_count(report.kept_sessions, "session")
        yield f"{others} of earlier exports stayed there; --delete removes them."
    if report.is_masked:
        yield "Secrets that were recognized are masked; read it before you share it."
    else:
        yield "Secrets in it are not masked; to share it, export with --mask-secrets."
    yield from render_problems(report.problems, home=home)


def render_import(report: ImportReport, *, home: Path) -> Iterator[str]:
    """What was imported, or would be."""
    new = []
    if report.new_messages:
        messages = render_count(report.new_messages, "message")
        what = f"{messages} of {render_count(report.changed_sessions, 'session')}"
        if report.new_sessions != report.changed_sessions:
            what += f" ({report.new_sessions:,} new)"
        new.append(what)
    if report.memory_blocks:
        new.append(f"{_entries(report.memory_blocks)} for MEMORY.md")
    if report.log_blocks:
        blocks = _entries(report.log_blocks)
        new.append(f"{blocks} for {render_count(report.logs, 'daily log')}")
    verb = "Would import" if report.is_dry_run else "Imported"
    if new:
        yield f"{verb} {_join(new)}."
    else:
        yield "There is nothing new in it; nothing was changed."
    if report.known_messages:
        known = render_count(report.known_messages, "message")
        yield f"{known} {_were(report.known_messages)} here already."
    if report.forgotten_messages:
        forgotten = render_count(report.forgotten_messages, "message")
        were = _were(report.forgotten_messages)
        yield (
            f"{forgotten} {were} forgotten here and left out; "
            "'backstory forget --list' shows what can be undone."
        )
    if report.excluded_sessions:
        excluded = render_count(report.excluded_sessions, "session")
        yield f"{excluded} left out: the settings exclude the program or folder."
    if report.extra:
        yield f"Not part of the export, and not read: {_list(report.extra)}."
    if report.damaged:
        yield f"Left out, as they are not as they were exported: {_damaged(report)}."
    yield from render_problems(report.problems, home=home)


def _join(parts: list[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _damaged(report: ImportReport) -> str:
    return _list(tuple(f"{each.path} ({each.reason})" for each in report.damaged))


def _list(names: tuple[str, ...]) -> str:
    listed = ", ".join(map(to_cell, names[:_MAX_LISTED]))
    more = len(names) - _MAX_LISTED
    return f"{listed} and {more:,} more" if more > 0 else listed
