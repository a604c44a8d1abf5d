"""A conversation to read on a terminal. All text is made safe to print."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from backstory.render.format import render_count, render_path, render_span, render_time
from backstory.render.layout import (
    GUTTER,
    Style,
    cut_to_width,
    plain_style,
    quote_lines,
    to_cell,
    wrap_facts,
    wrap_indented,
)
from backstory.render.people.messages import (
    FOLDED,
    Folding,
    fold_tool,
    name_role,
    name_tools,
    to_place,
)
from backstory.text.tool_calls import CallPart, parse_call
from backstory.values.history import Message, Role, Session

_INDENT = "  "
_HOW_TO_UNFOLD = "Tools take one line each; --tools shows them in full."
# The signs of a diff stay: colour alone says nothing.
_DIFF_KINDS = {"+": "added", "-": "removed", "@": "dim"}


def render_transcript(
    session: Session,
    messages: Iterable[Message],
    *,
    resume: str | None = None,
    home: Path,
    width: int | None = None,
    style: Style = plain_style,
    folding: Folding = FOLDED,
) -> Iterator[str]:
    """A conversation from top to bottom; ``resume`` is how to continue it."""
    yield from _render_head(session, resume, home, width, style)
    day, has_folded, is_after_fold = "", False, False
    for message, tool in name_tools(messages):
        is_folded = folding.folds(message)
        time = render_time(message.sent)
        is_new_day = bool(time) and time[:10] != day
        if is_new_day or not (is_folded and is_after_fold):
            yield ""
        if is_new_day:
            day = time[:10]
            yield style(f"— {day} —", "bold")
            yield ""
        if is_folded:
            yield _render_folded(session, message, tool, width, style)
        else:
            yield from _render_message(session, message, tool, time[11:], width, style)
        has_folded |= is_folded
        is_after_fold = is_folded
    if has_folded:
        yield ""
        yield from wrap_indented(_HOW_TO_UNFOLD, width)


def _render_head(
    session: Session, resume: str | None, home: Path, width: int | None, style: Style
) -> Iterator[str]:
    title = f"title: {to_cell(session.title)}" if session.title else "(no title)"
    for line in wrap_indented(title, width):
        yield style(line, "bold")
    place = render_path(session.project or "", home)
    if place and session.git_branch:
        place += f" ({session.git_branch})"
    facts = [
        session.host,
        session.native_id,
        place,
        render_count(session.message_count, "message"),
        render_span(session.started, session.last_active),
    ]
    yield from wrap_facts([to_cell(fact) for fact in facts if fact], width)
    if session.parent_id:
        yield from wrap_indented(f"part of {to_cell(session.parent_id)}", width)
    if resume:
        yield f"resume with: {resume}"


def _head(session: Session, message: Message, *others: str) -> str:
    name = name_role(session, message.role).upper()
    parts = (name, *(to_cell(each) for each in others))
    return f"[{to_place(message)}] " + "  ".join(filter(None, parts))


def _render_folded(
    session: Session, message: Message, tool: str, width: int | None, style: Style
) -> str:
    """A call or a result on one line, with what it says behind the gutter."""
    fold = fold_tool(message, session.project)
    head = _head(session, message, tool, fold.size)
    point = f" {GUTTER}{to_cell(fold.point)}" if fold.point else ""
    line = head + point
    shown = line if width is None else cut_to_width(line, width)
    if len(shown) < len(head):
        return style(shown, "head")
    return style(head, "head") + shown[len(head) :]


def _render_message(
    session: Session,
    message: Message,
    tool: str,
    time: str,
    width: int | None,
    style: Style,
) -> Iterator[str]:
    for line in wrap_indented(_head(session, message, tool, time), width):
        yield style(line, "head")
    quote = partial(quote_lines, width=width, indent=_INDENT)
    if message.role is not Role.TOOL_CALL:
        yield from quote(message.text)
        return
    call = parse_call(message.text)
    # A text that is not JSON is its own point.
    if call.point and call.point != message.text:
        yield from quote(call.point)
    elif not call.parts:
        yield from quote(message.text)
    for part in call.parts:
        yield from _render_part(part, width, style)


def _render_part(part: CallPart, width: int | None, style: Style) -> Iterator[str]:
    quote = partial(quote_lines, width=width, indent=_INDENT)
    if part.name and not part.changes:
        yield from quote(f"{part.name}:")
    if not part.changes:
        yield from quote(part.text)
    for line in part.changes:
        kind = _DIFF_KINDS.get(line.sign)
        mark = partial(_mark, style=style, kind=kind) if kind else str
        yield from quote(line.written, mark=mark)


def _mark(text: str, *, style: Style, kind: str) -> str:
    return style(text, kind)
