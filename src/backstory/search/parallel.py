"""Run several searches under one deadline.

Python runs one thread at a time, and searches that take a few milliseconds each lose
more by handing over to each other than they gain: side by side, those of one query took
a third more of the processor than one after the other. So they share one thread, and
only what waits for a slow one is moved to others.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from backstory.errors import StoreProblem
from backstory.system.threads import DaemonThreadPool, Future, wait_for_all
from backstory.values.structs import Struct, field

# For tasks of searches that run at once, or wait for a slow one.
_THREADS = 12
# How long a task may keep others waiting, and at most which share of the time there is.
_PATIENCE_S = 0.05
_PATIENCE_SHARE = 0.25
# How long closing waits for the threads; one may be stuck in an embedder.
_END_WAIT_S = 1.0

Found = TypeVar("Found")

# What a thread enters for each task.
_Around = Callable[[], AbstractContextManager[None]]


def _share_nothing() -> AbstractContextManager[_Around]:
    return nullcontext(nullcontext)


class Outcome(Struct, Generic[Found]):
    """What each task returned, what it raised, or the thread that it still runs in."""

    done: dict[str, Found] = field(default_factory=dict)
    failed: dict[str, StoreProblem] = field(default_factory=dict)
    late: dict[str, int | None] = field(default_factory=dict)


class Parallel:
    """Threads for searches. A task that is late is abandoned with its thread.

    Searches that do not overlap all run in the same thread: each thread has a
    connection of its own, whose cache has the pages that they read.
    """

    def __init__(
        self, share: Callable[[], AbstractContextManager[_Around]] = _share_nothing
    ) -> None:
        """``share`` is entered by whoever waits for the tasks.

        It gives what the threads enter for each task.
        """
        self._share = share
        self._threads: DaemonThreadPool | None = None
        self._pid = 0

    def close(self) -> None:
        if self._threads is not None and self._pid == os.getpid():
            self._threads.shutdown(wait_s=_END_WAIT_S)

    def run(
        self, tasks: Mapping[str, Callable[[], Found]], *, until: float
    ) -> Outcome[Found]:
        """Run all tasks; wait until ``until`` on the monotonic clock."""
        with self._share() as around:
            return self._run(tasks, around, until=until)

    def _run(
        self,
        tasks: Mapping[str, Callable[[], Found]],
        around: _Around,
        *,
        until: float,
    ) -> Outcome[Found]:
        threads = self._get_threads()
        waiting = deque(tasks.items())
        started_in: dict[str, int] = {}
        futures: dict[str, Future[Found]] = {name: Future() for name in tasks}

        def work() -> None:
            while waiting:
                try:
                    name, task = waiting.popleft()
                except IndexError:  # another thread took the last one
                    return
                started_in[name] = threading.get_ident()
                _complete(futures[name], task, around)

        threads.submit(work)
        left_s = max(0.0, until - time.monotonic())
        patience_s = min(_PATIENCE_S, _PATIENCE_SHARE * left_s)
        wait_for_all(futures.values(), patience_s)
        for _ in list(waiting):
            threads.submit(work)
        wait_for_all(futures.values(), until - time.monotonic())
        # Nobody waits for those that have not even begun.
        waiting.clear()
        outcome: Outcome[Found] = Outcome()
        for name, future in futures.items():
            if not future.done():
                outcome.late[name] = started_in.get(name)
                continue
            try:
                outcome.done[name] = future.result()
            except StoreProblem as exc:
                outcome.failed[name] = exc
        if outcome.late:
            self._abandon(threads)
        return outcome

    def _get_threads(self) -> DaemonThreadPool:
        # A forked child has none of its parent's threads.
        if self._threads is None or self._pid != os.getpid():
            self._threads = DaemonThreadPool(_THREADS, "backstory-search")
            self._pid = os.getpid()
        return self._threads

    def _abandon(self, threads: DaemonThreadPool) -> None:
        """Use new threads from now on: the late ones may be stuck for a long time."""
        threads.shutdown(wait_s=0)
        if self._threads is threads:
            self._threads = None


def _complete(
    future: "Future[Found]", task: Callable[[], Found], around: _Around
) -> None:
    try:
        with around():
            result = task()
    except BaseException as exc:
        future.set_exception(exc)
    else:
        future.set_result(result)
