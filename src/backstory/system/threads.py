"""Threads that take little memory, and that Python does not wait for when it exits.

The threads of ``concurrent.futures`` are joined at exit, so one that waits for a server
would keep a program from exiting that already has its answer.
"""

import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import ctypes

Result = TypeVar("Result")

# Passes the outcome of a task to whoever waits for it.
_Tell = Callable[[], None]
_Task = Callable[[], _Tell]
_Inbox = queue.SimpleQueue[_Task | None]

# How long a thread waits for a task before it ends, unless it is the last one.
_IDLE_S = 30.0

# An option of glibc's mallopt, and its value.
_M_ARENA_MAX = -8
_HEAPS = 2
# Set once heaps are shared.
_c_library: "ctypes.CDLL | None" = None


def count_cores() -> int:
    """How many cores this process may use; in a container, often not all."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Future(Generic[Result]):
    """The outcome of a task, once it is done.

    The one of ``concurrent.futures`` takes 3 ms to import, with all that it needs.
    """

    _result: Result

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._is_done = False
        # Held until the task is done.
        self._doing = threading.Lock()
        self._doing.acquire()

    def done(self) -> bool:
        return self._is_done

    def set_result(self, result: Result) -> None:
        self._result = result
        self._end()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._end()

    def _end(self) -> None:
        self._is_done = True
        self._doing.release()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the task is done, or the time is up."""
        if self._is_done:
            return
        if self._doing.acquire(timeout=-1 if timeout_s is None else timeout_s):
            # Passed on to whoever else waits.
            self._doing.release()

    def result(self) -> Result:
        """What the task returned; waits for it. Raises what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._result


def wait_for_all(futures: Iterable[Future[Result]], timeout_s: float) -> None:
    """Wait until all are done, or the time is up."""
    until = time.monotonic() + timeout_s
    for future in futures:
        future.wait(max(0.0, until - time.monotonic()))


class DaemonThreadPool:
    """Up to ``max_threads`` daemon threads, started when all others are busy.

    A task goes to the thread that was busy last, so tasks that never overlap all run in
    the same one; others end after some time without a task, and close what they have
    open. A task that is submitted after the shutdown gets a thread of its own.
    """

    def __init__(self, max_threads: int, name: str, *, idle_s: float = _IDLE_S) -> None:
        self._max_threads = max_threads
        self._name = name
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._started = 0
        # Where threads without a task wait for one; the one that was busy last comes
        # last.
        self._idle: list[_Inbox] = []
        # Tasks for which there was no thread.
        self._waiting: deque[_Task] = deque()
        self._is_shut_down = False

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        future: Future[Result] = Future()

        def run() -> _Tell:
            try:
                result = work()
            except BaseException as exc:
                return partial(future.set_exception, exc)
            return partial(future.set_result, result)

        with self._lock:
            if self._is_shut_down:
                self._start(lambda: run()())
            elif self._idle:
                self._idle.pop().put(run)
            elif len(self._threads) < self._max_threads:
                self._threads.add(self._start(partial(self._work, run)))
            else:
                self._waiting.append(run)
        return future

    def _start(self, work: Callable[[], None]) -> threading.Thread:
        name = f"{self._name}-{self._started}"
        self._started += 1
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def _work(self, task: "_Task | None") -> None:
        inbox: _Inbox = queue.SimpleQueue()
        while task is not None:
            tell = task()
            # Become idle before anybody learns the outcome and submits the next task.
            self._be_ready(inbox)
            tell()
            # The outcome must not be kept in memory until the next task.
            del tell, task
            task = self._wait(inbox)
        with self._lock:
            self._threads.discard(threading.current_thread())
        return_free_memory()

    def _be_ready(self, inbox: "_Inbox") -> None:
        """Have the next task, or the end, put into the inbox of a thread."""
        with self._lock:
            if self._waiting:
                inbox.put(self._waiting.popleft())
            elif self._is_shut_down:
                inbox.put(None)
            else:
                self._idle.append(inbox)

    def _wait(self, inbox: "_Inbox") -> "_Task | None":
        """The next task of a thread; None if it is to end."""
        with suppress(queue.Empty):
            return inbox.get(timeout=self._idle_s)
        with self._lock:
            if inbox in self._idle and len(self._threads) > 1:
                self._idle.remove(inbox)
                return None
        return inbox.get()

    def shutdown(self, *, wait_s: float) -> None:
        """Let each thread end after its task; wait up to ``wait_s`` for each."""
        with self._lock:
            self._is_shut_down = True
            for inbox in self._idle:
                inbox.put(None)
            self._idle.clear()
            threads = list(self._threads)
        for thread in threads:
            thread.join(wait_s)


def share_heaps() -> None:
    """Have all threads of this process share two heaps, where the system allows it.

    On Linux, every thread gets a heap of its own, which never shrinks, so a process
    with many threads takes more memory than it uses.
    """
    if sys.platform != "linux":
        return
    # Imported here because only programs that run for long need it.
    import ctypes

    global _c_library
    # Not every C library has this function.
    with suppress(OSError, AttributeError):
        _c_library = ctypes.CDLL(None)
        _c_library.mallopt(_M_ARENA_MAX, _HEAPS)


def return_free_memory() -> None:
    """Give unused memory in shared heaps back to the system, if heaps are shared.

    By itself, the C library returns only the end of a heap, and what a search used for
    a moment can be anywhere.
    """
    if _c_library is not None:
        with suppress(AttributeError):
            _c_library.malloc_trim(0)
