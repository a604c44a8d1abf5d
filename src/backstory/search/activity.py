"""Answer what was worked on: with the sessions of some days, by day and project."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby
from pathlib import PureWindowsPath

from backstory.search.request import Request
from backstory.search.sessions import list_sessions
from backstory.search.warm_ups import find_warm_ups
from backstory.store.base.history import (
    HistoryStore,
    SessionFilter,
    find_exactly_named,
)
from backstory.store.base.index import (
    ActiveSession,
    Note,
    SearchIndex,
    UnitFilter,
)
from backstory.text.cut import one_line
from backstory.text.query import asks_what_was_done, find_asked_name
from backstory.text.words import fold
from backstory.values.activity import (
    Activity,
    DayActivity,
    ProjectActivity,
    SessionActivity,
)
from backstory.values.history import Session, SessionKind
from backstory.values.hits import HitSource
from backstory.values.moments import (
    from_microseconds,
    start_in_utc,
    start_of_day,
)
from backstory.values.structs import Struct, replace
from backstory.values.units import MESSAGES, Container, SessionRef, UnitKind

# More than ten years; nobody reads an overview of more.
_MAX_DAYS = 4_000
# How many sessions are listed, and how many days, if each has only one.
_MAX_SESSIONS = 50
_MAX_LOG_UNITS = 500
_MAX_HEADINGS = 5
_HEADLINE_CHARS = 100
# Subagents are never nested deeper than this.
_MAX_DEPTH = 20
_DAY = timedelta(days=1)


class _Part(Struct):
    """The part of a session, and of its subagents, that belongs to one day."""

    session: Session
    messages: int
    first_at: int
    last_at: int

    def add(self, active: ActiveSession) -> None:
        self.messages += active.messages
        self.first_at = min(self.first_at, active.first_at)
        self.last_at = max(self.last_at, active.last_at)


def find_activity(
    request: Request, history: HistoryStore, index: SearchIndex, *, now: datetime
) -> Activity | None:
    """What was done on the days that a request asks for.

    None if it asks for anything else.
    """
    is_limited = request.period.first is not None
    if not request.sources & {HitSource.MESSAGE, HitSource.SESSION}:
        return None
    today = now.astimezone().date()
    is_about_all = asks_what_was_done(request.query, on_given_days=is_limited)
    if not is_about_all:
        if not (request.query.days or is_limited):
            return None
        narrowed = _narrow_to_project(request, history, today)
        if narrowed is None:
            return None
        request = narrowed
    days = _list_days(request, today=today)
    spans = [(start_of_day(day), start_of_day(day + _DAY)) for day in days]
    where = replace(request.to_filter(), kinds=MESSAGES)
    active = index.count_by_session(spans, where)
    by_day = {
        days[number]: parts
        for number, parts in _group(active, _Roots(history, active).find).items()
    }
    if not by_day and not is_about_all:
        return None  # elsewhere, something may have been said on those days
    return _to_overview(by_day, history, _find_logs(request, index, by_day))


def _to_overview(
    by_day: Mapping[date, Sequence[_Part]],
    history: HistoryStore,
    logs: Mapping[date, tuple[str, ...]],
) -> Activity:
    listed = list(by_day)[:_MAX_SESSIONS]
    most = _share([len(by_day[day]) for day in listed])
    chosen = {day: _choose(by_day[day], most) for day in listed}
    names = history.short_ids(
        {part.session.session_id for parts in chosen.values() for part in parts}
    )
    return Activity(
        tuple(
            DayActivity(
                day,
                _by_project(parts, names),
                logs.get(day, ()),
                len(by_day[day]) - len(parts),
            )
            for day, parts in chosen.items()
        ),
        len(by_day) - len(listed),
    )


def _share(counts: Sequence[int]) -> int:
    """How many sessions of each day can be listed: quiet days leave room for others."""
    most = 1
    while most < max(counts, default=0) and (
        sum(min(count, most + 1) for count in counts) <= _MAX_SESSIONS
    ):
        most += 1
    return most


def _narrow_to_project(
    request: Request, history: HistoryStore, today: date
) -> Request | None:
    """The request, if it asks what was done in a project, for this project alone."""
    asked = find_asked_name(
        request.query,
        today=today,
        on_given_days=request.period.first is not None,
    )
    if asked is None:
        return None
    name, query = asked
    folders = map(PureWindowsPath, history.list_projects())
    project = next((each.name for each in folders if fold(each.name) == name), None)
    if project is None:
        return None
    found = list_sessions(history, SessionFilter(), project=project)
    containers: frozenset[Container] = frozenset(
        SessionRef(session.session_id) for session in found
    )
    if request.containers is not None:
        containers &= request.containers
    return replace(request, query=query, containers=containers)


# -- days ---


def _list_days(request: Request, *, today: date) -> list[date]:
    """The days that are asked for, newest first; future days are left out."""
    period = request.period
    first = None if period.first is None else _local_day(period.first)
    last = today if period.end is None else min(today, _local_day(period.end - 1))
    if not request.query.days and first is not None:
        return _days_between(first, last)
    named = {
        day
        for days in request.query.days
        for day in _days_between(
            max(days.first, first or days.first), min(days.last, last)
        )
    }
    return sorted(named, reverse=True)[:_MAX_DAYS]


def _days_between(first: date, last: date) -> list[date]:
    count = min((last - first).days + 1, _MAX_DAYS)
    return [last - number * _DAY for number in range(count)]


def _local_day(microseconds: int) -> date:
    return from_microseconds(microseconds).in_local_zone().date()


# -- sessions ---


class _Roots:
    """Finds the session that a person sees: a subagent's is its parent's.

    Warm-ups are none: nobody asked for anything in them.
    """

    def __init__(self, history: HistoryStore, active: Iterable[ActiveSession]) -> None:
        self._history = history
        self._sessions = history.get_sessions({each.session_id for each in active})
        self._warm_ups = find_warm_ups(history, self._sessions.values())
        self._by_name: dict[tuple[str, str], Session | None] = {
            (each.host, each.native_id): each for each in self._sessions.values()
        }

    def find(self, session_id: int) -> Session | None:
        session = self._sessions.get(session_id)
        if session is None or session.kind is not SessionKind.CONVERSATION:
            return None
        if session_id in self._warm_ups:
            return None
        for _ in range(_MAX_DEPTH):
            parent = self._find_parent(session)
            if parent is None:
                break
            session = parent
        return session

    def _find_parent(self, session: Session) -> Session | None:
        if session.parent_id is None:
            return None
        key = (session.host, session.parent_id)
        if key not in self._by_name:
            found = find_exactly_named(self._history, "/".join(key))
            self._by_name[key] = found[0] if found else None
        return self._by_name[key]


def _group(
    active: Iterable[ActiveSession], find_root: Callable[[int], Session | None]
) -> dict[int, list[_Part]]:
    """The sessions of each day on which there were any, by the day's number."""
    by_day: dict[int, dict[int, _Part]] = {}
    for each in active:
        root = find_root(each.session_id)
        if root is None:
            continue
        parts = by_day.setdefault(each.span, {})
        part = parts.get(root.session_id)
        if part is None:
            parts[root.session_id] = _Part(
                root, each.messages, each.first_at, each.last_at
            )
        else:
            part.add(each)
    return {number: list(parts.values()) for number, parts in by_day.items()}


def _choose(parts: Sequence[_Part], limit: int) -> list[_Part]:
    """The sessions in which most was said."""
    return sorted(parts, key=lambda part: -part.messages)[:limit]


def _by_project(
    parts: Iterable[_Part], names: Mapping[int, str]
) -> tuple[ProjectActivity, ...]:
    projects: dict[str | None, list[_Part]] = {}
    for part in sorted(parts, key=lambda part: part.first_at):
        projects.setdefault(part.session.project, []).append(part)
    busiest = sorted(
        projects.items(), key=lambda item: -sum(part.messages for part in item[1])
    )
    return tuple(
        ProjectActivity(project, tuple(_to_activity(part, names) for part in parts))
        for project, parts in busiest
    )


def _to_activity(part: _Part, names: Mapping[int, str]) -> SessionActivity:
    session = part.session
    return SessionActivity(
        session,
        names.get(session.session_id, session.native_id),
        part.messages,
        from_microseconds(part.first_at),
        from_microseconds(part.last_at),
    )


# -- daily logs ---


def _find_logs(
    request: Request, index: SearchIndex, days: Collection[date]
) -> dict[date, tuple[str, ...]]:
    """The headings of the daily logs, which are about all projects."""
    is_narrow = request.containers is not None
    if not days or is_narrow or HitSource.DAILY_LOG not in request.sources:
        return {}
    bounds = (start_in_utc(min(days)), start_in_utc(max(days) + _DAY))
    where = UnitFilter(frozenset({UnitKind.DAILY_LOG}), days=bounds)
    found = index.get_units(index.list_newest(where, _MAX_LOG_UNITS)).values()
    notes = index.get_notes([unit.unit_id for unit in found])
    ordered = sorted(found, key=lambda unit: (unit.said_at or 0, unit.position))
    logs = {}
    for said_at, units in groupby(ordered, key=lambda unit: unit.said_at):
        if said_at is None:
            continue
        headings = dict.fromkeys(
            _headline(notes[unit.unit_id]) for unit in units if unit.unit_id in notes
        )
        day = from_microseconds(said_at).at.date()
        logs[day] = tuple(filter(None, headings))[:_MAX_HEADINGS]
    return logs


def _headline(note: Note) -> str:
    """The heading below the log's title, else how its text begins."""
    below_title = note.heading.split(" > ")[1:]
    return one_line(below_title[0] if below_title else note.text, _HEADLINE_CHARS)
