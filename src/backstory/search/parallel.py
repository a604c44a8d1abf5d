"""Run several searches at once, under one deadline."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from backstory.errors import StoreProblem
from backstory.system.threads import DaemonThreadPool

_THREADS = 4
# How long closing waits for the threads; one may be stuck in an embedder.
_END_WAIT_S = 1.0

Found = TypeVar("Found")


@dataclass(slots=True)
class Outcome(Generic[Found]):
    """What each task returned, what it raised, or the thread that it still runs in."""

    done: dict[str, Found] = field(default_factory=dict)
    failed: dict[str, StoreProblem] = field(default_factory=dict)
    late: dict[str, int | None] = field(default_factory=dict)


class Parallel:
    """Threads for searches. A task that is late is abandoned with its thread."""

    def __init__(self) -> None:
        self._threads: DaemonThreadPool | None = None
        self._pid = 0

    def close(self) -> None:
        if self._threads is not None and self._pid == os.getpid():
            self._threads.shutdown(wait_s=_END_WAIT_S)

    def run(
        self, tasks: Mapping[str, Callable[[], Found]], *, until: float
    ) -> Outcome[Found]:
        """Run all tasks at once; wait until ``until`` on the monotonic clock."""
        started_in: dict[str, int] = {}

        def work(name: str, task: Callable[[], Found]) -> Found:
            started_in[name] = threading.get_ident()
            return task()

        threads = self._get_threads()
        futures = {
            name: threads.submit(partial(work, name, task))
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
