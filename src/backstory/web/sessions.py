"""The page of all conversations: a year of days to click on, and a list by day."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from backstory.errors import BackstoryError, BadQuery
from backstory.render.calendar import MEASURES, Calendar, describe_day, find_level
from backstory.render.format import render_day
from backstory.search.statistics import WEEKS_OF_A_YEAR, count_days, start_of_year
from backstory.search.subagents import ListedConversation, nest_subagents
from backstory.system.machine import utc_now
from backstory.text.arguments import show_name, to_days
from backstory.values.history import Session
from backstory.values.query import DayRange
from backstory.values.statistics import DayCount
from backstory.values.structs import FrozenStruct
from backstory.web.lists import list_folder_names, read_number
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

_LIMIT = 50
_MAX_LIMIT = 5_000
_FILTERS = ("host", "project", "since", "until")


class DayCell(FrozenStruct):
    """A day in the picture of a year: its place, and the sessions that ended on it."""

    count: DayCount
    week: int
    weekday: int
    level: int = 0

    @property
    def day(self) -> str:
        return self.count.day.isoformat()

    @property
    def summary(self) -> str:
        return describe_day(self.count)


class SessionsPage:
    """Shows the conversations of a host, a project and some days."""

    def __init__(self, memory: "Memory", templates: Templates) -> None:
        self._memory = memory
        self._templates = templates

    def show(self, request: "Request") -> "Response":
        given = request.query_params
        asked = {name: given.get(name, "").strip() for name in _FILTERS}
        by = given.get("by", "")
        by = by if by in MEASURES else MEASURES[0]
        limit = read_number(given.get("n", ""), _LIMIT, _MAX_LIMIT)
        everything = self._memory.sessions()
        days, wrong = read_days(asked)
        found, problem = everything, None
        try:
            if asked["host"] or asked["project"]:
                found = self._memory.sessions(
                    host=asked["host"] or None, project=asked["project"] or None
                )
        except BackstoryError as exc:
            # Such as an unknown project, which the person can correct right here.
            found, problem = [], exc
        is_wrong = any(wrong.values())
        within = [] if is_wrong else [each for each in found if _is_within(each, days)]
        listed = nest_subagents(within)
        year = list(iter_year(found, by))
        values = {
            "asked": asked,
            "problem": problem,
            "wrong": wrong,
            "days_asked": days,
            "hosts": sorted({each.host for each in everything}),
            "projects": list_folder_names(everything),
            "has_any": bool(everything),
            "total": len(listed),
            "subagents": sum(len(each.subagents) for each in listed),
            "days": group_by_day(listed[:limit]),
            "year": year,
            "months": list(iter_months(year)),
            "weeks": WEEKS_OF_A_YEAR,
            "by": by,
            "measures": {each: _to_url({**asked, "by": each}) for each in MEASURES},
            "to_day": lambda day: _to_url({**asked, "since": day, "until": day}),
            "more": _to_url({**asked, "n": str(2 * limit)}),
        }
        status = 200 if problem is None and not is_wrong else 400
        return self._templates.render("sessions.html", values, status)


class AskedDays(FrozenStruct):
    """The first and the last day that are asked for; empty for no limit."""

    since: str = ""
    until: str = ""


def read_days(asked: Mapping[str, str]) -> tuple[AskedDays, dict[str, str]]:
    """The days that an address names, and what is wrong with texts that are no days.

    Like the command, it takes dates, or words such as yesterday.
    """
    days: dict[str, DayRange] = {}
    wrong: dict[str, str] = {"since": "", "until": ""}
    today = utc_now().astimezone().date()
    for name in ("since", "until"):
        try:
            found = to_days(asked[name] or None, name, today=today)
        except BadQuery as exc:
            wrong[name] = f"'{show_name(asked[name])}' is not a date; {exc.hint}."
            continue
        if found is not None:
            days[name] = found
    return AskedDays(
        since=days["since"].first.isoformat() if "since" in days else "",
        until=days["until"].last.isoformat() if "until" in days else "",
    ), wrong


def _is_within(session: Session, days: AskedDays) -> bool:
    """Whether a session was last active on one of the days that are asked for."""
    # Days in this form sort like their texts.
    day = render_day(session.last_active, unknown="")
    if days.since and day < days.since:
        return False
    return not days.until or "" < day <= days.until


def _to_url(asked: dict[str, str]) -> str:
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"/sessions?{query}" if query else "/sessions"


def group_by_day(
    conversations: Sequence[ListedConversation],
) -> list[tuple[str, list[ListedConversation]]]:
    """Conversations below the day on which each was last active."""
    days = groupby(
        conversations,
        key=lambda each: render_day(each.session.last_active, unknown="No date"),
    )
    return [(day, list(each)) for day, each in days]


def iter_year(sessions: Sequence[Session], by: str) -> Iterator[DayCell]:
    """The days of the year up to the latest session, in whole weeks from Monday on.

    The more a day has of what ``by`` names, the higher its level.
    """
    counts = count_days(sessions)
    if not counts:
        return
    last = max(counts)
    for week, weekday, day in Calendar(start_of_year(last), last).iter_days():
        count = counts.get(day, DayCount(day))
        yield DayCell(count, week, weekday, find_level(count, by))


def iter_months(year: Sequence[DayCell]) -> Iterator[tuple[int, str]]:
    """The column in which each month of the picture begins, and the month's name."""
    if year:
        yield from Calendar(year[0].count.day, year[-1].count.day).iter_months()
