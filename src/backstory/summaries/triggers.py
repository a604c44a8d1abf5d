"""What makes a session due to be summarised: it ends, pauses, or goes on another day.

A program must not fail for want of a log: what goes wrong here is only logged.
"""

import logging
from collections.abc import Callable, Iterable

from backstory.errors import BackstoryError
from backstory.store.base.history import HistoryStore
from backstory.values.history import Session

logger = logging.getLogger(__name__)

# Host and native id.
SessionKey = tuple[str, str]


class Triggers:
    """Marks sessions as due.

    ``mark_due`` returns whether there is anything to log; ``list_recorded`` are the
    sessions that this process recorded, the latest last.
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

    def one(self, cause: str, session: str | None) -> bool:
        """The session of that name or, without one, the one recorded last."""
        if session is None:
            return self._recorded(cause, self._list_recorded()[-1:])
        return self._try(cause, lambda: self._named(session))

    def all(self, cause: str, *, but: str | None = None) -> bool:
        """All sessions recorded here, but for one that goes on."""
        others = [key for key in self._list_recorded() if key[1] != but]
        return self._recorded(cause, others)

    def day_change(self, session: Session) -> bool:
        return self._try("day change", lambda: [session])

    def _recorded(self, cause: str, keys: Iterable[SessionKey]) -> bool:
        return self._try(
            cause,
            lambda: [
                known
                for host, native_id in keys
                for known in self._named(f"{host}/{native_id}")
                if (known.host, known.native_id) == (host, native_id)
            ],
        )

    def _named(self, name: str) -> list[Session]:
        """The sessions of exactly that id, of any host; usually there is one."""
        return [
            each
            for each in self._history.find_sessions(name)
            if name in (each.native_id, f"{each.host}/{each.native_id}")
        ]

    def _try(self, cause: str, find: Callable[[], Iterable[Session]]) -> bool:
        try:
            marked = [self._mark_due(session, cause) for session in find()]
            return any(marked)
        except BackstoryError as exc:
            logger.warning("a session is not marked to be logged: %s", exc)
            return False
