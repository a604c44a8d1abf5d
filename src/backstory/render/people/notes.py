"""MEMORY.md and the daily logs, for people, and what a model changed in them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from backstory.notes.archive import Archive, Merged
from backstory.notes.daily_logs import first_heading, without_markers
from backstory.notes.facts import list_facts
from backstory.notes.notebook import NotesSummary
from backstory.render.format import render_count, render_path, render_size
from backstory.render.layout import quote_lines, render_columns
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.markdown.lines import split_bom
from backstory.text.memories_frame import MAX_GIVEN_LINES
from backstory.values.notes import FactOrigin, Teller
from backstory.values.reports import Curation, ListedLog, LogReport

_NO_TOPIC = "(no topic)"


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


def render_memory(
    text: str, origins: Mapping[str, Sequence[FactOrigin]], *, width: int | None
) -> Iterator[str]:
    """The long-term memory, and where its facts come from."""
    yield from quote_lines(split_bom(text)[1].removesuffix("\n"), width)
    told = [
        (f"line {fact.line}", _render_origin(each))
        for fact in list_facts(text)
        for each in origins.get(fact.text, ())
    ]
    if told:
        yield ""
        yield "Taken from conversations, or saved by agents:"
        yield from (f"  {where}: {who}" for where, who in told)


def _render_origin(origin: FactOrigin) -> str:
    said = {
        Teller.USER: "the user said so",
        Teller.AGENT: "an agent saved it",
    }[origin.by]
    place = f"{origin.host or ''} {origin.session or ''}".strip()
    day = "" if origin.day is None else origin.day.isoformat()
    return ", ".join(filter(None, (said, day, _one_line(place))))


def render_log(text: str, *, width: int | None) -> Iterator[str]:
    """A daily log for people, without our markers."""
    yield from quote_lines(without_markers(text).removesuffix("\n"), width)


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
        yield f"Skipped: {other}, such as '{_one_line(archive.skipped[0])}'."


def _one_line(text: str) -> str:
    return " ".join(neutralize(text).split())


def render_curation(curation: Curation) -> Iterator[str]:
    if curation.refused:
        what = "Some of MEMORY.md" if curation.is_change else "MEMORY.md"
        yield f"{what} is unchanged: {one_line(neutralize(curation.refused), 200)}"
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
    """What the summarizer did, and why some messages still wait."""
    done = render_count(report.sessions, "session")
    yield (
        f"Summarized {done} with {render_count(report.messages, 'message')}: "
        f"{render_count(report.blocks, 'block')} in the daily logs, "
        f"{render_count(report.facts, 'fact')} in MEMORY.md."
    )
    if report.refused:
        lines = render_count(report.refused, "line")
        yield f"Left out: {lines} of the model's that the user did not say."
    for problem in dict.fromkeys(report.problems):
        yield f"  {one_line(neutralize(problem), 300)}"


def _shown(fact: str) -> str:
    return one_line(neutralize(fact), 300)
