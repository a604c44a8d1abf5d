"""What a server does beside answering: hooks, reading what is new, a warm model."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from backstory.errors import BackstoryError
from backstory.system.worker import reap_workers

if TYPE_CHECKING:
    from backstory.hooks.server import HookServer
    from backstory.memory import Memory

logger = logging.getLogger(__name__)

# After the first answer, a client asks for more: that comes first.
_QUIET_S = 0.5
# How often to look for what is new. A search looks by itself as well.
_EVERY_S = 60.0
# How often to look for workers that have ended.
_REAP_EVERY_S = 5.0


class Upkeep:
    """The background work of one server, from its first answer until it ends."""

    def __init__(
        self,
        memory: "Memory",
        hooks: "HookServer",
        *,
        quiet_s: float = _QUIET_S,
        every_s: float = _EVERY_S,
    ) -> None:
        self._memory = memory
        self._hooks = hooks
        self._quiet_s = quiet_s
        self._every_s = every_s
        self._is_over = threading.Event()
        # So that hooks are not answered from the moment that it is over.
        self._hooks_lock = threading.Lock()
        # A daemon, so that the process can end while it reads.
        self._thread = threading.Thread(
            target=self._work, name="backstory-upkeep", daemon=True
        )

    def start(self) -> None:
        """Begin, unless it has begun or is over."""
        if self._thread.ident is None and not self._is_over.is_set():
            with suppress(RuntimeError):  # another thread was faster
                self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        with self._hooks_lock:
            self._hooks.close()

    def _work(self) -> None:
        self._is_over.wait(self._quiet_s)
        with self._hooks_lock:
            self._do(self._hooks.start)
        self._do(self._hooks.warm_up)
        while not self._is_over.is_set():
            self._do(self._memory.read_new)
            self._wait()

    def _wait(self) -> None:
        """Wait until it is time to look for what is new, or over."""
        until = time.monotonic() + self._every_s
        while (left := until - time.monotonic()) > 0:
            if self._is_over.wait(min(left, _REAP_EVERY_S)):
                return
            reap_workers()

    def _do(self, work: Callable[[], object]) -> None:
        if self._is_over.is_set():
            return
        try:
            work()
        except BackstoryError as exc:
            # Whoever searches is told.
            logger.info("%s", exc)
        except Exception:
            logger.exception("the background work of the server failed")
