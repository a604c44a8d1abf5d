"""Sessions, messages and reports as text for people and JSON for programs.

Text from history is made safe to print; JSON carries it verbatim.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import orjson
from rich.cells import cell_len, chop_cells, set_cell_size

from backstory.settings import Chosen
from backstory.text.cut import one_line
from backstory.text.escape import UNSAFE, neutralise
from backstory.values.history import Message, Problem, Role, Session
from backstory.values.moments import Moment
from backstory.values.reports import (
    IndexReport,
    IndexStatus,
    LogStatus,
    SourceSummary,
    Status,
)

MAX_PROBLEMS_SHOWN = 20
_MIN_ID_CHARS = 8
# An id that is hardly longer than that is shown whole.
_MAX_WHOLE_ID_CHARS = 12
_MIN_FOLDER_CHARS = 12
_MIN_TEXT_WIDTH = 10
_ROLE_NAMES = {
    Role.USER: "USER",
    Role.ASSISTANT: "ASSISTANT",
    Role.TOOL_CALL: "TOOL CALL",
    Role.TOOL_RESULT: "TOOL RESULT",
    Role.SYSTEM: "SYSTEM",
    Role.SUMMARY: "SUMMARY",
    Role.ERROR: "ERROR",
}


# -- for programs ---------------------------------------------------------------------


def to_json(value: object) -> str:
    """A value as readable JSON, with what a terminal would obey written as escapes."""
    written = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def session_object(session: Session) -> dict[str, object]:
    return {
        "host": session.host,
        "id": session.native_id,
        "title": session.title,
        "project": session.project,
        "git_branch": session.git_branch,
        "parent": session.parent_id,
        "started_at": _iso(session.started),
        "last_active_at": _iso(session.last_active),
        "messages": session.message_count,
        "preview": session.preview,
        "read_from": session.read_from,
        "last_logged_message_id": session.last_logged_message_id,
    }


def message_object(message: Message) -> dict[str, object]:
    return {
        "number": message.message_id,
        "id": message.native_id,
        "position": message.position,
        "role": message.role.value,
        "text": message.text,
        "tool_name": message.tool_name,
        "call_id": message.call_id,
        "sent_at": _iso(message.sent),
        "full_bytes": message.full_bytes,
    }


def report_object(report: IndexReport) -> dict[str, object]:
    return {
        "read": report.read,
        "unchanged": report.unchanged,
        "excluded": report.excluded,
        "of_unknown_format": report.unknown,
        "skipped": report.skipped,
        "new_sessions": report.new_sessions,
        "new_messages": report.new_messages,
        "changed_messages": report.changed_messages,
        "read_bytes": report.read_bytes,
        "problems": [problem_object(problem) for problem in report.problems],
    }


def problem_object(problem: Problem) -> dict[str, object]:
    return {"path": problem.path, "line": problem.line, "reason": problem.reason}


def source_object(source: SourceSummary) -> dict[str, object]:
    return {
        "host": source.host,
        "name": source.title,
        "places": list(source.places),
        "found": source.found,
        "found_bytes": source.found_bytes,
        "indexed": source.indexed,
        "sessions": source.sessions,
        "messages": source.messages,
        "excluded": source.excluded,
    }


def status_object(status: Status) -> dict[str, object]:
    last_read_at = status.last_read_at
    return {
        "home": status.home,
        "sessions": status.sessions,
        "messages": status.messages,
        "size_bytes": status.size_bytes,
        "sessions_by_host": dict(status.sessions_by_host),
        "last_read_at": last_read_at.isoformat() if last_read_at else None,
        "problems": [problem_object(problem) for problem in status.problems],
        "index": {
            "findable": status.index.units,
            "to_embed": status.index.with_meaning,
            "embedded": status.index.embedded,
            "embedder": status.index.embedder,
            "size_bytes": status.index.size_bytes,
            "is_behind": status.index.is_behind,
            "problem": status.index.problem or None,
        },
        "logs": {
            "is_enabled": status.logs.is_enabled,
            "model": status.logs.model or None,
            "due": status.logs.due,
            "calls_today": status.logs.calls_today,
            "tokens_today": status.logs.tokens_today,
            "daily_tokens": status.logs.daily_tokens,
            "problem": status.logs.problem or None,
        },
    }


def setting_object(chosen: Chosen) -> dict[str, object]:
    value = chosen.value
    return {
        "name": chosen.setting.name,
        "value": list(value) if isinstance(value, tuple) else value,
        "from": chosen.origin,
        "summary": chosen.setting.summary,
    }


def _iso(moment: Moment | None) -> str | None:
    return None if moment is None else moment.in_own_zone().isoformat()


# -- for people -----------------------------------------------------------------------


def render_sessions(
    sessions: Sequence[Session],
    *,
    names: Mapping[int, str],
    home: Path,
    width: int | None,
) -> Iterator[str]:
    """One line a session; ``names`` are short ids of theirs."""
    # On a terminal the title must have room: of a folder, its end tells most.
    folder_width = None if width is None else max(_MIN_FOLDER_CHARS, width // 6)
    rows = [
        (
            render_time(session.last_active),
            session.host,
            names.get(session.session_id, session.native_id),
            str(session.message_count),
            _ending(_cell(render_path(session.project or "", home)), folder_width),
            one_line(session.title, 200),
        )
        for session in sessions
    ]
    heads = ("LAST ACTIVE", "HOST", "ID", "MESSAGES", "PROJECT", "TITLE")
    yield from render_columns(heads, rows, right={3}, width=width)


def _ending(text: str, width: int | None) -> str:
    """The end of a text that is too long, behind an ellipsis."""
    if width is None or cell_len(text) <= width:
        return text
    kept = text
    while cell_len(kept) > width - 1:
        kept = kept[1:]
    return f"…{kept}"


def render_transcript(
    session: Session, messages: Iterable[Message], *, home: Path
) -> Iterator[str]:
    """A conversation to read from top to bottom."""
    yield _cell(session.title) or "(no title)"
    place = render_path(session.project or "", home)
    if place and session.git_branch:
        place += f" ({session.git_branch})"
    facts = (
        session.host,
        session.native_id,
        place,
        render_count(session.message_count, "message"),
        render_span(session.started, session.last_active),
    )
    yield " · ".join(_cell(fact) for fact in facts if fact)
    if session.parent_id:
        yield f"part of {_cell(session.parent_id)}"
    tools: dict[str, str] = {}
    day = ""
    for message in messages:
        if message.call_id and message.tool_name:
            tools[message.call_id] = message.tool_name
        tool = message.tool_name or tools.get(message.call_id or "", "")
        time = render_time(message.sent)
        yield ""
        if time[:10] != day and time:
            day = time[:10]
            yield f"— {day} —"
            yield ""
        head = (_ROLE_NAMES[message.role], _cell(tool), time[11:])
        yield f"[{message.message_id}] " + "  ".join(part for part in head if part)
        # Set in, so that no text can pass for the head of another message.
        yield from (f"  {line}" for line in neutralise(message.text).split("\n"))


def render_report(report: IndexReport, *, home: Path, took_s: float) -> Iterator[str]:
    if report == IndexReport():
        yield "Nothing was found to read; 'backstory index --path' takes any place."
        return
    yield (
        f"Read {render_count(report.read, 'source')}: "
        f"{render_count(report.new_sessions, 'new session')}, "
        f"{render_count(report.new_messages, 'new message')}"
        + (f", {report.changed_messages:,} changed" if report.changed_messages else "")
        + f" ({render_size(report.read_bytes)} in {took_s:.1f} s)."
    )
    others = [
        (report.unchanged, "unchanged"),
        (report.excluded, "excluded by your settings"),
        (report.unknown, "of no known format"),
    ]
    said = ", ".join(f"{number:,} {words}" for number, words in others if number)
    if said:
        yield f"Not read: {said}."
    yield from render_problems(report.problems, home=home)


def render_problems(problems: Sequence[Problem], *, home: Path) -> Iterator[str]:
    """What could not be read as it stands, at most a screenful of it."""
    if problems:
        yield f"{render_count(len(problems), 'problem')}:"
        yield from _list_problems(problems, home)


def _list_problems(problems: Sequence[Problem], home: Path) -> Iterator[str]:
    for problem in problems[:MAX_PROBLEMS_SHOWN]:
        yield "  " + _cell(render_path(str(problem), home))
    more = len(problems) - MAX_PROBLEMS_SHOWN
    if more > 0:
        yield f"  … and {more:,} more (--json has them all)"


def render_sources(
    sources: Sequence[SourceSummary], *, home: Path, width: int | None
) -> Iterator[str]:
    rows = [
        (
            source.host,
            f"{source.found:,}",
            render_size(source.found_bytes),
            "excluded"
            if source.excluded
            else f"{source.indexed:,} of {source.found:,}",
            f"{source.sessions:,}",
            f"{source.messages:,}",
            ", ".join(render_path(place, home) for place in source.places),
        )
        for source in sources
    ]
    heads = ("HOST", "FOUND", "SIZE", "INDEXED", "SESSIONS", "MESSAGES", "WHERE")
    yield from render_columns(heads, rows, right={1, 2, 3, 4, 5}, width=width)


def render_status(status: Status, *, home: Path) -> Iterator[str]:
    hosts = ", ".join(
        f"{host} {number:,}" for host, number in status.sessions_by_host.items()
    )
    last_read_at = status.last_read_at
    facts = (
        ("Home", render_path(status.home, home)),
        ("Sessions", f"{status.sessions:,}" + (f" ({hosts})" if hosts else "")),
        ("Messages", f"{status.messages:,}"),
        ("Size", render_size(status.size_bytes)),
        ("Index", _index_state(status.index)),
        ("Logs", _log_state(status.logs)),
        ("Last read", render_local(last_read_at) if last_read_at else "never"),
        ("Problems", f"{len(status.problems):,}" if status.problems else "none"),
    )
    for name, value in facts:
        yield f"{name + ':':<11}{_cell(value)}"
    yield from _list_problems(status.problems, home)


def _index_state(index: IndexStatus) -> str:
    if index.problem and not index.units:
        return f"{index.problem}; run 'backstory rebuild'"
    if index.embedder == "none":
        vectors = "no vectors"
    else:
        made = f"{index.embedded:,} of {index.with_meaning:,} vectors"
        vectors = f"{made} ({index.embedder})"
    parts = [f"{index.units:,} findable", vectors, render_size(index.size_bytes)]
    parts += ["behind the history"] * index.is_behind
    return ", ".join(parts) + (f" ({index.problem})" if index.problem else "")


def _log_state(logs: LogStatus) -> str:
    if not logs.is_enabled:
        return "switched off"
    parts = [logs.model or "no language model"]
    if logs.due:
        parts.append(f"{render_count(logs.due, 'session')} to be summed up")
    if logs.calls_today:
        tokens = f"{logs.tokens_today:,} of {logs.daily_tokens:,} tokens"
        parts.append(f"{render_count(logs.calls_today, 'call')} and {tokens} today")
    return ", ".join(parts) + (f" ({logs.problem})" if logs.problem else "")


def render_settings(
    settings: Iterable[Chosen], *, home: Path, width: int | None
) -> Iterator[str]:
    rows = [
        (
            chosen.setting.name,
            _value(chosen.value),
            render_path(chosen.origin, home),
            chosen.setting.summary,
        )
        for chosen in settings
    ]
    yield from render_columns(
        ("NAME", "VALUE", "FROM", "WHAT IT DOES"), rows, width=width
    )


def _value(value: object) -> str:
    match value:
        case tuple():
            return ", ".join(value) or "(none)"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


# -- pieces ---------------------------------------------------------------------------


def render_columns(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: set[int] | frozenset[int] = frozenset(),
    width: int | None,
) -> Iterator[str]:
    """Aligned columns; with a ``width``, the last column is cut to fit a terminal."""
    rows = [[_cell(cell) for cell in row] for row in rows]
    widths = [
        max(cell_len(row[index]) for row in (heads, *rows))
        for index in range(len(heads))
    ]
    for row in (heads, *rows):
        cells = [
            " " * (widths[index] - cell_len(cell)) + cell
            if index in right
            else cell + " " * (widths[index] - cell_len(cell))
            for index, cell in enumerate(row[:-1])
        ]
        line = "  ".join([*cells, row[-1]]).rstrip()
        yield line if width is None else cut_to_width(line, width)


def cut_to_width(line: str, width: int) -> str:
    """As much of a line as a terminal of that width can show, with an ellipsis."""
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, width - 1).rstrip() + "…"


def wrap_to_width(line: str, width: int) -> Iterator[str]:
    """A line as several that fit a terminal, broken between words if there are any."""
    width = max(width, _MIN_TEXT_WIDTH)
    while cell_len(line) > width:
        fits = chop_cells(line, width)[0]
        space = fits.rfind(" ", len(fits) // 2)
        at = len(fits) if space < 0 or line[len(fits)] == " " else space
        yield line[:at].rstrip()
        line = line[at:].lstrip(" ")
    yield line


def _cell(text: str) -> str:
    """Text from history that must stay on its line."""
    return neutralise(text).replace("\n", " ").replace("\t", " ")


def render_time(moment: Moment | None) -> str:
    """A time as the reader's clock showed it; empty when it is not known."""
    return "" if moment is None else render_local(moment.at)


def render_local(at: datetime) -> str:
    # The zero time of Go is the first moment there is: no clock west of UTC showed it.
    with suppress(OverflowError):
        at = at.astimezone()
    return at.replace(tzinfo=None).isoformat(sep=" ", timespec="minutes")


def render_span(first: Moment | None, last: Moment | None) -> str:
    start, end = render_time(first), render_time(last)
    if not start or not end or start == end:
        return start or end
    return f"{start} – {end[11:] if start[:10] == end[:10] else end}"


def render_path(path: str, home: Path) -> str:
    """The path with ``~`` for the home folder."""
    prefix = str(home)
    if path == prefix or path.startswith((prefix + "/", prefix + "\\")):
        return "~" + path[len(prefix) :]
    return path


def render_size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return (
                f"{size:.0f} {unit}"
                if unit == "B" or size >= 10
                else f"{size:.1f} {unit}"
            )
        size /= 1000
    return f"{size:.1f} GB"


def render_count(number: int, noun: str) -> str:
    """How many there are of something, in the singular or the plural."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
