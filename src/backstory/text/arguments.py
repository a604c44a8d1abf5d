"""Check and convert what callers pass in: roles, queries, limits, days.

A caller is a person, a program or a model. Arguments that make no sense are refused
with ``BadQuery`` or ``UnknownName``.
"""

import operator
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from pathlib import Path, PurePath

from backstory.errors import BadQuery, UnknownName, show_value
from backstory.text.cut import one_line
from backstory.text.escape import escape_surrogates, neutralize, replace_surrogates
from backstory.text.json_values import compact_json
from backstory.text.tokens import CountTokens, most_tokens
from backstory.values.history import Role
from backstory.values.moments import (
    Moment,
    from_microseconds,
    parse_iso,
    start_in_utc,
    start_of_day,
    to_moment,
)
from backstory.values.query import DayRange
from backstory.values.structs import FrozenStruct

# People paste whole files into a query, but hardly more than that.
MAX_QUERY_CHARS = 100_000
# More than anybody can read, and less than a database can count.
_MOST = 1_000_000
_MOST_TOKENS = 10**9
# More days than any history has.
MAX_DAYS = 100_000
# No history is older or newer, and time zones cannot be computed far beyond this.
_FIRST_DAY, _LAST_DAY = date(1970, 1, 2), date(9000, 1, 1)

_MAX_SHOWN_CHARS = 80

DATE_HINT = "write it as 2026-02-25, or in words: yesterday, last week, 3 days ago"


def show_name(name: object) -> str:
    """An unknown name, as an error shows it: short, and safe to print."""
    return one_line(neutralize(str(name)), _MAX_SHOWN_CHARS)


def to_text(value: str, name: str) -> str:
    """A name or an id with unpaired surrogates escaped, as no database stores them."""
    return escape_surrogates(check_text(value, name))


def check_text(value: str, name: str) -> str:
    """The same text, whatever is in it. Raises ``BadQuery`` if it is not text."""
    if not isinstance(value, str):
        raise BadQuery(f"{name} is {show_value(value)}, not a text")
    return value


def to_optional_text(value: str | None, name: str) -> str | None:
    return None if value is None else to_text(value, name)


def to_path(value: str | Path, name: str) -> str | Path:
    """A path, or the name of a folder. Raises ``BadQuery`` for anything else."""
    if not isinstance(value, str | PurePath):
        raise BadQuery(f"{name} is {show_value(value)}, not a path")
    if "\0" in str(value):
        raise BadQuery(f"{name} is {show_value(value)}, with a NUL character in it")
    return value


def to_role(role: Role | str) -> Role:
    """The role with that name. Raises ``UnknownName``."""
    try:
        return Role(role)
    except (ValueError, TypeError):
        raise UnknownName(
            f"there is no role {show_value(role)}",
            hint="the roles are: " + ", ".join(known.value for known in Role),
        ) from None


def to_said(role: Role, text: object) -> str:
    """What was said, as text; a tool's arguments or result may be any value."""
    if isinstance(text, str):
        return text
    if text is None and role not in (Role.TOOL_CALL, Role.TOOL_RESULT):
        raise BadQuery(
            f"the text of a message by {role.value} is None",
            hint="do not record a message in which nothing is said",
        )
    return compact_json(text)


def check_messages(messages: object) -> None:
    """Refuse anything but a list; a generator, for one, can be read only once."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise BadQuery(
            f"messages is a {type(messages).__name__}, not a list",
            hint="pass a list of messages",
        )


def to_query(query: str) -> str:
    """The query without the spaces around it; it must not be empty or too long."""
    if not isinstance(query, str):
        raise BadQuery(f"the query is {show_value(query)}, not a text")
    if not query.strip():
        raise BadQuery("the query is empty", hint="say what to search for")
    if len(query) > MAX_QUERY_CHARS:
        raise BadQuery(
            f"the query has {len(query):,} characters, "
            f"but may have at most {MAX_QUERY_CHARS:,}",
            hint="search for the words that matter",
        )
    # JSON can hold an unpaired surrogate, but UTF-8 cannot.
    return replace_surrogates(query.strip())


def to_limit(limit: int) -> int:
    number = to_number(limit, "limit")
    if number < 1:
        raise BadQuery(f"limit is {show_value(number)}, but must be 1 or more")
    return min(number, _MOST)


def to_number(value: int, name: str) -> int:
    if not isinstance(value, bool):
        with suppress(TypeError):
            return operator.index(value)
    raise BadQuery(f"{name} is {show_value(value)}, not a whole number")


def to_max_tokens(value: int) -> int:
    """The maximum number of tokens of a text: at least 0, and not absurdly large."""
    return min(max(to_number(value, "max_tokens"), 0), _MOST_TOKENS)


class _CheckedCount(FrozenStruct):
    """A caller's function that counts tokens, checked each time it answers."""

    count: CountTokens

    def __call__(self, text: str) -> int:
        number = to_number(self.count(text), "the answer of count_tokens")
        if number < 0:
            raise BadQuery("the answer of count_tokens is less than 0")
        return number


def to_counter(count_tokens: CountTokens | None) -> CountTokens:
    """How to count tokens: with the caller's function, else by an upper bound."""
    if count_tokens is None:
        return most_tokens
    if count_tokens is most_tokens or isinstance(count_tokens, _CheckedCount):
        return count_tokens
    if not callable(count_tokens):
        raise BadQuery(
            f"count_tokens is {show_value(count_tokens)}, not a function",
            hint="pass a function that returns the number of tokens in a text",
        )
    return _CheckedCount(count_tokens)


def check_keys(keys: Collection[str] | None, name: str) -> None:
    """Raise ``BadQuery`` unless the argument is None or a collection of texts."""
    if keys is None:
        return
    if not isinstance(keys, Collection) or isinstance(keys, str | bytes):
        raise BadQuery(f"{name} is {show_value(keys)}, not a list of texts")


def check_function(value: object, name: str) -> None:
    """Raise ``BadQuery`` unless the argument is None or a function."""
    if value is not None and not callable(value):
        raise BadQuery(f"{name} is {show_value(value)}, not a function")


# -- which days -----------------------------------------------------------------------


class Period(FrozenStruct):
    """A stretch of time in microseconds, up to but not including its end.

    ``days`` are the same days in UTC, from the start of the first to the end of the
    last: for things of which only the day is known, which is the same in every zone.
    """

    first: int | None = None
    end: int | None = None
    days: tuple[int | None, int | None] = (None, None)

    @property
    def why_empty(self) -> str:
        """Why the period is empty; an empty text if it is not."""
        if self.first is None or self.end is None or self.first < self.end:
            return ""
        first, last = _local_day(self.first), _local_day(self.end - 1)
        return f"the first day, {first}, is after the last, {last}"


EVER = Period()


def to_period(
    date_from: date | str | None,
    date_to: date | str | None,
    days: int,
    *,
    now: datetime,
) -> Period:
    """From one local day to another, both included; with ``days``, only the last N.

    Today is one of these days. If a text names several days, ``date_from`` is the first
    of them and ``date_to`` the last.
    """
    today = now.astimezone().date()
    first_days = []
    if (named := to_days(date_from, "date_from", today=today)) is not None:
        first_days.append(named.first)
    if (recent := find_first_of_last(days, today=today)) is not None:
        first_days.append(recent)
    first = max(first_days, default=None)
    last = to_days(date_to, "date_to", today=today)
    after = None if last is None else last.last + timedelta(days=1)
    return Period(
        None if first is None else start_of_day(first),
        None if after is None else start_of_day(after),
        (
            None if first is None else start_in_utc(first),
            None if after is None else start_in_utc(after),
        ),
    )


def find_first_of_last(days: int, *, today: date) -> date | None:
    """The first of the last N local days, today included; None if N is 0.

    If N is so large that there is no such date, the result is None, too.
    """
    count = to_number(days, "days")
    if count > 0:
        with suppress(OverflowError):
            return _clamp(today - timedelta(days=count - 1))
    return None


def to_days(value: date | str | None, name: str, *, today: date) -> DayRange | None:
    """The local days that an argument means: a date, a time, ISO text, or words.

    The words are those of a query: ``yesterday``, ``last week``, ``8 May 2023``.
    """
    if value is None:
        return None
    found = _parse(value, name, today)
    if isinstance(found, DayRange):
        return DayRange(_clamp(found.first), _clamp(found.last))
    if isinstance(found, datetime):
        with suppress(OverflowError, ValueError):
            found = found if found.tzinfo is None else found.astimezone()
        found = found.date()
    return DayRange(_clamp(found), _clamp(found))


def to_day(value: date | str | None, name: str, *, today: date) -> date | None:
    """The first of the days that an argument means."""
    days = to_days(value, name, today=today)
    return None if days is None else days.first


def to_date(value: date | str, name: str) -> date:
    """The day that a date, a time or ISO text names. Raises ``BadQuery``."""
    found = parse_iso(value) if isinstance(value, str) else value
    if not isinstance(found, date):
        hint = "write it as 2026-02-25"
        raise BadQuery(f"{name} is {show_value(value)}, not a date", hint=hint)
    return found.date() if isinstance(found, datetime) else found


def to_instant(value: date | str | None, name: str, *, today: date) -> datetime | None:
    """A time in UTC; days mean their first moment, times without a zone are local."""
    if value is None:
        return None
    found = _parse(value, name, today)
    if isinstance(found, DayRange):
        found = found.first
    if not isinstance(found, datetime):
        found = datetime.combine(_clamp(found), time.min)
    # ValueError: the very first days of the calendar, in a zone ahead of UTC.
    with suppress(OverflowError, ValueError):
        return found.astimezone(UTC)
    return found.replace(tzinfo=UTC)


def to_instants(
    since: date | str | None, until: date | str | None, days: int, *, today: date
) -> tuple[datetime | None, datetime | None]:
    """The start of a period and its end, excluded; or, with ``days``, the last N days.

    Today is one of these days. Raises ``BadQuery`` if no time is left in between.
    """
    first = to_instant(since, "since", today=today)
    if (recent := find_first_of_last(days, today=today)) is not None:
        of_days = to_instant(recent, "days", today=today)
        first = max(filter(None, (first, of_days)), default=None)
    last = to_days(until, "until", today=today)
    if last is None:
        return first, None
    end = to_instant(last.last + timedelta(days=1), "until", today=today)
    if first is not None and end is not None and first >= end:
        raise BadQuery(
            f"the period is empty: the first day, {first.astimezone().date()}, "
            f"is after the last, {last.last}"
        )
    return first, end


def to_sent_at(value: datetime) -> Moment:
    """When something was said. Raises ``BadQuery`` for a time that cannot be stored."""
    if not isinstance(value, datetime):
        raise BadQuery(f"sent_at is {show_value(value)}, not a datetime")
    with suppress(OverflowError, ValueError, OSError):
        moment = to_moment(value)
        # Then it is a valid date in every zone.
        if MINYEAR < moment.at.year < MAXYEAR:
            return moment
    raise BadQuery(f"sent_at is {show_value(value)}, too far from today")


def _parse(value: date | str, name: str, today: date) -> date | DayRange:
    if isinstance(value, date):
        return value
    found = None
    if isinstance(value, str):
        # It has many patterns, which are needed only here.
        from backstory.text.dates import parse_days

        found = parse_iso(value) or parse_days(value, today=today)
    if found is None:
        raise BadQuery(f"{name} is {show_value(value)}, not a date", hint=DATE_HINT)
    return found


def _clamp(day: date) -> date:
    return min(max(day, _FIRST_DAY), _LAST_DAY)


def _local_day(microseconds: int) -> date:
    return from_microseconds(microseconds).at.astimezone().date()
