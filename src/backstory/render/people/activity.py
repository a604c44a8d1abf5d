"""What was worked on, day by day, for people. All text is made safe to print."""

from collections.abc import Iterator, Sequence

from backstory.render.format import render_count, render_hours
from backstory.render.layout import Style, cut_to_width, plain_style, to_cell
from backstory.render.people.hits import folder_name
from backstory.text.cut import one_line
from backstory.values.activity import Activity, DayActivity, SessionActivity

_MAX_TITLE_CHARS = 80
_MAX_LOG_CHARS = 200


def render_activity(
    activity: Activity, *, style: Style = plain_style, width: int | None = None
) -> Iterator[str]:
    """An overview to read on a terminal; its last line is blank."""
    for day in activity.days:
        count = render_count(day.sessions, "session")
        yield style(f"{day.day.isoformat()} {day.day:%A}  {count}", "head")
        for line in _day_lines(day):
            yield line if width is None else cut_to_width(line, width)
        yield ""
    if activity.left_out_days:
        yield f"{render_count(activity.left_out_days, 'earlier day')} not shown"
        yield ""
    if activity.days:
        yield style("backstory show ID shows a session", "dim")
        yield ""


def _day_lines(day: DayActivity) -> Iterator[str]:
    if day.log:
        yield f"  Daily log: {one_line(to_cell('; '.join(day.log)), _MAX_LOG_CHARS)}"
    for project in day.projects:
        folder = to_cell(folder_name(project.project))
        yield f"  in {folder}" if folder else "  (no project)"
        yield from _columns(project.sessions)
    if day.left_out:
        yield f"  {render_count(day.left_out, 'more session')}"


def _columns(sessions: Sequence[SessionActivity]) -> Iterator[str]:
    """One line per session; the title comes last, because it may be cut."""
    names = [to_cell(each.name) for each in sessions]
    longest = max(map(len, names))
    for each, name in zip(sessions, names, strict=True):
        title = one_line(to_cell(each.session.title), _MAX_TITLE_CHARS)
        yield (
            f"    {render_hours(each.first, each.last):11}  {name:{longest}}  "
            f"{each.session.host}  {render_count(each.messages, 'message')}  {title}"
        ).rstrip()
