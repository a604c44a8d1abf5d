"""What makes a session due: it ends, pauses, or continues on another day.

A program must not fail because of a daily log, so errors are only logged here.
"""

import logging
from collections.abc import Callable, Iterable

from backstory.errors import BackstoryError
from backstory.store.base.history import HistoryStore, find_exactly_named
from backstory.text.arguments import to_optional_text, to_text
from backstory.values.history import Session

logger = logging.getLogger(__name__)

# Host and native id.
SessionKey = tuple[str, str]


class Triggers:
    """Marks sessions as due.

    ``mark_due`` returns whether there is anything to summarize; ``list_recorded`` lists
    the sessions that this process recorded, the latest last.
    """

    def __init__(
        self,
        history: HistoryStore,
        mark_due: Callable[[Session, str], bool],
        list_recorded: Callable[[], list[SessionKey]],
    ) -> None:
        self._history = history
        self._mark_due = mark_due
        self._list_recorded = list_recorded

    def mark_one(self, cause: str, session: str | None) -> bool:
        """Mark the session of that name, or else the one recorded last."""
        if session is None:
            return self._mark_recorded(cause, self._list_recorded()[-1:])
        name = to_text(session, "session")
        return self._mark(cause, lambda: find_exactly_named(self._history, name))

    def mark_all(self, cause: str, *, except_for: str | None = None) -> bool:
        """Mark all sessions recorded here, except for one that continues."""
        name = to_optional_text(except_for, "session")
        others = [key for key in self._list_recorded() if key[1] != name]
        return self._mark_recorded(cause, others)

    def mark_day_change(self, session: Session) -> bool:
        return self._mark("day change", lambda: [session])

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

    def _mark(self, cause: str, find: Callable[[], Iterable[Session]]) -> bool:
        try:
            marked = [self._mark_due(session, cause) for session in find()]
            return any(marked)
        except BackstoryError as exc:
            logger.warning("a session could not be marked as due: %s", exc)
            return False
