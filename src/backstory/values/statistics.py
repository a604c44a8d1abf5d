"""How much was said, by day, agent program, project and hour: the year at a glance."""

from collections.abc import Mapping
from datetime import date

from backstory.values.structs import FrozenStruct, field

HOURS = 24


class DayCount(FrozenStruct):
    """The sessions that were last active on a local day.

    A subagent is not counted as a session, but what was said in it counts.
    """

    day: date
    sessions: int = 0
    messages: int = 0
    projects: int = 0
    sessions_by_host: Mapping[str, int] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The agent programs that were used."""
        return tuple(self.sessions_by_host)


class GroupCount(FrozenStruct):
    """The sessions of one agent program or project; ``name`` is None for no project."""

    name: str | None
    sessions: int = 0
    messages: int = 0


class Statistics(FrozenStruct):
    """How much was said from one local day to another, both included.

    ``days`` are those with a session, in order; ``hosts`` and ``projects`` are sorted
    by number of sessions. ``hours`` counts the messages of these sessions by the local
    hour in which they were sent, as far as that is known. ``other_sessions`` is the
    number of other sessions: earlier, later or without a date. ``left_out_sessions``
    are of subagents, or warm-ups; a ``Status`` includes them.
    """

    first: date | None = None
    last: date | None = None
    sessions: int = 0
    messages: int = 0
    days: tuple[DayCount, ...] = ()
    hosts: tuple[GroupCount, ...] = ()
    projects: tuple[GroupCount, ...] = ()
    hours: tuple[int, ...] = (0,) * HOURS
    other_sessions: int = 0
    left_out_sessions: int = 0
    notices: tuple[str, ...] = ()
