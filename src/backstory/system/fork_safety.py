"""Forks at a moment when nothing is half done, and children that start afresh.

A child takes over memory, but no threads: a lock that another thread held stays locked
for ever, in our code or deep in SQLite, and what was being changed stays half changed.
So a fork waits until no thread is in the midst of something, connections are closed
before it, and whoever has locks gets new ones in the child.
"""

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Protocol

# Whoever forks waits no longer for the others; then the child may get stuck.
_PATIENCE_S = 10.0


class Resettable(Protocol):
    """Something that can start afresh, with locks that nobody holds."""

    def reset_after_fork(self) -> None: ...


class Closable(Protocol):
    """Something that opens again by itself when it is used after it was closed."""

    def close(self) -> None: ...


_RESETTABLE: "weakref.WeakSet[Resettable]" = weakref.WeakSet()
_CLOSABLE: "weakref.WeakSet[Closable]" = weakref.WeakSet()


def reset_in_child(each: Resettable) -> None:
    """Call ``reset_after_fork`` in every child, as long as the object lives."""
    _RESETTABLE.add(each)


def close_before_fork(each: Closable) -> None:
    """Call ``close`` before this process forks, as long as the object lives."""
    _CLOSABLE.add(each)


class _Door:
    """Counts the threads that are in the midst of something; a fork waits for them."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        # Reentrant: the garbage collector may end something that is inside at any time.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        # How deep each thread is in; the number of the one that forks, or 0.
        self._inside: dict[int, int] = {}
        self._forker = 0

    def __enter__(self) -> None:
        thread_id = threading.get_ident()
        with self._lock:
            depth = self._inside.get(thread_id, 0)
            # Who is inside may go further in, or would never come out.
            while not depth and self._forker not in (0, thread_id):
                self._changed.wait()
            self._inside[thread_id] = depth + 1

    def __exit__(self, *error: object) -> None:
        thread_id = threading.get_ident()
        with self._lock:
            self._inside[thread_id] -= 1
            if not self._inside[thread_id]:
                del self._inside[thread_id]
                if self._forker:
                    self._changed.notify_all()

    def shut(self) -> bool:
        """Let nobody in and wait for the others; returns whether all are outside."""
        me = threading.get_ident()
        with self._lock:
            self._changed.wait_for(lambda: not self._forker, _PATIENCE_S)
            self._forker = me
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, _PATIENCE_S)
            return not self._inside

    def open(self) -> None:
        with self._lock:
            self._forker = 0
            self._changed.notify_all()

    def renew(self) -> None:
        """Start anew in a child, where only the thread that forked is left."""
        me = threading.get_ident()
        depth = self._inside.get(me, 0)
        self._reset()
        if depth:
            self._inside[me] = depth


_DOOR = _Door()


def unforked() -> AbstractContextManager[None]:
    """Let no thread fork this process meanwhile, but for this one."""
    return _DOOR


def _before() -> None:
    if _DOOR.shut():
        for each in list(_CLOSABLE):
            each.close()


def _in_child() -> None:
    _DOOR.renew()
    for each in list(_RESETTABLE):
        each.reset_after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(
        before=_before, after_in_parent=_DOOR.open, after_in_child=_in_child
    )
