"""Forget in time what nobody uses any more, also when nobody comes to ask for it.

One thread looks after everything that expires in this process. It sleeps until the next
thing may be due, holds on to nothing, and ends when there is nothing left.
"""

import logging
import threading
import weakref
from typing import Protocol

from backstory.system.fork_safety import reset_in_child

logger = logging.getLogger(__name__)

# A run that was used just now is not due for a while; nobody notices a second.
_SHORTEST_WAIT_S = 1.0
# Waiting takes no number that is too large, such as that of what never expires.
_LONGEST_WAIT_S = 86_400.0


class Expiring(Protocol):
    """Something that is to be forgotten when it was not used for long."""

    def expire_if_due(self) -> float:
        """Forget what is due; returns in how many seconds to look again."""
        ...


class _Watch:
    def __init__(self) -> None:
        self._all: weakref.WeakSet[Expiring] = weakref.WeakSet()
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """In a child process there is no thread yet, and nobody holds the lock."""
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, each: Expiring) -> None:
        with self._lock:
            self._all.add(each)
            self._news.set()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="backstory-expiry", daemon=True
                )
                self._thread.start()

    def _work(self) -> None:
        while (wait_s := self._look()) is not None:
            self._news.wait(min(max(wait_s, _SHORTEST_WAIT_S), _LONGEST_WAIT_S))
            self._news.clear()

    def _look(self) -> float | None:
        """See what is due; how long to wait for the next, or None if all is gone."""
        with self._lock:
            there = list(self._all)
            if not there:
                self._thread = None
                return None
        return min(map(_expire, there))


def _expire(each: Expiring) -> float:
    try:
        return each.expire_if_due()
    except Exception:
        # The others are to be looked after all the same.
        logger.exception("something that expires could not be looked at")
        return _LONGEST_WAIT_S


_WATCH = _Watch()


def watch_over(each: Expiring) -> None:
    """Have something forgotten when it is due, as long as anybody holds it."""
    _WATCH.add(each)
