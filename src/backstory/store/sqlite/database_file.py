"""Create, read and copy database files without losing the locks on them.

When a process closes a file, it loses all its locks on that file, including those that
SQLite holds through other descriptors (https://www.sqlite.org/howtocorrupt.html,
section 2.2, 2026-11). Another process could then delete the log of a database in use.
So a database file is only read through SQLite, which closes it when no connection has a
lock any more. It is created under another name. The ``-shm`` file is never opened.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

_READ_ONLY = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
_COPIED_AT_ONCE = 1 << 20


class DatabaseFile:
    """A database file, open to be read byte by byte."""

    def __init__(self, file: apsw.VFSFile) -> None:
        self._file = file

    def size(self) -> int:
        return self._file.xFileSize()

    def read(self, amount: int, offset: int) -> bytes:
        """Bytes from an offset on; fewer than ``amount`` if the file ends first."""
        # After a read beyond the end, apsw cannot tell how many bytes there were.
        amount = min(amount, max(0, self.size() - offset))
        return self._file.xRead(amount, offset) if amount else b""


@contextmanager
def reading(path: Path) -> Iterator[DatabaseFile]:
    """Open a database file to read it. Raises ``OSError`` if it cannot be opened."""
    path.stat()
    try:
        file = apsw.VFSFile("", str(path), [_READ_ONLY, 0])
    except apsw.CantOpenError as exc:
        raise PermissionError(
            errno.EACCES, os.strerror(errno.EACCES), str(path)
        ) from exc
    try:
        yield DatabaseFile(file)
    finally:
        file.xClose()


def read_whole(path: Path) -> bytes:
    """All bytes of a database file. Raises ``OSError``."""
    with reading(path) as file:
        return file.read(file.size(), 0)


def copy_to(path: Path, new: Path) -> None:
    """Copy a database file to a new one that only its owner may read."""
    create(new)
    with reading(path) as file, new.open("wb") as copy:
        for offset in range(0, file.size(), _COPIED_AT_ONCE):
            copy.write(file.read(_COPIED_AT_ONCE, offset))


def create(path: Path) -> None:
    """Create an empty file that only its owner may read, unless there is one.

    Raises ``OSError``.
    """
    if path.exists():
        return
    empty = path.with_name(f".{path.name}-{os.urandom(4).hex()}")
    _create(empty)
    try:
        os.link(empty, path)
    except FileExistsError:
        pass
    except OSError:
        # The file system has no hard links.
        with suppress(FileExistsError):
            _create(path)
    finally:
        empty.unlink()


def _create(path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
