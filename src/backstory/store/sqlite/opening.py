"""A connection for every thread; new ones in a forked child, and to a new file."""

import os
import threading
import weakref
from collections.abc import Callable, Collection
from pathlib import Path

import apsw


class Connections:
    """Opens a connection where one is needed, and closes them all.

    An SQLite connection must not cross a fork: a child opens its own, and leaves those
    of its parent untouched. Nor does it notice when somebody deletes its file.
    """

    def __init__(self, path: Path, opening: Callable[[], apsw.Connection]) -> None:
        self._path = path
        self._opening = opening
        self._abandoned: list[threading.local] = []
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._local = threading.local()
        # Weak, so that the connection of a thread ends with it.
        self._all: weakref.WeakKeyDictionary[apsw.Connection, int] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()
        self._generation = 0

    def current(self) -> apsw.Connection:
        """The connection of this thread, to the file that is there now."""
        if self._pid != os.getpid():
            # Kept, because closing one here would take locks of the parent's.
            self._abandoned.append(self._local)
            self._reset()
        wanted = (self._generation, self._file_id())
        if getattr(self._local, "opened", None) != wanted:
            opened = self._opening()
            with self._lock:
                self._all[opened] = threading.get_ident()
            self._local.connection = opened
            self._local.opened = (self._generation, self._file_id())
        connection: apsw.Connection = self._local.connection
        return connection

    def _file_id(self) -> tuple[int, int]:
        try:
            stat = self._path.stat()
        except OSError:
            return (0, 0)
        return (stat.st_dev, stat.st_ino)

    def interrupt(self, thread_ids: Collection[int]) -> None:
        """Make the statements stop that these threads are running."""
        with self._lock:
            for connection, thread_id in list(self._all.items()):
                if thread_id in thread_ids:
                    connection.interrupt()

    def close(self) -> None:
        """Close them; used again, each thread opens a new one."""
        if self._pid != os.getpid():
            return
        with self._lock:
            for connection in list(self._all):
                connection.close()
            self._all.clear()
            self._generation += 1
