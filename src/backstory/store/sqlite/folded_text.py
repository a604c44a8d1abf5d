"""The file of folded texts: every unit's text in one place, to be scanned at once.

Texts stand one behind the other, each ended by a NUL, and are only ever appended.
Where each lies is in index.db, whose transaction decides what counts: bytes behind
its end are those of a writer that was killed, and the next writer goes over them.
"""

import mmap
import os
import threading
from pathlib import Path

import stringzilla

from backstory.errors import StoreDamaged, StoreFull, StoreUnwritable

_NUL = b"\0"
_NO_SPACE = 28  # ENOSPC, on every system


def to_stored(folded: str) -> bytes:
    """Folded text as it stands in the file. A NUL in it must not end it."""
    return folded.replace("\0", "\1").encode("utf-8", errors="replace")


class FoldedText:
    """One such file, open for reading; grows when somebody else appends to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None

    # -- writing: inside a transaction of index.db ---

    def append(self, start: int, data: bytes) -> None:
        """Write ``data`` at ``start``, the end as index.db knows it; durable then."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if os.fstat(descriptor).st_size < start:
                    raise StoreDamaged(f"{self.path}: the file is shorter than it was")
                _write_at(descriptor, start, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as exc:
            kind = StoreFull if exc.errno == _NO_SPACE else StoreUnwritable
            raise kind(f"{self.path}: {exc.strerror}") from exc

    def wipe(self, spans: list[tuple[int, int]]) -> None:
        """Put zeros in place of what was deleted."""
        try:
            descriptor = os.open(self.path, os.O_RDWR)
            try:
                size = os.fstat(descriptor).st_size
                for start, length in spans:
                    if start + length <= size:
                        _write_at(descriptor, start, _NUL * length)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return
        except OSError as exc:
            raise StoreUnwritable(f"{self.path}: {exc.strerror}") from exc

    # -- reading ---

    def view(self, end: int) -> memoryview:
        """The bytes up to ``end``."""
        with self._lock:
            if self._view is None or len(self._view) < end:
                self._remap(end)
            assert self._view is not None
            return self._view[:end]

    def _remap(self, end: int) -> None:
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < end:
                    raise StoreDamaged(f"{self.path}: the file is cut off")
                # The old map is freed when the last view of it is.
                self._map = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except OSError as exc:
            raise StoreDamaged(f"{self.path}: {exc.strerror}") from exc
        self._view = memoryview(self._map)

    def close(self) -> None:
        with self._lock:
            self._view = None
            self._map = None


def _write_at(descriptor: int, start: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        os.lseek(descriptor, start, os.SEEK_SET)
        written = os.write(descriptor, view)
        start += written
        view = view[written:]


def find_records(view: memoryview, needle: bytes, limit: int) -> list[int]:
    """Where ``needle`` occurs, once for every text that has it, up to ``limit``."""
    found: list[int] = []
    at = stringzilla.find(view, needle, 0)
    while at >= 0 and len(found) < limit:
        found.append(at)
        end = stringzilla.find(view, _NUL, at)
        if end < 0:
            break
        at = stringzilla.find(view, needle, end)
    return found


def contains(view: memoryview, needle: bytes, start: int, length: int) -> bool:
    """Whether one text has ``needle`` in it."""
    return bool(stringzilla.find(view, needle, start, start + length) >= 0)
