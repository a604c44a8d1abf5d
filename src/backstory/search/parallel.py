"""Run several searches under one deadline.

Python runs one thread at a time, and searches that take a few milliseconds each lose
more by handing over to each other than they gain: in parallel, those of one query took
a third more processor time than one after the other. So they share one thread, and only
those that wait for a slow one are moved to other threads. If the store spends most of
their time outside Python, because it is a server or is large, a second thread runs some
of them beside the first.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Generic, TypeVar

from backstory.errors import StoreProblem
from backstory.store.base.index import LentView, NoView
from backstory.system.threads import DaemonThreadPool, Future, wait_for_all
from backstory.values.structs import Struct, field

# For tasks of simultaneous searches, and tasks that wait for a slow one.
_THREADS = 12
# How long a task may hold up others, and the maximum share of the available time.
_PATIENCE_S = 0.05
_PATIENCE_SHARE = 0.25
# How long closing waits for the threads; one may be stuck in an embedder.
_END_WAIT_S = 1.0

Found = TypeVar("Found")

# Waits for what a task needs before it begins, for at most this many seconds.
Wait = Callable[[float], None]
NONE_BESIDE: Mapping[str, Wait] = MappingProxyType({})


class Outcome(Struct, Generic[Found]):
    """What each task returned, what it raised, or the thread that it still runs in."""

    done: dict[str, Found] = field(default_factory=dict)
    failed: dict[str, StoreProblem] = field(default_factory=dict)
    late: dict[str, int | None] = field(default_factory=dict)


class Parallel:
    """Threads for searches. A task that is late is abandoned with its thread.

    Searches that do not overlap all run in the same thread, and what runs beside them
    in another one: each thread has its own connection, whose cache has the pages that
    earlier searches read.
    """

    def __init__(
        self,
        share: Callable[[], AbstractContextManager[LentView]] = lambda: nullcontext(
            NoView()
        ),
    ) -> None:
        """``share`` is entered by the thread that waits; the tasks read in its view."""
        self._share = share
        self._threads: _Threads | None = None
        self._pid = 0

    def close(self) -> None:
        if self._threads is not None and self._pid == os.getpid():
            self._threads.shutdown(wait_s=_END_WAIT_S)

    def run(
        self,
        tasks: Mapping[str, Callable[[], Found]],
        *,
        until: float,
        beside: Mapping[str, Wait] = NONE_BESIDE,
    ) -> Outcome[Found]:
        """Run all tasks; wait until ``until`` on the monotonic clock.

        If that is faster, a second thread takes those that are ``beside`` the others,
        in this order, when they can begin and nobody has taken them yet.
        """
        with self._share() as view:
            return self._run(tasks, beside, view, until=until)

    def _run(
        self,
        tasks: Mapping[str, Callable[[], Found]],
        beside: Mapping[str, Wait],
        view: LentView,
        *,
        until: float,
    ) -> Outcome[Found]:
        threads = self._get_threads()
        waiting = dict(tasks)
        started_in: dict[str, int] = {}
        futures: dict[str, Future[Found]] = {name: Future() for name in tasks}

        left_s = max(0.0, until - time.monotonic())
        patience_s = min(_PATIENCE_S, _PATIENCE_SHARE * left_s)

        def run(name: str, around: AbstractContextManager[object]) -> None:
            # Another thread may have taken it.
            task = waiting.pop(name, None)
            if task is not None:
                started_in[name] = threading.get_ident()
                _complete(futures[name], task, around)

        def work() -> None:
            for name in tasks:
                if name in waiting:
                    run(name, view.using())

        others = {name: beside[name] for name in beside if name in view.beside}

        def work_beside() -> None:
            for name, wait in others.items():
                if name in waiting:
                    wait(patience_s)
                if name in waiting:
                    with view.using_spare() as is_there:
                        if is_there:
                            run(name, nullcontext())

        if others and len(tasks) > 1:
            threads.beside.submit(work_beside)
        threads.usual.submit(work)
        wait_for_all(futures.values(), patience_s)
        for _ in list(waiting):
            threads.usual.submit(work)
        wait_for_all(futures.values(), until - time.monotonic())
        # Tasks that have not even begun are dropped.
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

    def _get_threads(self) -> "_Threads":
        # A forked child has none of its parent's threads.
        if self._threads is None or self._pid != os.getpid():
            self._threads = _Threads()
            self._pid = os.getpid()
        return self._threads

    def _abandon(self, threads: "_Threads") -> None:
        """Use new threads from now on: the late ones may be stuck for a long time."""
        threads.shutdown(wait_s=0)
        if self._threads is threads:
            self._threads = None


class _Threads:
    """Threads for the tasks, and for those that run beside them."""

    def __init__(self) -> None:
        self.usual = DaemonThreadPool(_THREADS, "backstory-search")
        self.beside = DaemonThreadPool(_THREADS, "backstory-search-beside")

    def shutdown(self, *, wait_s: float) -> None:
        for each in (self.usual, self.beside):
            each.shutdown(wait_s=wait_s)


def _complete(
    future: "Future[Found]",
    task: Callable[[], Found],
    around: AbstractContextManager[object],
) -> None:
    try:
        with around:
            result = task()
    except BaseException as exc:
        future.set_exception(exc)
    else:
        future.set_result(result)


def wait_for_nothing(_timeout_s: float) -> None:
    """For a task that can begin at once."""
