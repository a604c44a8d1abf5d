"""Make sure that no thread is in the middle of something at a fork or an exit.

A child process inherits memory, but no threads: a lock that another thread held stays
locked forever, in our code or deep in SQLite, and a half-made change stays half made.
So a fork waits until no thread is inside ``block_forks``, connections are closed before
it, and objects with locks get new ones in the child.

When Python ends, it ends the threads that are still running. One that returns from a
library written in C++ or Rust at that moment aborts the process. So an exit waits for
such threads as well, and lets no more in.
"""

import atexit
import os
import threading
import weakref
from contextlib import AbstractContextManager

# A fork waits no longer than this for other threads; after that, the child may get
# stuck.
_MAX_WAIT_S = 10.0
# An exit waits up to twice this long; halfway, it interrupts statements that still run.
_EXIT_WAIT_S = 2.0
_is_exiting = False


# Type checkers read this as true. Hooks import this faster than typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Resettable(Protocol):
        """Something that can start fresh, with locks that nobody holds."""

        def reset_after_fork(self) -> None: ...

    class Closable(Protocol):
        """Something that reopens by itself when it is used after it was closed."""

        def interrupt_all(self) -> None:
            """Stop what all threads are doing with it."""
            ...

        def close(self) -> None: ...


_RESETTABLE: "weakref.WeakSet[Resettable]" = weakref.WeakSet()
_CLOSABLE: "weakref.WeakSet[Closable]" = weakref.WeakSet()


def reset_in_child(each: "Resettable") -> None:
    """Call ``reset_after_fork`` in every child process, while the object is alive."""
    _RESETTABLE.add(each)


def close_before_fork(each: "Closable") -> None:
    """Call ``close`` before this process forks or ends, while the object is alive."""
    _CLOSABLE.add(each)


class _ForkLock:
    """A lock that any number of threads may share, and that a fork needs for itself."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        # Reentrant, because the garbage collector may run an ``__exit__`` of ours at
        # any time.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        # How many times each thread holds the lock; and the thread that is forking, or
        # 0.
        self._depths: dict[int, int] = {}
        self._forking_thread = 0

    def __enter__(self) -> None:
        thread_id = threading.get_ident()
        with self._lock:
            depth = self._depths.get(thread_id, 0)
            # A thread that holds it may take it again, or it would never release it.
            while not depth and self._forking_thread not in (0, thread_id):
                self._changed.wait()
            self._depths[thread_id] = depth + 1

    def __exit__(self, *error: object) -> None:
        thread_id = threading.get_ident()
        with self._lock:
            self._depths[thread_id] -= 1
            if not self._depths[thread_id]:
                del self._depths[thread_id]
                if self._forking_thread:
                    self._changed.notify_all()

    def acquire_for_fork(self, wait_s: float = _MAX_WAIT_S) -> bool:
        """Keep new threads out and wait for the others; return whether all are out."""
        me = threading.get_ident()
        with self._lock:
            self._changed.wait_for(lambda: self._forking_thread in (0, me), wait_s)
            self._forking_thread = me
            self._changed.wait_for(lambda: not self._depths.keys() - {me}, wait_s)
            return not self._depths

    def release_after_fork(self) -> None:
        with self._lock:
            self._forking_thread = 0
            self._changed.notify_all()

    def reset_in_child(self) -> None:
        """Start fresh in a child, where only the thread that forked is left."""
        me = threading.get_ident()
        depth = self._depths.get(me, 0)
        self._reset()
        if depth:
            self._depths[me] = depth


_FORK_LOCK = _ForkLock()


def block_forks() -> AbstractContextManager[None]:
    """Keep other threads from forking or ending this process in the ``with`` block."""
    return _FORK_LOCK


def _before_fork() -> None:
    if _FORK_LOCK.acquire_for_fork():
        for each in list(_CLOSABLE):
            each.close()


def is_exiting() -> bool:
    """Whether Python is exiting, so that nothing should be waited for any more."""
    return _is_exiting


def _before_exit() -> None:
    """Have no thread in a library, and no connection open, when Python exits."""
    global _is_exiting
    _is_exiting = True
    if not _FORK_LOCK.acquire_for_fork(_EXIT_WAIT_S):
        for each in list(_CLOSABLE):
            each.interrupt_all()
        if not _FORK_LOCK.acquire_for_fork(_EXIT_WAIT_S):
            return
    for each in list(_CLOSABLE):
        each.close()


def _after_fork_in_child() -> None:
    _FORK_LOCK.reset_in_child()
    for each in list(_RESETTABLE):
        each.reset_after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_FORK_LOCK.release_after_fork,
        after_in_child=_after_fork_in_child,
    )
# Exit handlers that a program registers later run earlier, and may still use a memory.
atexit.register(_before_exit)
