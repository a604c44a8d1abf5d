"""Count sessions by day, agent program, project and hour."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta

from backstory.errors import StoreDamaged
from backstory.search.subagents import nest_subagents
from backstory.store.base.history import HistoryStore
from backstory.values.history import Session
from backstory.values.moments import from_microseconds
from backstory.values.statistics import HOURS, DayCount, GroupCount, Statistics

# A year, and enough days to have whole weeks.
WEEKS_OF_A_YEAR = 53
_HOURS_DAMAGED = "the hours are not known: the history is damaged"


def count_statistics(
    history: HistoryStore,
    sessions: Sequence[Session],
    *,
    warm_ups: int = 0,
    first: date | None,
    last: date | None,
) -> Statistics:
    """Count sessions that were last active from ``first`` to ``last``.

    ``warm_ups`` is how many were left out of ``sessions``. Without either day, count
    those of the year up to the latest session, in whole weeks beginning on Mondays.
    """
    days = count_days(sessions)
    if first is None and last is None and days:
        first, last = start_of_year(max(days)), max(days)
    within = {
        day: count
        for day, count in days.items()
        if (first is None or day >= first) and (last is None or day <= last)
    }
    chosen = [each for each in sessions if day_of(each) in within]
    counted = _count_conversations(sessions)
    hours, notices = _count_hours(history, chosen)
    total = sum(count.sessions for count in within.values())
    return Statistics(
        first=first or min(within, default=None),
        last=last or max(within, default=None),
        sessions=total,
        messages=sum(count.messages for count in within.values()),
        days=tuple(within[day] for day in sorted(within)),
        hosts=_group(chosen, counted, lambda session: session.host),
        projects=_group(chosen, counted, lambda session: session.project),
        hours=hours,
        other_sessions=len(counted) - total,
        left_out_sessions=len(sessions) - len(counted) + warm_ups,
        notices=notices,
    )


def start_of_year(last: date) -> date:
    """The Monday on which the year up to a day begins."""
    monday = last - timedelta(days=last.weekday())
    # Not before the first possible date.
    weeks = min(WEEKS_OF_A_YEAR - 1, (monday - date.min).days // 7)
    return monday - timedelta(weeks=weeks)


def day_of(session: Session) -> date | None:
    """The local day on which a session was last active."""
    active = session.last_active
    return None if active is None else active.in_local_zone().date()


def count_days(sessions: Sequence[Session]) -> dict[date, DayCount]:
    """The days on which sessions were last active, and what was said in these."""
    counted = _count_conversations(sessions)
    by_day: dict[date, list[Session]] = {}
    for session in sessions:
        if (day := day_of(session)) is not None:
            by_day.setdefault(day, []).append(session)
    return {day: _count_day(day, each, counted) for day, each in by_day.items()}


def _count_conversations(sessions: Sequence[Session]) -> set[int]:
    """The numbers of sessions, without subagents whose parent is among them."""
    return {each.session.session_id for each in nest_subagents(sessions)}


def _count_day(
    day: date, sessions: Sequence[Session], counted: Collection[int]
) -> DayCount:
    by_host = dict.fromkeys(sorted({each.host for each in sessions}), 0)
    for session in sessions:
        by_host[session.host] += session.session_id in counted
    return DayCount(
        day,
        sessions=sum(by_host.values()),
        messages=sum(each.message_count for each in sessions),
        projects=len({each.project for each in sessions if each.project}),
        sessions_by_host=by_host,
    )


def _group(
    sessions: Iterable[Session],
    counted: Collection[int],
    key: Callable[[Session], str | None],
) -> tuple[GroupCount, ...]:
    groups: dict[str | None, list[Session]] = {}
    for session in sessions:
        groups.setdefault(key(session), []).append(session)
    counts = [
        GroupCount(
            name,
            sum(each.session_id in counted for each in group),
            sum(each.message_count for each in group),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(counts, key=lambda c: (-c.sessions, -c.messages, c.name or "")))


def _count_hours(
    history: HistoryStore, sessions: Iterable[Session]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The messages of sessions by the local hour, and notices."""
    try:
        by_time = history.count_by_quarter_hour([each.session_id for each in sessions])
    except StoreDamaged:
        return (0,) * HOURS, (_HOURS_DAMAGED,)
    return _to_hours(by_time), ()


def _to_hours(by_quarter_hour: Mapping[int, int]) -> tuple[int, ...]:
    hours = [0] * HOURS
    for start, number in by_quarter_hour.items():
        # The offset of every zone is a multiple of a quarter of an hour.
        hours[from_microseconds(start).in_local_zone().hour] += number
    return tuple(hours)
