"""Locks between the processes that use one home.

The operating system frees file locks when their process ends, however it ends. A home
that several machines share has its locks where all of them can see them.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from backstory.errors import StoreUnwritable

_RETRY_S = 0.02


class Locks(Protocol):
    """The locks of one home, by name; released when the holder's process ends."""

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Hold a lock, waiting until it is free."""
        ...

    def try_locked(self, name: str) -> AbstractContextManager[bool]:
        """Hold a lock if nobody else does; the value says whether it is held."""
        ...


class FileLocks:
    """The locks of a home that is on this machine: files in its folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        with locked(self._home / f"{name}.lock"):
            yield

    @contextmanager
    def try_locked(self, name: str) -> Iterator[bool]:
        with try_locked(self._home / f"{name}.lock") as lock:
            yield lock is not None


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock at ``path``, waiting until it is free.

    ``on_wait`` is called once if there is a wait. Raises ``StoreUnwritable`` if the
    file cannot be locked at all.
    """
    with _open_lock(path) as descriptor:
        if not _try_lock(descriptor):
            if on_wait is not None:
                on_wait()
            while not _try_lock(descriptor):
                time.sleep(_RETRY_S)
        try:
            yield
        finally:
            _unlock(descriptor)


@contextmanager
def try_locked(path: Path, *, is_handed_on: bool = False) -> Iterator[int | None]:
    """Hold the lock at ``path``; the value is its descriptor, or None if it is taken.

    With ``is_handed_on``, a child process that was given the descriptor keeps the lock.
    """
    with _open_lock(path) as descriptor:
        if not _try_lock(descriptor):
            yield None
            return
        try:
            yield descriptor
        finally:
            if not is_handed_on:
                _unlock(descriptor)


@contextmanager
def _open_lock(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise StoreUnwritable(f"{path}: {exc.strerror}") from exc
    try:
        yield descriptor
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        """Do nothing: closing the file is enough."""

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # Waiting would not help: for example, the file system may not support locks.
        except OSError as exc:
            raise StoreUnwritable(f"cannot be locked ({exc.strerror})") from exc
        return True

    def _unlock(descriptor: int) -> None:
        # Closing the file would not be enough if a child was forked in the meantime.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
