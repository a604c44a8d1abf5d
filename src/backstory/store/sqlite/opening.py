"""A connection for every thread, reopened after a fork or when the file is replaced."""

import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection
from pathlib import Path

import apsw

from backstory.store.sqlite.connection import close_database
from backstory.system.fork_safety import block_forks, close_before_fork, reset_in_child

# A read-only connection is reopened after this time, because it does not see what
# others write, and the file may be writable by then.
_READ_ONLY_S = 1.0


class Connections:
    """Opens a connection where one is needed, and closes them all.

    An SQLite connection must not cross a fork: all are closed before it, and a child
    does not touch those that could not be closed. A connection does not notice when its
    file is deleted, so that is checked here.
    """

    def __init__(self, path: Path, opening: Callable[[], apsw.Connection]) -> None:
        # A string, because it is used dozens of times in a search, and a Path is
        # slower.
        self._path = os.fspath(path)
        self._opening = opening
        self._abandoned: list[threading.local] = []
        self._reset()
        reset_in_child(self)
        close_before_fork(self)

    def _reset(self) -> None:
        self._local = threading.local()
        # Weak, so that a thread's connection is freed when the thread ends.
        self._of_threads: weakref.WeakValueDictionary[int, apsw.Connection] = (
            weakref.WeakValueDictionary()
        )
        self._lock = threading.Lock()
        self._generation = 0

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child, without closing the parent's connections."""
        # Kept alive: closing them here would disturb the parent's locks.
        self._abandoned.append(self._local)
        self._reset()

    def current(self) -> apsw.Connection:
        """This thread's connection to the file that exists now."""
        local = self._local
        wanted = (self._generation, self._file_id())
        if (
            getattr(local, "opened", None) != wanted
            or time.monotonic() >= local.fresh_until
        ):
            with block_forks():
                self._open()
        connection: apsw.Connection = local.connection
        return connection

    def _open(self) -> None:
        opened = self._opening()
        with self._lock:
            self._of_threads[threading.get_ident()] = opened
        local = self._local
        local.connection = opened
        local.opened = (self._generation, self._file_id())
        is_read_only = opened.readonly("main")
        local.fresh_until = (
            time.monotonic() + _READ_ONLY_S if is_read_only else math.inf
        )

    def _file_id(self) -> tuple[int, int]:
        try:
            stat = os.stat(self._path)  # noqa: PTH116
        except OSError:
            return (0, 0)
        return (stat.st_dev, stat.st_ino)

    def interrupt(self, thread_ids: Collection[int]) -> None:
        """Stop the statements that these threads are running."""
        with self._lock:
            for thread_id in thread_ids:
                connection = self._of_threads.get(thread_id)
                if connection is not None:
                    connection.interrupt()

    def interrupt_all(self) -> None:
        """Stop the statements that all threads are running."""
        self.interrupt(list(self._of_threads))

    def close(self) -> None:
        """Close all connections; a thread that needs one again opens a new one.

        A connection that another thread is using is only interrupted. It is closed when
        that thread ends or uses it again.
        """
        with self._lock:
            for connection in list(self._of_threads.values()):
                try:
                    close_database(connection)
                except apsw.ThreadingViolationError:
                    connection.interrupt()
            self._of_threads.clear()
            self._generation += 1
