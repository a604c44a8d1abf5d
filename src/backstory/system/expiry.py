"""Expire objects that have not been used for a while, even if nobody asks for them.

One thread serves every expiring object of this process. It sleeps until the next one
may be due, keeps none of them alive, and ends when there are none left.
"""

import logging
import threading
import weakref
from typing import Protocol

from backstory.system.fork_safety import reset_in_child

logger = logging.getLogger(__name__)

# An object that was just used is not due for a while, and a second late is soon enough.
_SHORTEST_WAIT_S = 1.0
# Event.wait refuses very large numbers, such as a time-to-live that means "never".
_LONGEST_WAIT_S = 86_400.0


class Expiring(Protocol):
    """Something that drops its content when it has not been used for a while."""

    def expire_if_due(self) -> float:
        """Drop what is due; return the seconds until the next look is worthwhile."""
        ...


class _ExpiryThread:
    def __init__(self) -> None:
        self._all: weakref.WeakSet[Expiring] = weakref.WeakSet()
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """In a child process there is no thread yet, and nobody holds the lock."""
        self._lock = threading.Lock()
        self._was_added = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, each: Expiring) -> None:
        with self._lock:
            self._all.add(each)
            self._was_added.set()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="backstory-expiry", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while (wait_s := self._expire_all()) is not None:
            self._was_added.wait(min(max(wait_s, _SHORTEST_WAIT_S), _LONGEST_WAIT_S))
            self._was_added.clear()

    def _expire_all(self) -> float | None:
        """Expire what is due; return how long to wait, or None if nothing is left."""
        with self._lock:
            alive = list(self._all)
            if not alive:
                self._thread = None
                return None
        return min(map(_expire, alive))


def _expire(each: Expiring) -> float:
    try:
        return each.expire_if_due()
    except Exception:
        # One failure must not keep the others from expiring.
        logger.exception("an expiring object could not be checked")
        return _LONGEST_WAIT_S


_EXPIRY_THREAD = _ExpiryThread()


def expire_when_due(each: Expiring) -> None:
    """Call ``expire_if_due`` when it is due, for as long as the object is alive."""
    _EXPIRY_THREAD.add(each)
