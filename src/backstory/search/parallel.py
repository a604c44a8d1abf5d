"""Run several searches at once, under one deadline."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from functools import partial
from typing import Generic, TypeVar

from backstory.errors import StoreProblem
from backstory.system.threads import DaemonThreadPool
from backstory.values.structs import Struct, field

# For each kind of search, if several searches run at once.
_THREADS = 4
# How long closing waits for the threads; one may be stuck in an embedder.
_END_WAIT_S = 1.0

Found = TypeVar("Found")


class Outcome(Struct, Generic[Found]):
    """What each task returned, what it raised, or the thread that it still runs in."""

    done: dict[str, Found] = field(default_factory=dict)
    failed: dict[str, StoreProblem] = field(default_factory=dict)
    late: dict[str, int | None] = field(default_factory=dict)


class Parallel:
    """Threads for searches. A task that is late is abandoned with its thread.

    Tasks of one name run in the same thread as far as possible: each thread has a
    connection of its own, whose cache has the pages that such tasks read.
    """

    def __init__(self) -> None:
        self._threads: dict[str, DaemonThreadPool] = {}
        self._pid = 0

    def close(self) -> None:
        if self._pid == os.getpid():
            for threads in self._threads.values():
                threads.shutdown(wait_s=_END_WAIT_S)

    def run(
        self, tasks: Mapping[str, Callable[[], Found]], *, until: float
    ) -> Outcome[Found]:
        """Run all tasks at once; wait until ``until`` on the monotonic clock."""
        started_in: dict[str, int] = {}

        def work(name: str, task: Callable[[], Found]) -> Found:
            started_in[name] = threading.get_ident()
            return task()

        threads = {name: self._get_threads(name) for name in tasks}
        futures = {
            name: threads[name].submit(partial(work, name, task))
            for name, task in tasks.items()
        }
        wait(futures.values(), timeout=max(0.0, until - time.monotonic()))
        outcome: Outcome[Found] = Outcome()
        for name, future in futures.items():
            if not future.done():
                outcome.late[name] = started_in.get(name)
                continue
            try:
                outcome.done[name] = future.result()
            except StoreProblem as exc:
                outcome.failed[name] = exc
        for name in outcome.late:
            self._abandon(name, threads[name])
        return outcome

    def _get_threads(self, name: str) -> DaemonThreadPool:
        # A forked child has none of its parent's threads.
        if self._pid != os.getpid():
            self._threads = {}
            self._pid = os.getpid()
        thread_name = f"backstory-search-{name.replace(' ', '-')}"
        return self._threads.setdefault(name, DaemonThreadPool(_THREADS, thread_name))

    def _abandon(self, name: str, threads: DaemonThreadPool) -> None:
        """Use new threads from now on: the late ones may be stuck for a long time."""
        threads.shutdown(wait_s=0)
        if self._threads.get(name) is threads:
            del self._threads[name]
