"""What makes a session due: it ends, pauses, goes quiet, or continues on another day.

A program must not fail because of a daily log, so errors are only logged here, and kept
for the status.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from backstory.errors import BackstoryError
from backstory.store.base.history import HistoryStore, find_exactly_named
from backstory.system.loggers import lazy_logger
from backstory.text.arguments import to_optional_text, to_text
from backstory.values.history import Session

logger = lazy_logger(__name__)

# Reading continues every second; sessions do not go quiet that quickly.
_QUIET_CHECK = timedelta(minutes=1)

# Host and native id.
SessionKey = tuple[str, str]
FindSessions = Callable[[], Iterable[Session]]


class Triggers:
    """Marks sessions as due.

    ``mark_due`` returns whether there is anything to summarize; ``mark_quiet`` marks
    all sessions that are quiet; ``list_recorded`` lists the sessions that this process
    recorded, latest last. ``on_pause`` is called when the program ends or leaves
    sessions.
    """

    def __init__(
        self,
        history: HistoryStore,
        *,
        mark_due: Callable[[Session, str], bool],
        mark_quiet: Callable[[], None],
        list_recorded: Callable[[], list[SessionKey]],
        on_pause: Callable[[], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._history = history
        self._mark_due = mark_due
        self._mark_quiet = mark_quiet
        self._list_recorded = list_recorded
        self._on_pause = on_pause
        self._clock = clock
        self._next_quiet_check: datetime | None = None
        # What could not be marked; the next trigger tries again.
        self._missed: list[tuple[str, FindSessions]] = []
        self.problem = ""

    def mark_one(self, cause: str, session: str | None) -> bool:
        """Mark the session with that name, or else the one recorded last."""
        self._on_pause()
        if session is None:
            return self._mark_recorded(cause, self._list_recorded()[-1:])
        name = to_text(session, "session")
        return self._mark(cause, lambda: find_exactly_named(self._history, name))

    def mark_all(self, cause: str, *, except_for: str | None = None) -> bool:
        """Mark all sessions recorded here, except for one that continues."""
        self._on_pause()
        name = to_optional_text(except_for, "session")
        others = [key for key in self._list_recorded() if key[1] != name]
        return self._mark_recorded(cause, others)

    def mark_day_change(self, session: Session) -> bool:
        return self._mark("day change", lambda: [session])

    def mark_quiet(self) -> None:
        """Now and then, mark the sessions in which nothing was said for a while."""
        now = self._clock()
        if self._next_quiet_check is not None and now < self._next_quiet_check:
            return
        self._next_quiet_check = now + _QUIET_CHECK
        try:
            self._mark_quiet()
        except BackstoryError as exc:
            logger.warning("quiet sessions could not be marked as due: %s", exc)

    def _mark_recorded(self, cause: str, keys: Iterable[SessionKey]) -> bool:
        return self._mark(
            cause,
            lambda: [
                known
                for host, native_id in keys
                for known in find_exactly_named(self._history, f"{host}/{native_id}")
                if (known.host, known.native_id) == (host, native_id)
            ],
        )

    def _mark(self, cause: str, find: FindSessions) -> bool:
        waiting, self._missed = self._missed, []
        for missed_cause, find_missed in waiting:
            self._try_to_mark(missed_cause, find_missed)
        return self._try_to_mark(cause, find)

    def _try_to_mark(self, cause: str, find: FindSessions) -> bool:
        try:
            marked = [self._mark_due(session, cause) for session in find()]
        except BackstoryError as exc:
            logger.warning("a session could not be marked as due: %s", exc)
            self._missed.append((cause, find))
            self.problem = str(exc)
            return False
        if not self._missed:
            self.problem = ""
        return any(marked)
