"""The open memories: one for each tenant with recent requests."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from backstory.values.structs import Struct

if TYPE_CHECKING:
    from backstory.memory import Memory

logger = logging.getLogger(__name__)

# What is built for a memory when it is opened.
Built = TypeVar("Built")


class AllInUse(Exception):
    """As many memories are open as may be, and all of them are being used."""


class UsedMemory(Struct, Generic[Built], eq=False):
    """An open memory, what was built for it, and how many requests use it."""

    tenant: str
    memory: "Memory"
    built: Built
    users: int = 0
    used_at: float = 0.0


class OpenMemories(Generic[Built]):
    """Opens the memory of a tenant when it is needed, and closes it when it is idle.

    Safe to use from several threads. ``most`` is how many are open at once.
    """

    def __init__(
        self,
        open_memory: "Callable[[str], Memory]",
        build: "Callable[[Memory], Built]",
        *,
        most: int,
        idle_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_memory = open_memory
        self._build = build
        self._most = most
        self._idle_s = idle_s
        self._clock = clock
        self._lock = threading.Lock()
        # In order of use: the most recently used memory is last.
        self._open: OrderedDict[str, UsedMemory[Built]] = OrderedDict()
        # One thread opens a memory, and the others that ask for it wait.
        self._opening: dict[str, threading.Lock] = {}

    def __len__(self) -> int:
        return len(self._open)

    def take(self, tenant: str) -> UsedMemory[Built]:
        """The memory of a tenant, for a request, which has to give it back.

        Raises ``AllInUse``, or what is wrong with the memory.
        """
        with self._lock:
            if found := self._find(tenant):
                return found
            opening = self._opening.setdefault(tenant, threading.Lock())
        with opening:
            with self._lock:
                if found := self._find(tenant):
                    return found
            self._make_room()
            memory = self._open_memory(tenant)
            try:
                used = UsedMemory(tenant, memory, self._build(memory), users=1)
            except BaseException:
                memory.close()
                raise
            with self._lock:
                self._open[tenant] = used
                self._opening.pop(tenant, None)
            return used

    def _find(self, tenant: str) -> UsedMemory[Built] | None:
        used = self._open.get(tenant)
        if used is not None:
            used.users += 1
            self._open.move_to_end(tenant)
        return used

    def give_back(self, used: UsedMemory[Built]) -> None:
        """Note that a request no longer uses a memory."""
        with self._lock:
            used.users -= 1
            used.used_at = self._clock()

    def _make_room(self) -> None:
        with self._lock:
            if len(self._open) < self._most:
                return
            unused = next(
                (each for each in self._open.values() if not each.users), None
            )
            if unused is None:
                raise AllInUse
            del self._open[unused.tenant]
        _close(unused)

    def close_idle(self) -> None:
        """Close what nobody has used for a while."""
        before = self._clock() - self._idle_s
        with self._lock:
            idle = [
                each
                for each in self._open.values()
                if not each.users and each.used_at <= before
            ]
            for each in idle:
                del self._open[each.tenant]
        for each in idle:
            _close(each)

    def close(self) -> None:
        """Close all memories, including those in use."""
        with self._lock:
            left = list(self._open.values())
            self._open.clear()
        for each in left:
            _close(each)


def _close(used: UsedMemory[Built]) -> None:
    try:
        used.memory.close()
    except Exception:
        # The memory is dropped in any case.
        logger.exception("a memory could not be closed")
