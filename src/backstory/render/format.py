"""Times, sizes, counts and paths as text."""

from datetime import datetime
from pathlib import Path

from backstory.values.moments import Moment


def render_time(moment: Moment | None) -> str:
    """A time in the reader's time zone, or a day; empty if it is not known."""
    if moment is None:
        return ""
    if moment.is_day:
        return moment.at.date().isoformat()
    local = moment.in_local_zone().replace(tzinfo=None)
    return local.isoformat(sep=" ", timespec="minutes")


def render_own_time(moment: Moment | None) -> str:
    """A time in the zone that it was written in, which is named; or a day."""
    if moment is None:
        return ""
    own = moment.in_own_zone()
    if moment.is_day:
        return own.date().isoformat()
    zone = f"{own:%z}" if moment.utc_offset_min else "UTC"
    return f"{own.date().isoformat()} {own:%H:%M} {zone}"


def render_local(at: datetime) -> str:
    return render_time(Moment(at))


def render_span(first: Moment | None, last: Moment | None) -> str:
    start, end = render_time(first), render_time(last)
    if not start or not end or start == end:
        return start or end
    return f"{start} – {end[11:] if start[:10] == end[:10] else end}"


def render_hours(first: Moment, last: Moment) -> str:
    """From when to when on one day, in the reader's time zone."""
    start, end = render_time(first)[11:], render_time(last)[11:]
    return start if start == end else f"{start}–{end}"


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
    """A number and its noun, in the singular or the plural."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def render_day(moment: Moment | None, *, unknown: str = "unknown") -> str:
    """The date in the reader's time zone."""
    return render_time(moment)[:10] or unknown
