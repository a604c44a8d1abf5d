"""What was worked on, day by day: the answer to "what did I do last week?"."""

from datetime import date

from backstory.values.history import Session
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct


class SessionActivity(FrozenStruct):
    """A session on one day: how much was said in it, and from when to when.

    ``name`` is a short id of the session. What its subagents said counts as well.
    """

    session: Session
    name: str
    messages: int
    first: Moment
    last: Moment


class ProjectActivity(FrozenStruct):
    """The sessions in one folder on one day, in the order they began."""

    project: str | None
    sessions: tuple[SessionActivity, ...]


class DayActivity(FrozenStruct):
    """One local day: its busiest projects first.

    ``log`` has the headings of the daily log; ``left_out`` is the number of sessions
    that are not listed.
    """

    day: date
    projects: tuple[ProjectActivity, ...]
    log: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def sessions(self) -> int:
        """How many sessions there were, listed or not."""
        return sum(len(each.sessions) for each in self.projects) + self.left_out


class Activity(FrozenStruct):
    """The days on which something was said, newest first.

    ``left_out_days`` is the number of earlier days that are not listed.
    """

    days: tuple[DayActivity, ...] = ()
    left_out_days: int = 0
