"""What callers pass in, understood and checked: roles, queries, limits, days.

A caller is a person, a program or a model, and writes days and numbers in its own way.
What cannot be meant is refused with ``BadQuery`` or ``UnknownName``.
"""

import operator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from backstory.errors import BadQuery, UnknownName
from backstory.text.escape import replace_surrogates
from backstory.text.json_values import compact_json
from backstory.values.history import Role
from backstory.values.moments import Moment, from_microseconds, start_of_day

# More than anybody can read, and less than a database can count.
_MOST = 1_000_000
# There is nothing before or behind; further away, clocks and calendars give out.
_FIRST_DAY, _LAST_DAY = date(1970, 1, 2), date(9000, 1, 1)


def to_role(role: Role | str) -> Role:
    """The role of that name."""
    try:
        return Role(role)
    except ValueError:
        raise UnknownName(
            f"no role is called {role!r}",
            hint="the roles are: " + ", ".join(known.value for known in Role),
        ) from None


def to_said(role: Role, text: object) -> str:
    """What was said, as text: what a tool is given or answers may be any value."""
    if isinstance(text, str):
        return text
    if text is None and role not in (Role.TOOL_CALL, Role.TOOL_RESULT):
        raise BadQuery(
            f"the text of a message by {role.value} is None",
            hint="leave out a message in which nothing is said",
        )
    return compact_json(text)


def to_query(query: str) -> str:
    """The query without the blanks around it. Any text is one, but for an empty one."""
    if not isinstance(query, str):
        raise BadQuery(f"the query is {query!r}, which is no text")
    if not query.strip():
        raise BadQuery("the query is empty", hint="say what is to be found")
    # Half a character, which JSON can hold, is nothing that a text can.
    return replace_surrogates(query.strip())


def to_limit(limit: int) -> int:
    number = to_number(limit, "limit")
    if number < 1:
        raise BadQuery(f"limit is {number}, and nothing can be found then")
    return min(number, _MOST)


def to_number(value: int, name: str) -> int:
    if not isinstance(value, bool):
        with suppress(TypeError):
            return operator.index(value)
    raise BadQuery(f"{name} is {value!r}, which is no whole number")


# -- which days -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time in microseconds, up to but not including its end."""

    first: int | None = None
    end: int | None = None

    @property
    def why_empty(self) -> str:
        """Why no moment is in it; an empty text when there are some."""
        if self.first is None or self.end is None or self.first < self.end:
            return ""
        first, last = _local_day(self.first), _local_day(self.end - 1)
        return f"from {first} is after {last}: there are no such days"


EVER = Period()


def to_period(
    date_from: date | str | None,
    date_to: date | str | None,
    days: int,
    *,
    now: datetime,
) -> Period:
    """Local days, both of which count; and of those only the last so many."""
    starts = []
    if (first := to_day(date_from, "date_from")) is not None:
        starts.append(start_of_day(first))
    if (count := to_number(days, "days")) > 0:
        # Longer ago than there are dates, it leaves all of them.
        with suppress(OverflowError):
            starts.append(Moment(now - timedelta(days=count)).to_microseconds())
    last = to_day(date_to, "date_to")
    end = None if last is None else start_of_day(last + timedelta(days=1))
    return Period(max(starts, default=None), end)


def to_day(value: date | str | None, name: str) -> date | None:
    """A day: as a date, as the local day of a time, or as ISO text of either."""
    if value is None:
        return None
    day = _parse(value, name)
    if isinstance(day, datetime):
        with suppress(OverflowError):
            day = day if day.tzinfo is None else day.astimezone()
        day = day.date()
    return min(max(day, _FIRST_DAY), _LAST_DAY)


def to_instant(value: date | str | None, name: str) -> datetime | None:
    """A time, in UTC: of a day, its first moment; without a zone, local."""
    if value is None:
        return None
    at = _parse(value, name)
    if not isinstance(at, datetime):
        at = datetime.combine(min(max(at, _FIRST_DAY), _LAST_DAY), time.min)
    with suppress(OverflowError):
        return at.astimezone(UTC)
    return at.replace(tzinfo=UTC)


def _parse(value: date | str, name: str) -> date:
    if isinstance(value, date):
        return value
    with suppress(ValueError, AttributeError):
        return datetime.fromisoformat(value.strip())
    raise BadQuery(
        f"{name} is {value!r}, which is no day",
        hint="give a date, or write it as 2026-02-25",
    )


def _local_day(microseconds: int) -> date:
    return from_microseconds(microseconds).at.astimezone().date()
