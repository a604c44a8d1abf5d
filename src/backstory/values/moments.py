"""Points in time as hosts write them: text or numbers, with or without a zone.

Inside Backstory, a time is UTC. The offset with which it was written is kept beside it,
because "10 in the evening" is what a person remembers. Times without a zone are in the
local time of the machine that wrote them; the caller says how to interpret them.

A day without a time, such as that of a daily log, is the same day in every zone. It is
kept as noon in UTC, with a mark in place of the offset.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone

from backstory.values.structs import FrozenStruct

Localize = Callable[[datetime], datetime]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Programs write zero for a time they do not know: 1970 or the year 1.
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
# Stands for "a whole day" where an offset is kept; no real offset is that large.
WHOLE_DAY = 24 * 60


class Moment(FrozenStruct):
    """An instant in UTC, and the offset it was written with, if it had one.

    A day without a time is made by ``whole_day``.
    """

    at: datetime
    utc_offset_min: int | None = None

    @property
    def is_day(self) -> bool:
        """Whether only the day is known."""
        return self.utc_offset_min == WHOLE_DAY

    def in_own_zone(self) -> datetime:
        """The instant with the offset it was written with; UTC if it had none."""
        if self.utc_offset_min is None or self.is_day:
            return self.at
        return self.at.astimezone(timezone(timedelta(minutes=self.utc_offset_min)))

    def in_local_zone(self) -> datetime:
        """The instant in the reader's zone; a whole day is the same in every zone."""
        # Go's zero time is the earliest that a datetime can hold; west of UTC, it would
        # overflow.
        with suppress(OverflowError):
            return self.at if self.is_day else self.at.astimezone()
        return self.at

    def to_microseconds(self) -> int:
        return (self.at - EPOCH) // _MICROSECOND


def from_microseconds(value: int, utc_offset_min: int | None = None) -> Moment:
    return Moment(EPOCH + timedelta(microseconds=value), utc_offset_min)


def to_modified(mtime_ns: int) -> Moment | None:
    """The time of a file; None if a datetime cannot hold it, which can happen."""
    try:
        return from_microseconds(mtime_ns // 1000)
    except OverflowError:
        return None


def whole_day(day: date) -> Moment:
    """A day without a time."""
    return Moment(datetime.combine(day, time(12), UTC), WHOLE_DAY)


def read_as_local(naive: datetime) -> datetime:
    """Read a time without a zone as local time, with the offset of its own date."""
    return naive.astimezone(UTC)


def parse_moment(
    value: object, localize: Localize = read_as_local, *, any_year: bool = False
) -> Moment | None:
    """Read ISO text or epoch seconds, milli- or microseconds; None for anything else.

    Numbers are distinguished by size: from 1973 to 5138, seconds have nine to eleven
    digits, milliseconds twelve to fourteen, microseconds more. A time before 1980
    becomes None unless ``any_year``, as programs write zero for a time they do not
    know.
    """
    try:
        match value:
            case bool():
                return None
            case str():
                moment = _parse_text(value, localize)
            case int() | float():
                moment = _parse_number(value)
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if any_year or moment.at >= _EARLIEST else None


def _parse_text(value: str, localize: Localize) -> Moment:
    text = value.strip()
    # An epoch number in quotes: read as ISO text, thirteen digits would be a date in
    # the eighteenth century followed by an hour.
    if text.isdecimal() and len(text) in (10, 13, 16):
        return _parse_number(int(text))
    written = parse_iso(text)
    if written is None:
        raise ValueError(f"{text!r} is not an ISO time")
    return to_moment(written, localize)


def parse_iso(text: str) -> datetime | None:
    """An ISO date or time as it is written, with its zone if it has one; else None."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def to_moment(written: datetime, localize: Localize = read_as_local) -> Moment:
    """The instant that a date and time stands for, and its offset, if it has one."""
    offset = written.utcoffset()
    if offset is None:
        return Moment(localize(written))
    # Rounded towards zero: rounded down, -23:59:30 would be minus a whole day, which is
    # not a valid offset.
    return Moment(written.astimezone(UTC), int(offset / _MINUTE))


def _parse_number(value: float) -> Moment:
    if abs(value) < 1e11:
        microseconds = round(value * 1_000_000)
    elif abs(value) < 1e14:
        microseconds = round(value * 1_000)
    else:
        microseconds = int(value)
    return from_microseconds(microseconds)


def start_of_day(day: date) -> int:
    """The start of a day in local time, in microseconds since the epoch."""
    start = datetime(day.year, day.month, day.day).astimezone(UTC)
    return Moment(start).to_microseconds()


def start_in_utc(day: date) -> int:
    """The same in UTC, to compare with whole days, which are the same everywhere."""
    return Moment(datetime.combine(day, time.min, UTC)).to_microseconds()
