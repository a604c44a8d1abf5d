"""The year by day, and sessions by agent program, project and hour, for people.

Every picture has its numbers in words beside it, and its signs differ without colour.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from backstory.render.calendar import (
    MONTHS,
    WEEKDAYS,
    Calendar,
    describe_day,
    describe_levels,
    find_level,
    list_shown,
    measure_day,
    split_in_years,
)
from backstory.render.format import render_count, render_path
from backstory.render.layout import (
    Style,
    cell_len,
    cut_to_width,
    plain_style,
    to_cell,
)
from backstory.values.statistics import DayCount, GroupCount, Statistics
from backstory.values.structs import FrozenStruct

_DEFAULT_WIDTH = 80
_MIN_WIDTH = 40
_INDENT = "  "
# From nothing to a lot; each is one cell wide, and has a plain sign (``cli.app``).
_SHADES = "·░▒▓█"
_FULL, _HALF = "█", "▄"
# Not an ellipsis, which would be wider where it has to be plain.
_CUT = "..."
_MAX_GROUPS = 10
_MAX_MONTHS = 14
_MAX_YEARS = 10
_MAX_NAME = 40
_MAX_BAR = 40
_HOUR_ROWS = 5


def render_statistics(
    stats: Statistics,
    *,
    by: str,
    home: Path,
    width: int | None,
    style: Style = plain_style,
) -> Iterator[str]:
    """All pictures, one below the other; at most ``width`` wide."""
    width = max(_MIN_WIDTH, width or _DEFAULT_WIDTH)
    yield from wrap(_summarize(stats), width)
    if not stats.days or stats.first is None or stats.last is None:
        return
    yield from _render_calendars(stats, stats.first, stats.last, by, width, style)
    yield from _render_hosts(stats, stats.first, stats.last, width, style)
    yield from _render_projects(list_shown(stats.projects), home, width, style)
    yield from _render_hours(stats.hours, width, style)


def _summarize(stats: Statistics) -> str:
    counted, more = "No conversations", ""
    if stats.days:
        more = " more"
        counted = (
            f"{render_count(stats.sessions, 'conversation')}, "
            f"{render_count(stats.messages, 'message')}"
        )
    counted += _name_period(stats.first, stats.last)
    sentences = [f"{counted}."]
    if stats.other_sessions:
        are = "is" if stats.other_sessions == 1 else "are"
        others = f"{stats.other_sessions:,}{more} on other days, or without a date"
        sentences.append(f"There {are} {others}: see --since, --until and --year.")
    if stats.left_out_sessions:
        left_out = render_count(stats.left_out_sessions, "more session")
        sentences.append(
            f"'backstory status' counts {left_out}, of subagents or warm-ups."
        )
    return " ".join(sentences)


def _name_period(first: date | None, last: date | None) -> str:
    if first is not None and last is not None:
        return f" from {first} to {last}"
    if first is not None:
        return f" since {first}"
    return f" until {last}" if last is not None else ""


# -- by day ---


def _render_calendars(
    stats: Statistics, first: date, last: date, by: str, width: int, style: Style
) -> Iterator[str]:
    yield from _head(f"{by.capitalize()} by day", style)
    counts = {each.day: each for each in stats.days}
    calendars = split_in_years(first, last, stats.days)
    for calendar in calendars:
        if len(calendars) > 1:
            yield f"{_INDENT}{calendar.first} to {calendar.last}"
        yield from _render_calendar(calendar, counts, by, width, style)
    yield from _say(_render_legend(by), width)
    busiest = max(stats.days, key=lambda day: (measure_day(day, by), day.messages))
    yield from _say(f"Most on {describe_day(busiest, with_hosts=False)}.", width)


def _render_calendar(
    calendar: Calendar,
    counts: dict[date, DayCount],
    by: str,
    width: int,
    style: Style,
) -> Iterator[str]:
    left = len(_INDENT) + 4
    # A blank between weeks makes them easier to tell apart.
    step = 2 if left + 2 * calendar.weeks <= width else 1
    names = ""
    for week, name in calendar.iter_months():
        names = names.ljust(step * week) + name if len(names) <= step * week else names
    yield " " * left + names
    for weekday, day_name in enumerate(WEEKDAYS):
        days = (calendar.find_day(week, weekday) for week in range(calendar.weeks))
        signs = (" " if day is None else _sign(counts.get(day), by) for day in days)
        row = (" " * (step - 1)).join(signs).rstrip()
        yield f"{_INDENT}{day_name} {_dim_empty(row, style)}"


def _sign(count: DayCount | None, by: str) -> str:
    return _SHADES[0 if count is None else find_level(count, by)]


def _dim_empty(row: str, style: Style) -> str:
    """A row in which days without anything stand back."""
    runs = groupby(row, key=lambda sign: sign in (" ", _SHADES[0]))
    return "".join(
        style("".join(run), "dim") if is_empty else "".join(run)
        for is_empty, run in runs
    )


def _render_legend(by: str) -> str:
    levels = zip(_SHADES, ["none", *describe_levels(by)], strict=True)
    return "  ".join(f"{sign} {meaning}" for sign, meaning in levels) + f" {by}"


# -- by agent program and project ---


def _render_hosts(
    stats: Statistics, first: date, last: date, width: int, style: Style
) -> Iterator[str]:
    yield from _head("Conversations by agent program", style)
    columns = _list_columns(first, last)
    names = [to_cell(each.name or "") for each in stats.hosts]
    widest = min(max(map(cell_len, names)), _MAX_NAME // 2)
    numbers = [f"{each.sessions:,}" for each in stats.hosts]
    digits = max(map(len, numbers))
    left = len(_INDENT) + widest + 2 + digits + 2
    is_wide = left + len(columns) * columns[0].width <= width
    names_above = [each.name if is_wide else each.short for each in columns]
    step = len(names_above[0]) + 1
    heads = "".join(f"{name:<{step}}" for name in names_above)
    yield (" " * left + heads).rstrip()
    by_column = [
        _count_columns(stats.days, host.name or "", columns) for host in stats.hosts
    ]
    most = max(1, *(number for row in by_column for number in row), 1)
    for name, number, row in zip(names, numbers, by_column, strict=True):
        signs = (f"{_shade(each, most):<{step}}" for each in row)
        yield (
            f"{_INDENT}{_pad(cut_to_width(name, widest), widest)}  {number:>{digits}}  "
            + "".join(signs)
        ).rstrip()
    unit = columns[0].unit
    yield f"{_INDENT}{_SHADES[0]} none  {_SHADES[1:]} more, up to {most:,} a {unit}"


class _Column(FrozenStruct):
    """A month or a year: its names, and what its days begin with."""

    unit: str
    name: str
    short: str
    start: str

    @property
    def width(self) -> int:
        return len(self.name) + 1


def _list_columns(first: date, last: date) -> list[_Column]:
    """The months from one day to another, or the last years if there are many."""
    months: list[_Column] = []
    year, month = first.year, first.month
    while (year, month) <= (last.year, last.month) and len(months) <= _MAX_MONTHS:
        name = MONTHS[month - 1]
        months.append(_Column("month", name, name[0], f"{year:04}-{month:02}"))
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    if len(months) <= _MAX_MONTHS:
        return months
    years = range(max(first.year, last.year - _MAX_YEARS + 1), last.year + 1)
    names = [f"{each:04}" for each in years]
    return [_Column("year", name, name[-2:], name) for name in names]


def _count_columns(
    days: Sequence[DayCount], host: str, columns: Sequence[_Column]
) -> list[int]:
    counts = {each.start: 0 for each in columns}
    length = len(columns[0].start)
    for day in days:
        start = day.day.isoformat()[:length]
        if start in counts:
            counts[start] += day.sessions_by_host.get(host, 0)
    return list(counts.values())


def _shade(number: int, most: int) -> str:
    # Rounded up, so that one of many still shows.
    return _SHADES[-(-number * (len(_SHADES) - 1) // most)]


def _render_projects(
    projects: Sequence[GroupCount], home: Path, width: int, style: Style
) -> Iterator[str]:
    yield from _head("Conversations by project", style)
    shown = projects[:_MAX_GROUPS]
    names = [
        "(no project)" if each.name is None else to_cell(render_path(each.name, home))
        for each in shown
    ]
    widest = min(max(map(cell_len, names)), _MAX_NAME, width // 2)
    numbers = [f"{each.sessions:,}" for each in shown]
    digits = max(map(len, numbers))
    room = min(_MAX_BAR, width - len(_INDENT) - widest - 2 - digits - 2)
    most = max(1, *(each.sessions for each in shown), 1)
    for name, number, each in zip(names, numbers, shown, strict=True):
        bar = _FULL * -(-each.sessions * room // most)
        cut = _pad(_cut_left(name, widest), widest)
        yield f"{_INDENT}{cut}  {number:>{digits}}  {bar}".rstrip()
    if (more := len(projects) - len(shown)) > 0:
        yield f"{_INDENT}and {render_count(more, 'more project')} (--json lists all)"


# -- by hour ---


def _render_hours(hours: Sequence[int], width: int, style: Style) -> Iterator[str]:
    most = max(hours)
    if not most:
        return
    yield from _head("Messages by hour of the day", style)
    # In halves of a row, rounded up, so that one of many still shows.
    heights = [-(-number * 2 * _HOUR_ROWS // most) for number in hours]
    for row in reversed(range(_HOUR_ROWS)):
        signs = [
            _FULL if height >= 2 * row + 2 else _HALF if height > 2 * row else " "
            for height in heights
        ]
        yield (_INDENT + " ".join(signs)).rstrip()
    labels = "".join(f"{hour:<6}" for hour in range(0, len(hours), 3))
    yield _INDENT + labels.rstrip()
    hour = hours.index(most)
    yield from _say(
        f"Most from {hour:02}:00 to {(hour + 1) % len(hours):02}:00: "
        f"{render_count(most, 'message')}. Times are local.",
        width,
    )


# -- lines ---


def _head(text: str, style: Style) -> Iterator[str]:
    yield ""
    yield style(text, "head")


def _say(text: str, width: int) -> list[str]:
    return wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _cut_left(text: str, width: int) -> str:
    """The end of a path, which tells more than its beginning."""
    if cell_len(text) <= width:
        return text
    while cell_len(text) > width - len(_CUT):
        text = text[1:]
    return _CUT + text
