"""What was worked on, day by day, for models: with secrets masked.

Titles are quoted on one line, so that no text can pass for a line of ours.
"""

from collections.abc import Iterator

from backstory.render.format import render_count, render_hours
from backstory.render.hit_parts import LABEL_CHARS, mask_lines
from backstory.text.envelope import label
from backstory.values.activity import Activity, DayActivity, SessionActivity


def render_activity(activity: Activity) -> list[str]:
    """One block for each day."""
    blocks = ["\n".join(_day_lines(day)) for day in activity.days]
    if activity.left_out_days:
        days = render_count(activity.left_out_days, "earlier day")
        blocks.append(f"({days} not listed; ask for them with date_to)")
    return blocks


def _day_lines(day: DayActivity) -> Iterator[str]:
    sessions = render_count(day.sessions, "session")
    yield f"--- {day.day.isoformat()}, {day.day:%A} ({sessions}) ---"
    if day.log:
        headings = ", ".join(f'"{_quote(each)}"' for each in day.log)
        yield f"Daily log: {headings}"
    for project in day.projects:
        yield f"Project: {_quote(project.project or 'none')}"
        yield from map(_session_line, project.sessions)
    if day.left_out:
        yield f"({render_count(day.left_out, 'more session')} not listed)"


def _session_line(each: SessionActivity) -> str:
    session = each.session
    title = _quote(session.title or session.native_id)
    messages = render_count(each.messages, "message")
    return (
        f"{render_hours(each.first, each.last)} "
        f'"{title}" ({messages}, {_quote(session.host)}, session: {_quote(each.name)})'
    )


def _quote(text: str) -> str:
    return label(mask_lines(text), LABEL_CHARS)
