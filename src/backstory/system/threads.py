"""Threads for work that may be left behind: nobody waits for them when Python ends.

Those of ``concurrent.futures`` are joined at the end, so one that waits for a server
would keep a program that has its answer from ending.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")

_Task = Callable[[], None]


class SideThreads:
    """A few threads that take one task after another, started as they are needed."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        future: Future[Result] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as exc:
                future.set_exception(exc)
            else:
                future.set_result(result)

        with self._lock:
            if len(self._threads) < self._count:
                name = f"{self._name}-{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._tasks.put(run)
        return future

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def end(self, *, wait_s: float) -> None:
        """Take no more tasks; wait so long for those that are running."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join(wait_s)
