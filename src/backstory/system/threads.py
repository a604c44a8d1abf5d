"""Threads that take little memory, and that Python does not wait for when it exits.

The threads of ``concurrent.futures`` are joined at exit, so one that waits for a server
would keep a program running that already has its answer.
"""

import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")

_Task = Callable[[], None]

# An option of glibc's mallopt, and its value.
_M_ARENA_MAX = -8
_HEAPS = 2


class DaemonThreadPool:
    """Up to ``max_threads`` daemon threads, started when all others are busy.

    So tasks that never overlap all run in the same thread.
    """

    def __init__(self, max_threads: int, name: str) -> None:
        self._max_threads = max_threads
        self._name = name
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        # How many threads have done their task and were not given another.
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        future: Future[Result] = Future()

        def run() -> None:
            try:
                result = work()
            except BaseException as exc:
                # Idle before anybody hears of it and submits the next task.
                self._idle.release()
                future.set_exception(exc)
            else:
                self._idle.release()
                future.set_result(result)

        if not self._idle.acquire(blocking=False):
            self._start_another()
        self._tasks.put(run)
        return future

    def _start_another(self) -> None:
        with self._lock:
            if len(self._threads) < self._max_threads:
                name = f"{self._name}-{len(self._threads)}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def shutdown(self, *, wait_s: float) -> None:
        """Let each thread end after its task; wait up to ``wait_s`` for each."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join(wait_s)


def share_heaps() -> None:
    """Have all threads of this process share two heaps, where the system allows it.

    On Linux, every thread gets a heap of its own, which keeps what the thread needed
    at most, so a process with many threads takes more than it uses.
    """
    if sys.platform != "linux":
        return
    # Only programs that run for long need it.
    import ctypes

    # Not every C library has it.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)
