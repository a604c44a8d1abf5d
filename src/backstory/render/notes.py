"""MEMORY.md and the daily logs as text for people and JSON for programs.

Notes are made safe to print; JSON carries them verbatim.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from backstory.notes.archive import Archive, Merged
from backstory.notes.daily_logs import first_heading, without_markers
from backstory.notes.facts import MAX_GIVEN_LINES, list_facts
from backstory.notes.notebook import NotesSummary
from backstory.render.hits import hit_object
from backstory.render.reports import (
    render_columns,
    render_count,
    render_path,
    render_size,
)
from backstory.search.prompt_context import Context
from backstory.text.cut import one_line
from backstory.text.escape import neutralise
from backstory.text.markdown.lines import split_bom
from backstory.values.reports import Curation, LogReport

_NO_TOPIC = "(no topic)"


@dataclass(frozen=True, slots=True)
class ListedLog:
    """A daily log in a list; ``problem`` is why it could not be read."""

    day: date
    path: Path
    text: str = ""
    problem: str = ""

    @property
    def size_bytes(self) -> int:
        return len(self.text.encode("utf-8"))


# -- for programs ---------------------------------------------------------------------


def summary_object(summary: NotesSummary, folder: Path) -> dict[str, object]:
    return {
        "folder": str(folder),
        "files": summary.files,
        "size_bytes": summary.size_bytes,
        "logs": summary.logs,
        "first_day": summary.first_day.isoformat() if summary.first_day else None,
        "last_day": summary.last_day.isoformat() if summary.last_day else None,
        "memory_lines": summary.memory_lines,
        "max_given_lines": MAX_GIVEN_LINES,
        "facts": dict(summary.facts),
    }


def memory_object(text: str, path: Path) -> dict[str, object]:
    facts = [
        {"topic": fact.topic, "text": fact.text, "line": fact.line}
        for fact in list_facts(text)
    ]
    return {"path": str(path), "text": text, "facts": facts}


def listed_log_object(log: ListedLog) -> dict[str, object]:
    return {
        "day": log.day.isoformat(),
        "path": str(log.path),
        "size_bytes": log.size_bytes,
        "about": first_heading(log.text),
        "problem": log.problem or None,
    }


def log_object(log: ListedLog) -> dict[str, object]:
    return {"day": log.day.isoformat(), "path": str(log.path), "text": log.text}


# -- for people -----------------------------------------------------------------------


def render_summary(summary: NotesSummary, folder: Path, *, home: Path) -> Iterator[str]:
    yield f"Folder      {render_path(str(folder), home)}"
    files = render_count(summary.files, "file")
    yield f"Notes       {files}, {render_size(summary.size_bytes)}"
    yield f"Daily logs  {_render_days(summary)}"
    total = render_count(sum(summary.facts.values()), "fact")
    lines = render_count(summary.memory_lines, "line")
    yield f"MEMORY.md   {total} in {lines}"
    for topic, count in summary.facts.items():
        yield f"            {count:,}  {_one_line(topic or _NO_TOPIC)}"
    if summary.memory_lines > MAX_GIVEN_LINES:
        yield (
            f"Only the first {MAX_GIVEN_LINES} lines are given to agents; shorten it "
            "with 'backstory memory edit'."
        )


def _render_days(summary: NotesSummary) -> str:
    if not summary.logs:
        return "none"
    first, last = summary.first_day, summary.last_day
    days = f"{first}" if first == last else f"{first} to {last}"
    return f"{summary.logs:,}, {days}"


def render_memory(text: str) -> Iterator[str]:
    """The long-term memory as it stands, safe to print."""
    yield from neutralise(split_bom(text)[1]).removesuffix("\n").split("\n")


def render_log(text: str) -> Iterator[str]:
    """A daily log as people see it: without the comments that are ours."""
    yield from neutralise(without_markers(text)).removesuffix("\n").split("\n")


def render_logs(logs: Sequence[ListedLog], *, width: int | None) -> Iterator[str]:
    rows = [
        (
            log.day.isoformat(),
            "" if log.problem else render_size(log.size_bytes),
            log.problem or first_heading(log.text),
        )
        for log in logs
    ]
    yield from render_columns(("DAY", "SIZE", "ABOUT"), rows, right={1}, width=width)


def render_merged(merged: Merged, archive: Archive) -> Iterator[str]:
    yield f"Added to MEMORY.md: {render_count(merged.memory_blocks, 'block')}."
    blocks = render_count(merged.log_blocks, "block")
    logs = render_count(merged.logs, "day")
    yield f"Added to daily logs: {blocks}, on {logs}."
    if archive.skipped:
        other = render_count(len(archive.skipped), "other file")
        yield f"Passed over: {other}, such as '{_one_line(archive.skipped[0])}'."


def _one_line(text: str) -> str:
    return " ".join(neutralise(text).split())


# -- what a model did -----------------------------------------------------------------


def render_curation(curation: Curation) -> Iterator[str]:
    if curation.refused:
        yield f"MEMORY.md stays as it is: {one_line(neutralise(curation.refused), 200)}"
    elif not curation.is_change:
        yield "MEMORY.md is fine as it is."
    for fact in curation.removed:
        yield f"Removed: {_shown(fact)}"
    for old, new in curation.replaced:
        yield f"Changed: {_shown(old)}"
        yield f"     to: {_shown(new)}"
    for fact in curation.added:
        yield f"Added:   {_shown(fact)}"


def render_log_report(report: LogReport) -> Iterator[str]:
    """What a run of the summarizer did, and why something still waits."""
    done = render_count(report.sessions, "session")
    yield (
        f"Summed up {done} with {render_count(report.messages, 'message')}: "
        f"{render_count(report.blocks, 'block')} in the daily logs, "
        f"{render_count(report.facts, 'fact')} in MEMORY.md."
    )
    for problem in dict.fromkeys(report.problems):
        yield f"  {one_line(neutralise(problem), 300)}"


def context_object(context: Context) -> dict[str, object]:
    query = context.parsed
    return {
        "text": context.text,
        "tokens": context.tokens,
        "memories": [
            hit_object(hit, query) for hit in context.memories if query is not None
        ],
    }


def _shown(fact: str) -> str:
    return one_line(neutralise(fact), 300)
