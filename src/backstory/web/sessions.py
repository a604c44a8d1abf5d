"""The page of all conversations: a year of days to click on, and a list by day."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from backstory.errors import BackstoryError
from backstory.render.format import render_day
from backstory.values.history import Session
from backstory.web.search import list_folder_names, read_number
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

_LIMIT = 50
_MAX_LIMIT = 5_000
_WEEKS = 53
# From how many conversations on a day is darker.
_LEVELS = (1, 2, 4, 8)
_FILTERS = ("host", "project", "since", "until")


@dataclass(frozen=True, slots=True)
class DayCell:
    """A day in the picture of a year: its column and row, and how much was said."""

    day: str
    week: int
    weekday: int
    sessions: int

    @property
    def level(self) -> int:
        return sum(self.sessions >= least for least in _LEVELS)


class SessionsPage:
    """Answers with the conversations of a host, a project and some days."""

    def __init__(self, memory: "Memory", templates: Templates) -> None:
        self._memory = memory
        self._templates = templates

    def show(self, request: "Request") -> "Response":
        given = request.query_params
        asked = {name: given.get(name, "").strip() for name in _FILTERS}
        limit = read_number(given.get("n", ""), _LIMIT, _MAX_LIMIT)
        everything = self._memory.sessions()
        found, problem = everything, None
        try:
            if asked["host"] or asked["project"]:
                found = self._memory.sessions(
                    host=asked["host"] or None, project=asked["project"] or None
                )
        except BackstoryError as exc:
            # Such as an unknown project: the person corrects it right here.
            found, problem = [], exc
        listed = [each for each in found if _is_within(each, asked)]
        values = {
            "asked": asked,
            "problem": problem,
            "hosts": sorted({each.host for each in everything}),
            "projects": list_folder_names(everything),
            "total": len(listed),
            "days": group_by_day(listed[:limit]),
            "year": list(iter_year(found)),
            "weeks": _WEEKS,
            "to_day": lambda day: _to_url({**asked, "since": day, "until": day}),
            "more": _to_url({**asked, "n": str(2 * limit)}),
        }
        status = 200 if problem is None else 400
        return self._templates.render("sessions.html", values, status)


def _is_within(session: Session, asked: dict[str, str]) -> bool:
    """Whether a session was last active on one of the days that are asked for."""
    # Days in this form are in the order of their texts.
    day = render_day(session.last_active, unknown="")
    if asked["since"] and day < asked["since"]:
        return False
    return not asked["until"] or "" < day <= asked["until"]


def _to_url(asked: dict[str, str]) -> str:
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"/sessions?{query}" if query else "/sessions"


def group_by_day(sessions: Sequence[Session]) -> list[tuple[str, list[Session]]]:
    """Sessions below the day on which each was last active."""
    days = groupby(
        sessions, key=lambda each: render_day(each.last_active, unknown="No date")
    )
    return [(day, list(each)) for day, each in days]


def iter_year(sessions: Sequence[Session]) -> Iterator[DayCell]:
    """The days of the year up to the latest session, whole weeks from Monday on."""
    active = (render_day(each.last_active, unknown="") for each in sessions)
    counts = Counter(day for day in active if day)
    if not counts:
        return
    last = date.fromisoformat(max(counts))
    monday = last - timedelta(days=last.weekday())
    # No date is earlier than the first one.
    weeks = min(_WEEKS, (monday - date.min).days // 7 + 1)
    first = monday - timedelta(weeks=weeks - 1)
    for number in range((last - first).days + 1):
        day = (first + timedelta(days=number)).isoformat()
        yield DayCell(day, number // 7, number % 7, counts[day])
