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

    So tasks that never overlap all run in the same thread. A task that is submitted
    after the shutdown gets a thread of its own.
    """

    def __init__(self, max_threads: int, name: str) -> None:
        self._max_threads = max_threads
        self._name = name
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        # How many threads have done their task and were not given another.
        self._idle = threading.Semaphore(0)
        # A task is either before all the ends in the queue, or not in it.
        self._lock = threading.Lock()
        self._is_shut_down = False

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

        with self._lock:
            if self._is_shut_down:
                self._start(run)
                return future
            is_busy = not self._idle.acquire(blocking=False)
            if is_busy and len(self._threads) < self._max_threads:
                self._threads.append(self._start(self._run))
            self._tasks.put(run)
        return future

    def _start(self, work: _Task) -> threading.Thread:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def shutdown(self, *, wait_s: float) -> None:
        """Let each thread end after its task; wait up to ``wait_s`` for each."""
        with self._lock:
            self._is_shut_down = True
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
