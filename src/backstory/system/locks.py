"""Locks between processes, held on a file.

The operating system frees such a lock when its process ends, however it ends.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from backstory.errors import StoreUnwritable

_RETRY_S = 0.02


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock at ``path``, waiting until it is free.

    ``on_wait`` is called once if there is a wait. Raises ``StoreUnwritable`` when the
    file cannot be locked at all.
    """
    with _open_lock(path) as descriptor:
        if not _try_lock(descriptor):
            if on_wait is not None:
                on_wait()
            while not _try_lock(descriptor):
                time.sleep(_RETRY_S)
        yield


@contextmanager
def try_locked(path: Path) -> Iterator[bool]:
    """Hold the lock at ``path`` if it is free; the value is whether it is held."""
    with _open_lock(path) as descriptor:
        yield _try_lock(descriptor)


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

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # Waiting would not help: the file system may not support locks, for example.
        except OSError as exc:
            raise StoreUnwritable(f"cannot be locked ({exc.strerror})") from exc
        return True
