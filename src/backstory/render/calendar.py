"""The days of a year as weeks, and how much a day has of something: its level."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from backstory.render.format import render_count
from backstory.values.statistics import DayCount, GroupCount
from backstory.values.structs import FrozenStruct

# From how many on a day has the next level.
LEVELS = {
    "conversations": (1, 2, 4, 8),
    "messages": (1, 50, 200, 800),
    "projects": (1, 2, 3, 5),
    "agents": (1, 2, 3, 4),
}
MEASURES = tuple(LEVELS)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
# As many weeks as fit side by side: those of a year, and a few days more.
_MAX_WEEKS = 54


class Calendar(FrozenStruct):
    """Some days side by side: a column for each week, from Monday on."""

    first: date
    last: date

    @property
    def monday(self) -> date:
        # No date is earlier than the first one, which is a Monday.
        return self.first - timedelta(days=self.first.weekday())

    @property
    def weeks(self) -> int:
        return (self.last - self.monday).days // 7 + 1

    def find_day(self, week: int, weekday: int) -> date | None:
        """The day at a place; None if it is before the first or after the last."""
        number = 7 * week + weekday
        if (self.first - self.monday).days <= number <= (self.last - self.monday).days:
            return self.monday + timedelta(days=number)
        return None

    def iter_days(self) -> Iterator[tuple[int, int, date]]:
        """Every day with its week and weekday."""
        for number in range((self.last - self.first).days + 1):
            day = self.first + timedelta(days=number)
            yield (day - self.monday).days // 7, day.weekday(), day

    def iter_months(self) -> Iterator[tuple[int, str]]:
        """The week in which each month begins, and its name."""
        for week, _, day in self.iter_days():
            # A name needs the room of two weeks or more.
            if day.day == 1 and week < _MAX_WEEKS - 3:
                yield week, MONTHS[day.month - 1]


def split_in_years(first: date, last: date, days: Sequence[DayCount]) -> list[Calendar]:
    """One calendar for up to a year, otherwise one for each year that has sessions."""
    whole = Calendar(first, last)
    if whole.weeks <= _MAX_WEEKS:
        return [whole]
    years = sorted({each.day.year for each in days})
    return [
        Calendar(max(first, date(year, 1, 1)), min(last, date(year, 12, 31)))
        for year in years
    ]


def measure_day(day: DayCount, by: str) -> int:
    """How much a day has of what ``by`` names."""
    match by:
        case "conversations":
            return day.sessions
        case "messages":
            return day.messages
        case "projects":
            return day.projects
        case _:
            return len(day.hosts)


def find_level(day: DayCount, by: str) -> int:
    """From 0 for none to 4 for a lot."""
    number = measure_day(day, by)
    return sum(number >= least for least in LEVELS[by])


def describe_levels(by: str) -> list[str]:
    """What each level but that for none means, in numbers."""
    starts = LEVELS[by]
    ends = [after - 1 for after in starts[1:]]
    return [
        *(
            f"{start:,}" if start == end else f"{start:,}-{end:,}"
            for start, end in zip(starts, ends, strict=False)
        ),
        f"{starts[-1]:,} or more",
    ]


def describe_day(day: DayCount, *, with_hosts: bool = True) -> str:
    """A day and what it has, in words."""
    counts = [
        render_count(day.sessions, "conversation"),
        render_count(day.messages, "message"),
        *([render_count(day.projects, "project")] if day.projects else []),
        *(day.hosts if with_hosts else ()),
    ]
    return f"{day.day.isoformat()}: {', '.join(counts)}"


def list_shown(groups: Sequence[GroupCount]) -> list[GroupCount]:
    """The groups that have a conversation of their own, and not only subagents."""
    return [each for each in groups if each.sessions]
