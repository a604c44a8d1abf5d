"""The file of folded texts: the texts of all units in one place, to be scanned fast.

Texts follow each other, each ended by a NUL, and are only ever appended. index.db says
where each of them is, and its transaction decides what counts: bytes beyond its end are
from a writer that was killed, and the next writer overwrites them.
"""

import mmap
import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import stringzilla

from backstory.errors import StoreDamaged
from backstory.store.sqlite.connection import from_os_error
from backstory.system.fork_safety import reset_in_child
from backstory.values.structs import FrozenStruct, replace

_NUL = b"\0"
# From this many blocks on, a second thread helps to check them.
_MANY_BLOCKS = 16
# A search in less than this ends before another thread could take over.
_LONG_SEARCH_BYTES = 8_000_000
# This much is searched before other threads are let in.
_NEAR_BYTES = 256_000
_CACHE_LINE_BYTES = 64

# Where something begins in the file, and its length.
Span = tuple[int, int]


class ChecksummedBlock(FrozenStruct):
    """A part of the file, and its checksum, in which ``wiped`` bytes count as zeros."""

    start: int
    length: int
    checksum: int
    wiped: Sequence[Span] = ()


def to_stored(folded: str) -> bytes:
    """Folded text as it is stored: without NULs, because a NUL ends a text."""
    return folded.replace("\0", "\1").encode("utf-8", errors="replace")


class FoldedText:
    """One such file. Readers see what other processes append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.Lock()
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        # Checksums of the blocks that this process has checked, by where they begin.
        self._checked: dict[int, int] = {}
        self._has_helper = False

    # -- writing: inside a transaction of index.db ---

    def append(self, start: int, data: bytes) -> None:
        """Write ``data`` to the disk at ``start``, the end according to index.db."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if os.fstat(descriptor).st_size < start:
                    raise self._damaged("the file is shorter than it should be")
                _write_at(descriptor, start, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as exc:
            raise from_os_error(self.path, exc) from exc

    def wipe(self, spans: Iterable[Span]) -> None:
        """Overwrite what was deleted with zeros."""
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
            raise from_os_error(self.path, exc) from exc

    # -- checking ---

    def begin_check(self, blocks: Sequence[ChecksummedBlock]) -> None:
        """Check blocks in another thread, starting with the last one.

        The work hardly holds the GIL, so it takes no time from other threads. A thread
        that needs the blocks starts with the first one, and both are done when they
        meet.
        """
        if self._has_helper:
            return
        self._has_helper = True

        def check() -> None:
            # The thread that needs the blocks finds the damage too, and raises it.
            with suppress(StoreDamaged):
                self.check(blocks[::-1])
            self._has_helper = False

        threading.Thread(target=check, name="backstory-texts", daemon=True).start()

    def check(self, blocks: Iterable[ChecksummedBlock]) -> None:
        """Compare blocks with their checksums, once each. Raises ``StoreDamaged``.

        Two threads share the work if one is given the blocks in reverse order: each
        goes on until it reaches what the other has checked.
        """
        due = [each for each in blocks if not self._is_checked(each)]
        if not due:
            return
        if len(due) >= _MANY_BLOCKS:
            self.begin_check(due)
        unchecked = (each for each in due if not self._is_checked(each))
        for block, checksum in self._checksums(unchecked):
            if checksum != block.checksum:
                raise self._damaged_in(block)
            self._checked[block.start] = checksum

    def _is_checked(self, block: ChecksummedBlock) -> bool:
        return self._checked.get(block.start) == block.checksum

    def checksum_without(self, block: ChecksummedBlock, deleted: Sequence[Span]) -> int:
        """The block's checksum after a deletion.

        Raises ``StoreDamaged`` if its present checksum is wrong.
        """
        more = replace(block, wiped=(*block.wiped, *deleted))
        (_, before), (_, after) = self._checksums([block, more])
        if before != block.checksum:
            raise self._damaged_in(block)
        return after

    def _checksums(
        self, blocks: Iterable[ChecksummedBlock]
    ) -> Iterator[tuple[ChecksummedBlock, int]]:
        # Not mapped: if the disk cannot read it, this raises an error, whereas reading
        # a map would kill the process.
        try:
            with self.path.open("rb", buffering=0) as file:
                # One buffer for all blocks, because allocating another would hold the
                # GIL.
                room = memoryview(bytearray())
                for block in blocks:
                    if len(room) < block.length:
                        room = memoryview(bytearray(block.length))
                    data = room[: block.length]
                    file.seek(block.start)
                    if file.readinto(data) != block.length:
                        raise self._damaged("the file is cut off")
                    for start, length in block.wiped:
                        at = start - block.start
                        data[at : at + length] = bytes(length)
                    yield block, zlib.crc32(data)
        except OSError as exc:
            raise self._damaged(f"it cannot be read ({exc.strerror})") from exc

    def _damaged_in(self, block: ChecksummedBlock) -> StoreDamaged:
        last = block.start + block.length - 1
        return self._damaged(
            f"its bytes {block.start} to {last} do not match their checksum"
        )

    def _damaged(self, reason: str) -> StoreDamaged:
        return StoreDamaged(f"{self.path}: {reason}", path=self.path)

    # -- reading ---

    def view(self, end: int) -> memoryview:
        """The bytes up to ``end``. Use them at once, before the file can shrink."""
        with self._lock:
            # Reading a map beyond the end of its file would kill the process.
            is_whole = self._map is not None and self._map.size() >= end
            if self._view is None or len(self._view) < end or not is_whole:
                self._remap(end)
            assert self._view is not None
            return self._view[:end]

    def _remap(self, end: int) -> None:
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < end:
                    raise self._damaged("the file is cut off")
                # The old map is freed with its last view.
                self._map = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except OSError as exc:
            raise self._damaged(f"it cannot be read ({exc.strerror})") from exc
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
    find = _find_beside_others(view) or partial(stringzilla.find, view)
    at = find(needle, 0)
    while at >= 0 and len(found) < limit:
        found.append(at)
        end = stringzilla.find(view, _NUL, at)
        if end < 0:
            break
        at = find(needle, end)
    return found


def _find_beside_others(view: memoryview) -> Callable[[bytes, int], int] | None:
    """Find bytes from a place on, while other threads run.

    stringzilla holds the GIL as long as it searches, 14 ms in the texts of a million
    messages. Calling its C function does not. None if that is not worth it, or if
    stringzilla was built without it.
    """
    search = _load_search() if len(view) >= _LONG_SEARCH_BYTES else None
    if search is None:
        return None
    # It keeps the view, and so the bytes, as long as they are searched.
    text = stringzilla.Str(view)
    address, size = text.address, len(text)

    def find(needle: bytes, start: int) -> int:
        # Frequent bytes are near, so other threads would be woken up for nothing.
        near: int = stringzilla.find(view, needle, start, start + _NEAR_BYTES)
        if near >= 0:
            return near
        start = max(start, _align(start + _NEAR_BYTES - len(needle)))
        at: int | None = None
        if start < size:
            at = search(address + start, size - start, needle, len(needle))
        return -1 if at is None else at - address

    return find


def _align(place: int) -> int:
    """Where its cache line begins: from elsewhere, a search takes a third longer."""
    return place - place % _CACHE_LINE_BYTES


# Any: a function of a C library.
@cache
def _load_search() -> Callable[..., Any] | None:
    # Slow to import, and only large memories need it.
    import ctypes

    try:
        search = ctypes.CDLL(stringzilla.__file__).sz_find
    except (OSError, AttributeError):
        return None
    search.restype = ctypes.c_void_p
    search.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )
    return search


def contains(view: memoryview, needle: bytes, start: int, length: int) -> bool:
    """Whether one text contains ``needle``."""
    return bool(stringzilla.find(view, needle, start, start + length) >= 0)
