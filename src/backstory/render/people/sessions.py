"""Sessions and their messages, for people. All text is made safe to print."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from backstory.render.format import render_count, render_path, render_span, render_time
from backstory.render.layout import (
    cell_len,
    quote_lines,
    render_columns,
    to_cell,
    wrap_to_width,
)
from backstory.text.cut import one_line
from backstory.values.history import Message, Role, Session

_MIN_FOLDER_CHARS = 12
_INDENT = "  "
_ROLE_NAMES = {
    Role.USER: "USER",
    Role.ASSISTANT: "ASSISTANT",
    Role.TOOL_CALL: "TOOL CALL",
    Role.TOOL_RESULT: "TOOL RESULT",
    Role.SYSTEM: "SYSTEM",
    Role.SUMMARY: "SUMMARY",
    Role.ERROR: "ERROR",
}


def render_sessions(
    sessions: Sequence[Session],
    *,
    names: Mapping[int, str],
    resumes: Mapping[int, str] | None = None,
    home: Path,
    width: int | None,
) -> Iterator[str]:
    """One line per session; ``names`` are their short ids.

    ``resumes`` are the commands that continue them, each shown below its session.
    """
    # On a terminal, the title needs room; of a long path, the end says most.
    folder_width = None if width is None else max(_MIN_FOLDER_CHARS, width // 6)
    rows = [
        (
            render_time(session.last_active),
            session.host,
            names.get(session.session_id, session.native_id),
            str(session.message_count),
            _ending(to_cell(render_path(session.project or "", home)), folder_width),
            one_line(session.title, 200),
        )
        for session in sessions
    ]
    heads = ("LAST ACTIVE", "HOST", "ID", "MESSAGES", "PROJECT", "TITLE")
    head, *lines = render_columns(heads, rows, right={3}, width=width)
    yield head
    for session, line in zip(sessions, lines, strict=True):
        yield line
        if resume := (resumes or {}).get(session.session_id):
            yield f"  {resume}"


def _ending(text: str, width: int | None) -> str:
    """The end of a text that is too long, after an ellipsis."""
    if width is None or cell_len(text) <= width:
        return text
    kept = text[-width:]
    while cell_len(kept) > width - 1:
        kept = kept[1:]
    return f"…{kept}"


def render_transcript(
    session: Session,
    messages: Iterable[Message],
    *,
    resume: str | None = None,
    home: Path,
    width: int | None = None,
) -> Iterator[str]:
    """A conversation to read from top to bottom; ``resume`` is how to continue it."""
    title = f"title: {to_cell(session.title)}" if session.title else "(no title)"
    yield from _wrap(title, width)
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
    yield from _wrap(" · ".join(to_cell(fact) for fact in facts if fact), width)
    if session.parent_id:
        yield from _wrap(f"part of {to_cell(session.parent_id)}", width)
    if resume:
        yield f"resume with: {resume}"
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
        head = (_ROLE_NAMES[message.role], to_cell(tool), time[11:])
        line = f"[{message.message_id}] " + "  ".join(part for part in head if part)
        yield from _wrap(line, width)
        yield from quote_lines(message.text, width, indent=_INDENT)


def _wrap(line: str, width: int | None) -> Iterator[str]:
    """A line of ours with names in it: what does not fit goes on indented."""
    if width is None:
        yield line
        return
    first, *others = wrap_to_width(line, width - len(_INDENT))
    yield first
    yield from (_INDENT + piece for piece in others)
