"""Days named in a text: ``last Tuesday``, ``8 May 2023``, ``昨天``, ``letzte Woche``.

Each way of naming a day is one row: a pattern and what it means. Where two rows match
in the same place, the longer match wins, so ``8 May 2023`` is a day and not a month. A
word with another meaning (``may``, ``march``, ``sun``) needs a neighbour to be a date.
``since`` makes any of them last until today, and two can be the ends of a range.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, timedelta

from backstory.text.patterns import lazy_pattern
from backstory.values.query import DayRange, FoundDays

# A date that matters is near the beginning; what follows is pasted text.
_READ_CHARS = 2_000

_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)


def find_days(text: str, *, today: date) -> tuple[FoundDays, ...]:
    """The days named near the beginning of a text, in order.

    An impossible date, such as 30 February, is ignored as a whole.
    """
    text = text[:_READ_CHARS]
    matches = [
        (match.end() - match.start(), match, meaning)
        for pattern, meaning in _DATE_PATTERNS
        for match in pattern.finditer(text)
    ]
    matches.sort(key=lambda row: (-row[0], row[1].start()))
    taken: list[re.Match[str]] = []
    found: list[FoundDays] = []
    for _, match, meaning in matches:
        if any(
            match.start() < one.end() and one.start() < match.end() for one in taken
        ):
            continue
        taken.append(match)
        # 30 February, or a year before the first.
        with suppress(ValueError, OverflowError):
            days = meaning(match, today)
            found.append(FoundDays(days, match.start(), match.end()))
    found.sort(key=lambda one: one.start)
    ranges = _join_ranges(text, found)
    return tuple(_until_today(text, each, today) for each in ranges)


def parse_days(text: str, *, today: date) -> DayRange | None:
    """The days that a whole text names, as an argument; None for any other text.

    It reads what ``find_days`` finds, and short forms that would not be dates within a
    sentence: ``3d``, ``2 weeks``, ``2026-02``, ``2025``, ``tue``. A number of days,
    weeks, months or years is the one day that long ago.
    """
    text = text.strip()
    if len(text) > _READ_CHARS:
        return None
    text = _LEADING_WORDS.sub("", text)
    for pattern, meaning in _ARGUMENT_WAYS:
        if match := pattern.fullmatch(text):
            with suppress(ValueError, OverflowError):
                return meaning(match, today)
            return None
    for preposition in _PREPOSITIONS:
        whole = preposition + text
        for found in find_days(whole, today=today):
            if (found.start, found.end) == (0, len(whole)):
                return found.days
    return None


def _join_ranges(text: str, found: Iterable[FoundDays]) -> list[FoundDays]:
    """The days, where two that are the ends of a range become one."""
    joined: list[FoundDays] = []
    for each in found:
        last = joined[-1] if joined else None
        whole = None if last is None else _find_range(text, last, each)
        if whole is None:
            joined.append(each)
        else:
            joined[-1] = whole
    return joined


def _find_range(text: str, one: FoundDays, other: FoundDays) -> FoundDays | None:
    sign = _RANGE_SIGN.fullmatch(text, one.end, other.start)
    before = text[max(0, one.start - _READ_BEFORE) : one.start]
    between = _BETWEEN.search(before)
    if sign is None or (sign["and"] and between is None):
        return None
    first, last = one.days.first, other.days.last
    is_weekday = not any(map(str.isdigit, text[one.start : one.end]))
    if first > last and is_weekday:
        first -= _WEEK  # on a Thursday, "Monday to Friday" ended last week
    if first > last:
        return None
    start = one.start - len(between[0]) if between else one.start
    return FoundDays(DayRange(first, last), start, other.end)


def _until_today(text: str, found: FoundDays, today: date) -> FoundDays:
    """The days; all until today if they are introduced by "since"."""
    before = text[max(0, found.start - _READ_BEFORE) : found.start]
    since = _SINCE.search(before)
    is_since = since or _SINCE_INSIDE.match(text, found.start)
    if not is_since or found.days.first > today:
        return found
    days = DayRange(found.days.first, max(found.days.last, today))
    start = found.start - len(since[0]) if since else found.start
    return FoundDays(days, start, found.end)


def find_recent(text: str) -> tuple[tuple[int, int], ...]:
    """Where the text asks for the newest rather than for the best match."""
    return tuple(found.span() for found in _RECENT.finditer(text[:_READ_CHARS]))


def day_words(day: date) -> str:
    """How people write a day, as words to index: ``2023-05-08 8 May 2023 Monday``."""
    month, weekday = _MONTHS[day.month - 1], _WEEKDAYS[day.weekday()]
    return f"{day.isoformat()} {day.day} {month} {day.year} {weekday}"


# How much of what stands before a day is read.
_READ_BEFORE = 20
# "Moved from Monday to Tuesday" names a range, "on Monday and Tuesday" two days.
_RANGE_SIGN = lazy_pattern(
    r"\s?(?:-|–|—|\b(?:to|until|till|through|bis)\b|至|到|(?P<and>\b(?:and|und)\b))\s?"
    r"(?:the )?",
    re.I,
)
_BETWEEN = lazy_pattern(r"\b(?:between|zwischen) (?:the )?\Z", re.I)
_SINCE = lazy_pattern(r"\b(?:since|seit) (?:the )?\Z", re.I)
_SINCE_INSIDE = lazy_pattern(r"(?:since|seit)\b", re.I)
_RECENT = lazy_pattern(
    r"\b(?:latest|recent|recently|newest|last time|current|currently|these days|lately"
    r"|(?:the|my|our|your) last(?! names?\b)"
    r"|zuletzt|neueste[nrsm]?|kürzlich|aktuell(?:e[nrsm]?)?|neulich"
    r"|récemment|dernièrement|recientemente|últimamente)\b"
    r"|最近|最新|目前|近来",
    re.I,
)

# -- names ---

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)
_MONTH_NUMBERS = {
    **{name.lower(): number for number, name in enumerate(_MONTHS, 1)},
    **{name[:3].lower(): number for number, name in enumerate(_MONTHS, 1)},
    "sept": 9,
}
_GERMAN_MONTH_NUMBERS = {
    "januar": 1,
    "jänner": 1,
    "februar": 2,
    "märz": 3,
    "april": 4,
    "mai": 5,
    "juni": 6,
    "juli": 7,
    "august": 8,
    "september": 9,
    "oktober": 10,
    "november": 11,
    "dezember": 12,
}
_WEEKDAY_NUMBERS = {
    **{name.lower(): number for number, name in enumerate(_WEEKDAYS)},
    **{name[:3].lower(): number for number, name in enumerate(_WEEKDAYS)},
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
_EXACT_COUNTS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
}
_VAGUE_COUNTS = {"couple": 2, "few": 3, "several": 3}
_COUNTS = {**_EXACT_COUNTS, **_VAGUE_COUNTS}


def _any_of(names: dict[str, int]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_MONTH = f"(?P<month>{_any_of(_MONTH_NUMBERS)})\\b\\.?"
_FROM_MONTH = _MONTH.replace("month", "from")
_GERMAN_MONTH = f"(?P<month>{_any_of(_GERMAN_MONTH_NUMBERS)})\\b"
_YEAR = r"(?P<year>[12][0-9]{3})(?![0-9])"
_DAY_OF_MONTH = r"(?<![0-9])(?P<day>[0-3]?[0-9])"
_FULL_WEEKDAY = "|".join(_WEEKDAYS)
_SHORT_WEEKDAY = _any_of(_WEEKDAY_NUMBERS)
# A weekday in front of its date adds nothing.
_ITS_WEEKDAY = f"(?:\\b(?:{_FULL_WEEKDAY}),? (?:the )?)?"
_COUNT = f"(?P<count>[0-9]{{1,4}}|(?:a )?couple(?: of)?|(?:a )?few|{_any_of(_COUNTS)})"

# -- meanings ---

_Meaning = Callable[[re.Match[str], date], DayRange]


def _one(day: date) -> DayRange:
    return DayRange(day, day)


def _month(year: int, month: int) -> DayRange:
    first = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    return DayRange(first, following - _DAY)


def _year(year: int) -> DayRange:
    return DayRange(date(year, 1, 1), date(year, 12, 31))


def _week_of(day: date) -> DayRange:
    monday = day - day.weekday() * _DAY
    return DayRange(monday, monday + 6 * _DAY)


def _months_before(day: date, count: int) -> date:
    """The same day of an earlier month, or that month's last day."""
    months = day.year * 12 + day.month - 1 - count
    whole = _month(months // 12, months % 12 + 1)
    return min(whole.first + (day.day - 1) * _DAY, whole.last)


def _latest(day: int, month: int, today: date) -> DayRange:
    """The latest such day up to today; for 29 February, it may be years ago."""
    for year in range(today.year, today.year - 9, -1):
        try:
            candidate = date(year, month, day)
        except ValueError:
            continue
        if candidate <= today:
            return _one(candidate)
    raise ValueError("no such day")


def _written_day(match: re.Match[str], today: date) -> DayRange:
    names = match.groupdict()
    return _one(date(int(names["year"]), int(names["month"]), int(names["day"])))


def _named_day(match: re.Match[str], today: date) -> DayRange:
    names = match.groupdict()
    day, month = int(names["day"]), _month_number(names["month"])
    if names["year"]:
        return _one(date(int(names["year"]), month, day))
    return _latest(day, month, today)


def _named_month(match: re.Match[str], today: date) -> DayRange:
    names = match.groupdict()
    month = _month_number(names["month"])
    if names.get("year"):
        return _month(int(names["year"]), month)
    return _month(today.year - (month > today.month), month)


def _named_months(match: re.Match[str], today: date) -> DayRange:
    last = _named_month(match, today)
    month = _month_number(match["from"])
    return DayRange(
        date(last.first.year - (month > last.first.month), month, 1), last.last
    )


def _days_of_month(match: re.Match[str], today: date) -> DayRange:
    last = _named_day(match, today).first
    first = last.replace(day=int(match["from"]))
    if first > last:
        raise ValueError("no such days")
    return DayRange(first, last)


def _month_number(name: str) -> int:
    if name.isdigit():
        return int(name)
    name = name.lower()
    return _MONTH_NUMBERS.get(name) or _GERMAN_MONTH_NUMBERS[name]


def _named_year(match: re.Match[str], today: date) -> DayRange:
    return _year(int(match["year"]))


def _weekday(match: re.Match[str], today: date) -> DayRange:
    """The latest such weekday before today; with "this", the one of this week."""
    number = _WEEKDAY_NUMBERS[match["weekday"].lower()]
    if match.groupdict().get("this"):
        return _one(_week_of(today).first + number * _DAY)
    days_ago = (today.weekday() - number) % 7 or 7
    return _one(today - days_ago * _DAY)


def _ago(match: re.Match[str], today: date) -> DayRange:
    """The day, week, month or year that long ago; a vague count widens it."""
    count, unit = _count(match["count"]), match["unit"].lower()
    is_vague = any(word in match["count"].lower() for word in _VAGUE_COUNTS)
    match unit:
        case "day":
            first = last = today - count * _DAY
            slack = 2 * _DAY
        case "week":
            first, last = _ends(_week_of(today - count * _WEEK))
            slack = _WEEK
        case "month":
            earlier = _months_before(today, count)
            first, last = _ends(_month(earlier.year, earlier.month))
            slack = 30 * _DAY
        case _:
            first, last = _ends(_year(today.year - count))
            slack = 365 * _DAY
    if is_vague:
        return DayRange(first - slack, min(last + slack, today))
    return DayRange(first, last)


def _since(match: re.Match[str], today: date) -> DayRange:
    count, unit = _count(match["count"]), match["unit"].lower()
    match unit:
        case "day" | "d":
            return DayRange(today - count * _DAY, today)
        case "week" | "w":
            return DayRange(today - count * _WEEK, today)
        case "month":
            return DayRange(_months_before(today, count), today)
        case _:
            return DayRange(_months_before(today, 12 * count), today)


def _day_ago(match: re.Match[str], today: date) -> DayRange:
    """The one day that many days, weeks, months or years ago."""
    return _one(_since(match, today).first)


def _count(written: str) -> int:
    if written.isdigit():
        return int(written)
    words = written.lower().split()
    return next(_COUNTS[word] for word in reversed(words) if word != "of")


def _ends(days: DayRange) -> tuple[date, date]:
    return days.first, days.last


def _days_ago(count: int) -> _Meaning:
    return lambda match, today: _one(today - count * _DAY)


def _weeks_ago(count: int) -> _Meaning:
    return lambda match, today: _week_of(today - count * _WEEK)


def _months_ago(count: int) -> _Meaning:
    def meaning(match: re.Match[str], today: date) -> DayRange:
        earlier = _months_before(today, count)
        return _month(earlier.year, earlier.month)

    return meaning


def _years_ago(count: int) -> _Meaning:
    return lambda match, today: _year(today.year - count)


def _weekend(match: re.Match[str], today: date) -> DayRange:
    """Saturday and Sunday of the latest weekend that began before today's week did."""
    saturday = _week_of(today).first + 5 * _DAY
    if match["last"]:
        saturday -= _WEEK
    return DayRange(saturday, saturday + _DAY)


# -- ways of naming days ---


def _row(pattern: str, meaning: _Meaning) -> tuple[re.Pattern[str], _Meaning]:
    return lazy_pattern(pattern, re.I), meaning


_DATE_PATTERNS = (
    # Written in figures.
    _row(
        r"(?<![0-9./-])(?P<year>[12][0-9]{3})(?P<sign>[-/.])(?P<month>[01]?[0-9])(?P=sign)"
        r"(?P<day>[0-3]?[0-9])(?![0-9])",
        _written_day,
    ),
    _row(
        r"(?<![0-9.])(?P<day>[0-3]?[0-9])\.(?P<month>[01]?[0-9])\.(?P<year>[12][0-9]{3})"
        r"(?![0-9])",
        _written_day,
    ),
    # English.
    _row(
        rf"{_ITS_WEEKDAY}{_DAY_OF_MONTH}(?:st|nd|rd|th)?(?: of|,)? {_MONTH}"
        rf"(?:,? {_YEAR})?",
        _named_day,
    ),
    _row(
        rf"{_ITS_WEEKDAY}\b{_MONTH} (?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?(?![0-9:])"
        rf"(?:,? {_YEAR})?",
        _named_day,
    ),
    _row(
        rf"(?<![0-9])(?P<from>[0-3]?[0-9])(?:st|nd|rd|th)?(?: ?[-–] ?| to | until )"
        rf"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?(?: of|,)? {_MONTH}(?:,? {_YEAR})?",
        _days_of_month,
    ),
    _row(
        rf"\b{_MONTH} (?P<from>[0-3]?[0-9])(?:st|nd|rd|th)?(?: ?[-–] ?| to | until )"
        rf"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?(?![0-9:])(?:,? {_YEAR})?",
        _days_of_month,
    ),
    _row(
        rf"\b(?:from|between) {_FROM_MONTH} (?:to|until|till|through|and) {_MONTH}"
        rf"(?:,? {_YEAR})?",
        _named_months,
    ),
    _row(rf"\b{_MONTH},? (?:of )?{_YEAR}", _named_month),
    _row(
        # Not "this may be".
        rf"\b(?:in|since|during|of|around|by|last|past|this(?! ma[yr])) {_MONTH}",
        _named_month,
    ),
    # Alone, even May and March are months.
    _row(rf"\A\W*(?P<month>{'|'.join(_MONTHS)})\W*\Z", _named_month),
    _row(rf"\b(?:in|of|during|since|from|throughout) {_YEAR}", _named_year),
    _row(r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", _days_ago(0)),
    _row(r"\b(?:yesterday|last (?:night|evening))\b", _days_ago(1)),
    _row(r"\b(?:the )?day before yesterday\b", _days_ago(2)),
    _row(r"\bthis week\b", _weeks_ago(0)),
    _row(r"\b(?:last|past|previous) week\b", _weeks_ago(1)),
    _row(r"\bweek before last\b", _weeks_ago(2)),
    _row(r"\bthis month\b", _months_ago(0)),
    _row(r"\b(?:last|past|previous) month\b", _months_ago(1)),
    _row(r"\bthis year\b", _years_ago(0)),
    _row(r"\b(?:last|past|previous) year\b", _years_ago(1)),
    _row(r"\b(?:(?P<last>last|past|previous)|this) weekend\b", _weekend),
    _row(rf"\b{_COUNT} (?P<unit>day|week|month|year)s? (?:ago|back|earlier)\b", _ago),
    _row(
        rf"\b(?:last|past|previous) {_COUNT} (?P<unit>day|week|month|year)s?\b", _since
    ),
    _row(
        rf"\b(?<!next )(?<!every )(?:last |past |on )?(?P<weekday>{_FULL_WEEKDAY})\b",
        _weekday,
    ),
    _row(rf"\b(?:last|past|on) (?P<weekday>{_SHORT_WEEKDAY})\b", _weekday),
    _row(rf"\b(?P<this>this) (?P<weekday>{_SHORT_WEEKDAY})\b", _weekday),
    # German.
    _row(
        rf"{_DAY_OF_MONTH}\.? {_GERMAN_MONTH}(?: {_YEAR})?",
        _named_day,
    ),
    _row(rf"\b(?:im|seit|vom|letzten) {_GERMAN_MONTH}(?: {_YEAR})?", _named_month),
    _row(rf"\b{_GERMAN_MONTH} {_YEAR}", _named_month),
    _row(r"\bheute\b", _days_ago(0)),
    _row(r"\bgestern\b", _days_ago(1)),
    _row(r"\bvorgestern\b", _days_ago(2)),
    _row(r"\bdiese[rn]? Woche\b", _weeks_ago(0)),
    _row(r"\b(?:letzte|vorige|vergangene)[rn]? Woche\b", _weeks_ago(1)),
    _row(r"\bdiese[nm] Monat\b", _months_ago(0)),
    _row(r"\b(?:letzten|vorigen|vergangenen|letztem) Monat\b", _months_ago(1)),
    _row(r"\b(?:letztes|voriges|vergangenes|letzten) Jahr\b", _years_ago(1)),
    # Chinese.
    _row(
        r"(?:(?P<year>[12][0-9]{3})年)?(?<![0-9])(?P<month>[01]?[0-9])月"
        r"(?P<day>[0-3]?[0-9])[日号號]",
        _named_day,
    ),
    _row(r"(?P<year>[12][0-9]{3})年(?P<month>[01]?[0-9])月", _named_month),
    _row(r"(?<![0-9])(?P<year>[12][0-9]{3})年", _named_year),
    _row(r"今天|今日", _days_ago(0)),
    _row(r"昨天|昨日|昨晚", _days_ago(1)),
    _row(r"前天", _days_ago(2)),
    _row(r"(?:这|本)(?:个)?(?:周|星期|礼拜)", _weeks_ago(0)),
    _row(r"上(?:个)?(?:周|星期|礼拜)", _weeks_ago(1)),
    _row(r"(?:这个|本)月", _months_ago(0)),
    _row(r"上(?:个)?月", _months_ago(1)),
    _row(r"今年", _years_ago(0)),
    _row(r"去年", _years_ago(1)),
)
# Short forms of arguments, which are not dates within a sentence.
_ARGUMENT_WAYS = (
    _row(r"(?P<count>[0-9]{1,5})\s*(?P<unit>d|w)(?:\s+ago)?", _day_ago),
    _row(
        rf"(?P<count>[0-9]{{1,5}}|{_any_of(_EXACT_COUNTS)})(?:(?<=[0-9])\s*|\s+)"
        r"(?P<unit>day|week|month|year)s?(?:\s+ago)?",
        _day_ago,
    ),
    _row(r"(?P<year>[12][0-9]{3})-(?P<month>[01][0-9])", _named_month),
)
# An argument is known to be a date, so it is read as if one of these preceded it.
_PREPOSITIONS = ("", "in ", "on ", "im ")
# What people write before a date out of habit.
_LEADING_WORDS = lazy_pattern(r"^(?:(?:in|on|from|since)\s+)?(?:the\s+)?", re.I)
