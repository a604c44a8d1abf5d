"""Open a source as a stream of bytes: a file, a compressed file, or a zip entry.

A few bytes can unpack to a huge number. So compressed data may only unpack to a certain
multiple of its own size, and to a certain maximum, both far above those of any
transcript. The same goes for a sparse file, which takes no room on the disk however
long it is.
"""

import codecs
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from backstory.errors import SourceUnreadable
from backstory.system.files import open_file, stored_bytes
from backstory.system.zstd import MAX_WINDOW_BYTES, Unpacked, ZstdError
from backstory.values.history import Source

HEAD_BYTES = 64 * 1024
MAX_FIRST_LINE_BYTES = 2 * 1024 * 1024
# JSON lines shrink to a tenth or a twentieth, and to a hundredth if much is repeated.
MAX_RATIO = 250
# Less than this does no harm, however small it was before it was unpacked.
HARMLESS_BYTES = 16 * 1024 * 1024
MAX_UNPACKED_BYTES = 4 * 1024 * 1024 * 1024
_FOREIGN_ERRORS = (
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
# Opening a damaged zip file can raise these as well; reading an opened entry cannot.
ZIP_ERRORS = (*_FOREIGN_ERRORS, KeyError, ValueError)


def is_seekable(source: Source) -> bool:
    """Whether reading can resume in the middle: not inside anything compressed."""
    return not source.entry and source.file.path.suffix.lower() != ".zst"


@contextmanager
def open_source(source: Source) -> Iterator[IO[bytes]]:
    """Open a source as bytes. Whatever goes wrong is raised as ``SourceUnreadable``."""
    path = source.file.path
    try:
        if source.entry:
            with (
                open_file(path) as file,
                open_zip(file) as archive,
                _open_entry(archive, source.entry, packed_bytes(file)) as entry,
            ):
                yield entry
        elif path.suffix.lower() == ".zst":
            with open_file(path) as file, _decompressed(file) as stream:
                yield stream
        else:
            with open_file(path) as file:
                _check_holes(file)
                yield file
    except _FOREIGN_ERRORS as exc:
        reason = (isinstance(exc, OSError) and exc.strerror) or exc
        raise SourceUnreadable(f"it cannot be read ({reason})") from exc


def _check_holes(file: IO[bytes]) -> None:
    """Raise ``SourceUnreadable`` for a file that is nearly all holes."""
    size, stored = packed_bytes(file), stored_bytes(file)
    if size > max(stored * MAX_RATIO, HARMLESS_BYTES):
        raise SourceUnreadable(
            f"only {stored:,} of its {size:,} bytes were ever written; "
            "no transcript is like that"
        )


def read_head(path: Path) -> bytes:
    """The beginning of a file, decompressed if it is compressed."""
    with open_file(path) as file:
        if path.suffix.lower() != ".zst":
            return head_of(file)
        with _decompressed(file) as stream:
            return head_of(stream)


def head_of(stream: IO[bytes]) -> bytes:
    """The first bytes of a stream, to the end of its first line if that is long."""
    head = stream.read(HEAD_BYTES)
    if b"\n" not in head:
        head += stream.readline(MAX_FIRST_LINE_BYTES - len(head))
    return head.removeprefix(codecs.BOM_UTF8)


# -- what is compressed ---------------------------------------------------------------


def max_unpacked(packed: int) -> int:
    """How many bytes a compressed file of that size may unpack to."""
    return min(max(packed * MAX_RATIO, HARMLESS_BYTES), MAX_UNPACKED_BYTES)


def packed_bytes(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def too_much(packed: int) -> str:
    """Why something is not unpacked any further."""
    return (
        f"its {packed:,} bytes unpack to more than {max_unpacked(packed):,}, "
        "which no transcript does"
    )


def open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """A zip file, with ``BadZipFile`` for whatever is wrong with it."""
    try:
        return zipfile.ZipFile(file)
    except (KeyError, ValueError, struct.error, UnicodeError) as exc:
        raise zipfile.BadZipFile(str(exc)) from exc


def _open_entry(archive: zipfile.ZipFile, name: str, packed: int) -> IO[bytes]:
    try:
        entry = archive.getinfo(name)
        # No more than ``file_size`` is ever read of it, whatever is in it.
        if entry.file_size > max_unpacked(packed):
            raise SourceUnreadable(too_much(packed))
        return archive.open(entry)
    except (KeyError, ValueError, struct.error) as exc:
        raise zipfile.BadZipFile(str(exc)) from exc


def _decompressed(file: IO[bytes]) -> io.BufferedReader:
    return io.BufferedReader(_Limited(Unpacked(file), packed_bytes(file)))


class _Limited(io.RawIOBase):
    """An unpacked stream; raises ``SourceUnreadable`` if it is too long or damaged."""

    def __init__(self, stream: Unpacked, packed: int) -> None:
        self._stream = stream
        self._packed = packed
        self._left = max_unpacked(packed)

    def readable(self) -> bool:
        return True

    # Any: io's own type for what bytes can be read into is not public.
    def readinto(self, buffer: Any) -> int:
        try:
            count = self._stream.readinto(buffer)
        except ZstdError as exc:
            raise SourceUnreadable(_describe(exc)) from exc
        self._left -= count
        if self._left < 0:
            raise SourceUnreadable(too_much(self._packed))
        return count


def _describe(error: ZstdError) -> str:
    """Why something cannot be unpacked, from the message of the library."""
    said = str(error).rpartition(": ")[2]
    if "too much memory" in said:
        return (
            f"unpacking it takes more than {MAX_WINDOW_BYTES:,} bytes of memory, "
            "which no transcript does"
        )
    if said == "Unknown frame descriptor":
        return "it is not compressed with zstd, although its name says so"
    return f"it cannot be unpacked, as it is damaged (zstd says: {said})"
