"""The page of all conversations: a year of days to click on, and a list by day."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from backstory.errors import BackstoryError
from backstory.render.format import render_count, render_day
from backstory.search.subagents import ListedConversation, nest_subagents
from backstory.values.history import Session
from backstory.values.structs import FrozenStruct, replace
from backstory.web.lists import list_folder_names, read_number
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

_LIMIT = 50
_MAX_LIMIT = 5_000
_WEEKS = 53
# From how many on a day has more colour.
_LEVELS = {
    "conversations": (1, 2, 4, 8),
    "messages": (1, 50, 200, 800),
    "projects": (1, 2, 3, 5),
    "agents": (1, 2, 3, 4),
}
_FILTERS = ("host", "project", "since", "until")


class DayCell(FrozenStruct):
    """A day in the picture of a year: its column and row, and what ended on it."""

    day: str
    week: int
    weekday: int
    sessions: int = 0
    messages: int = 0
    projects: int = 0
    agents: tuple[str, ...] = ()
    level: int = 0

    @property
    def summary(self) -> str:
        counts = [
            render_count(self.sessions, "conversation"),
            render_count(self.messages, "message"),
            *([render_count(self.projects, "project")] if self.projects else []),
            *self.agents,
        ]
        return f"{self.day}: {', '.join(counts)}"


class SessionsPage:
    """Answers with the conversations of a host, a project and some days."""

    def __init__(self, memory: "Memory", templates: Templates) -> None:
        self._memory = memory
        self._templates = templates

    def show(self, request: "Request") -> "Response":
        given = request.query_params
        asked = {name: given.get(name, "").strip() for name in _FILTERS}
        by = given.get("by", "")
        by = by if by in _LEVELS else next(iter(_LEVELS))
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
        listed = nest_subagents([each for each in found if _is_within(each, asked)])
        year = list(iter_year(found, by))
        values = {
            "asked": asked,
            "problem": problem,
            "hosts": sorted({each.host for each in everything}),
            "projects": list_folder_names(everything),
            "total": len(listed),
            "subagents": sum(len(each.subagents) for each in listed),
            "days": group_by_day(listed[:limit]),
            "year": year,
            "months": list(iter_months(year)),
            "weeks": _WEEKS,
            "by": by,
            "measures": {each: _to_url({**asked, "by": each}) for each in _LEVELS},
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
    """The days of the year up to the latest session, whole weeks from Monday on.

    The more of what ``by`` names a day has, the higher its level.
    """
    ended: dict[str, list[Session]] = {}
    for each in sessions:
        if day := render_day(each.last_active, unknown=""):
            ended.setdefault(day, []).append(each)
    if not ended:
        return
    last = date.fromisoformat(max(ended))
    monday = last - timedelta(days=last.weekday())
    # No date is earlier than the first one.
    weeks = min(_WEEKS, (monday - date.min).days // 7 + 1)
    first = monday - timedelta(weeks=weeks - 1)
    for number in range((last - first).days + 1):
        day = (first + timedelta(days=number)).isoformat()
        cell = DayCell(day, number // 7, number % 7)
        yield _fill(cell, ended[day], by) if day in ended else cell


def iter_months(year: Sequence[DayCell]) -> Iterator[tuple[int, str]]:
    """The column in which each month of the picture begins, and the month's name."""
    for cell in year:
        first = date.fromisoformat(cell.day)
        # A name needs two columns or more.
        if first.day == 1 and cell.week < _WEEKS - 2:
            yield cell.week, first.strftime("%b")


def _fill(cell: DayCell, sessions: Sequence[Session], by: str) -> DayCell:
    roots = [each for each in sessions if not each.parent_id]
    filled = replace(
        cell,
        sessions=len(roots) or len(sessions),
        messages=sum(each.message_count for each in sessions),
        projects=len({each.project for each in sessions if each.project}),
        agents=tuple(sorted({each.host for each in sessions})),
    )
    count = {
        "conversations": filled.sessions,
        "messages": filled.messages,
        "projects": filled.projects,
        "agents": len(filled.agents),
    }[by]
    return replace(filled, level=sum(count >= least for least in _LEVELS[by]))
