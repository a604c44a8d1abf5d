"""The year by day, and sessions by agent program, project and hour, as an SVG picture.

It loads nothing, and is readable on light and dark pages, and by screen readers.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from backstory.render.calendar import (
    WEEKDAYS,
    Calendar,
    describe_day,
    describe_levels,
    find_level,
    list_shown,
    split_in_years,
)
from backstory.render.format import render_count, render_path
from backstory.render.svg import STYLE, draw_text, to_xml
from backstory.text.cut import one_line
from backstory.values.statistics import DayCount, GroupCount, Statistics

_WIDTH = 800
_MARGIN = 24
_LEFT = 64
_CELL, _STEP = 10, 13
_BAR_LEFT = 300
_BAR_LENGTH = 400
_BAR_STEP = 20
_HOUR_STEP = 29
_HOUR_HEIGHT = 80
_SECTION_GAP = 36
_LEGEND_STEP = 90
_MAX_GROUPS = 10
_MAX_NAME_CHARS = 34


def draw_statistics(stats: Statistics, *, by: str, home: Path) -> str:
    """All pictures below each other, as one SVG document."""
    title, description = _describe(stats, home)
    drawn, bottom = [draw_text(_MARGIN, 34, title, "title")], 34
    if stats.first is not None and stats.last is not None:
        for calendar in split_in_years(stats.first, stats.last, stats.days):
            head = f"{by.capitalize()} by day, {calendar.first} to {calendar.last}"
            lines, bottom = _draw_calendar(calendar, stats.days, by, head, bottom)
            drawn += lines
    for head, groups in (
        ("Conversations by agent program", stats.hosts),
        ("Conversations by project", list_shown(stats.projects)),
    ):
        if groups:
            lines, bottom = _draw_groups(head, groups, home, bottom)
            drawn += lines
    if any(stats.hours):
        lines, bottom = _draw_hours(stats.hours, bottom)
        drawn += lines
    height = bottom + _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" '
            'aria-labelledby="title description">',
            f'  <title id="title">{to_xml(title)}</title>',
            f'  <desc id="description">{to_xml(description)}</desc>',
            f"  <style>{STYLE}  </style>",
            f'  <rect class="page" width="{_WIDTH}" height="{height}"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def _describe(stats: Statistics, home: Path) -> tuple[str, str]:
    """A title, and in words what the picture shows."""
    title = (
        f"{render_count(stats.sessions, 'conversation')}, "
        f"{render_count(stats.messages, 'message')}"
    )
    if not stats.days:
        return title, "There is nothing to show."
    hosts = ", ".join(f"{each.name} {each.sessions:,}" for each in stats.hosts)
    projects = ", ".join(
        f"{_name(each, home)} {each.sessions:,}"
        for each in list_shown(stats.projects)[:_MAX_GROUPS]
    )
    busiest = max(stats.days, key=lambda day: (day.sessions, day.messages))
    description = (
        f"From {stats.first} to {stats.last}. Conversations by agent program: {hosts}. "
        f"By project: {projects}. "
        f"Most on {describe_day(busiest, with_hosts=False)}."
    )
    return title, description


def _draw_calendar(
    calendar: Calendar, days: Sequence[DayCount], by: str, head: str, top: int
) -> tuple[list[str], int]:
    counts: dict[date, DayCount] = {each.day: each for each in days}
    top += _SECTION_GAP
    lines = [draw_text(_MARGIN, top, head, "head")]
    top += 34
    for week, name in calendar.iter_months():
        lines.append(draw_text(_LEFT + week * _STEP, top - 8, name, "faint"))
    for weekday in (0, 2, 4):
        y = top + weekday * _STEP + _CELL
        lines.append(draw_text(_MARGIN, y, WEEKDAYS[weekday], "faint"))
    for week, weekday, day in calendar.iter_days():
        count = counts.get(day, DayCount(day))
        cell = (
            f'  <rect class="l{find_level(count, by)}" x="{_LEFT + week * _STEP}" '
            f'y="{top + weekday * _STEP}" width="{_CELL}" height="{_CELL}" rx="2"'
        )
        if day in counts:
            lines.append(f"{cell}><title>{to_xml(describe_day(count))}</title></rect>")
        else:
            lines.append(f"{cell}/>")
    top += 7 * _STEP + 14
    lines += _draw_legend(by, top)
    return lines, top


def _draw_legend(by: str, y: int) -> Iterator[str]:
    x = _LEFT
    for level, meaning in enumerate(("none", *describe_levels(by))):
        yield (
            f'  <rect class="l{level}" x="{x}" y="{y - _CELL}" width="{_CELL}" '
            f'height="{_CELL}" rx="2"/>'
        )
        yield draw_text(x + _STEP + 2, y, meaning, "faint")
        x += _LEGEND_STEP


def _draw_groups(
    head: str, groups: Sequence[GroupCount], home: Path, top: int
) -> tuple[list[str], int]:
    top += _SECTION_GAP
    lines = [draw_text(_MARGIN, top, head, "head")]
    most = max(1, *(each.sessions for each in groups), 1)
    for group in groups[:_MAX_GROUPS]:
        top += _BAR_STEP
        lines += _draw_bar(group, _name(group, home), most, top)
    if (more := len(groups) - _MAX_GROUPS) > 0:
        top += _BAR_STEP
        lines.append(draw_text(_MARGIN, top, f"and {more:,} more", "faint"))
    return lines, top


def _draw_bar(group: GroupCount, name: str, most: int, y: int) -> Iterator[str]:
    # A bar of no length would not show that there is something.
    length = max(1, group.sessions * _BAR_LENGTH // most)
    yield draw_text(_BAR_LEFT - 12, y, name, anchor="end")
    yield (
        f'  <rect class="l3" x="{_BAR_LEFT}" y="{y - 11}" width="{length}" '
        'height="12" rx="2"/>'
    )
    yield draw_text(_BAR_LEFT + length + 6, y, f"{group.sessions:,}", "faint")


def _name(group: GroupCount, home: Path) -> str:
    if group.name is None:
        return "no project"
    # The end of a path tells more than its beginning.
    path = one_line(render_path(group.name, home), 1_000)
    return path if len(path) <= _MAX_NAME_CHARS else "…" + path[1 - _MAX_NAME_CHARS :]


def _draw_hours(hours: Sequence[int], top: int) -> tuple[list[str], int]:
    top += _SECTION_GAP
    head = "Messages by hour of the day (local time)"
    lines = [draw_text(_MARGIN, top, head, "head")]
    bottom = top + _HOUR_HEIGHT + 16
    most = max(hours)
    for hour, number in enumerate(hours):
        x = _LEFT + hour * _HOUR_STEP
        height = -(-number * _HOUR_HEIGHT // most)
        name = f"{hour:02}:00: {render_count(number, 'message')}"
        lines.append(
            f'  <rect class="l3" x="{x}" y="{bottom - height}" '
            f'width="{_HOUR_STEP - 5}" height="{height}" rx="2">'
            f"<title>{name}</title></rect>"
        )
        if hour % 3 == 0:
            lines.append(draw_text(x, bottom + 16, f"{hour:02}:00", "faint"))
    return lines, bottom + 20
