"""Open a source as a stream of bytes: a file, a compressed file, or a zip entry."""

import codecs
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import zstandard

from backstory.errors import SourceUnreadable
from backstory.values.history import Source

HEAD_BYTES = 64 * 1024
MAX_FIRST_LINE_BYTES = 2 * 1024 * 1024
# The most memory that a compressed file may make its reader use.
_MAX_WINDOW_BYTES = 32 * 1024 * 1024
_FOREIGN_ERRORS = (
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
)
# Opening a damaged zip file can raise these as well; reading an opened entry cannot.
ZIP_ERRORS = (*_FOREIGN_ERRORS, KeyError, ValueError)


def is_seekable(source: Source) -> bool:
    """Whether reading can resume in the middle: not inside anything compressed."""
    return not source.entry and source.file.path.suffix.lower() != ".zst"


@contextmanager
def open_source(source: Source) -> Iterator[IO[bytes]]:
    """The bytes of a source. Everything that goes wrong is ``SourceUnreadable``."""
    path = source.file.path
    try:
        if source.entry:
            with _open_entry(path, source.entry) as entry:
                yield entry
        elif path.suffix.lower() == ".zst":
            with path.open("rb") as file, _decompressed(file) as stream:
                yield stream
        else:
            with path.open("rb") as file:
                yield file
    except _FOREIGN_ERRORS as exc:
        reason = (isinstance(exc, OSError) and exc.strerror) or exc
        raise SourceUnreadable(f"it cannot be read ({reason})") from exc


def read_head(path: Path) -> bytes:
    """The beginning of a file, decompressed if it is compressed."""
    with path.open("rb") as file:
        if path.suffix.lower() != ".zst":
            return head_of(file)
        try:
            with _decompressed(file) as stream:
                return head_of(stream)
        except zstandard.ZstdError as exc:
            raise ValueError(str(exc)) from exc


def head_of(stream: IO[bytes]) -> bytes:
    """The first bytes of a stream, to the end of its first line if that is long."""
    head = stream.read(HEAD_BYTES)
    if b"\n" not in head:
        head += stream.readline(MAX_FIRST_LINE_BYTES - len(head))
    return head.removeprefix(codecs.BOM_UTF8)


def _open_entry(path: Path, name: str) -> IO[bytes]:
    try:
        # The entry stays readable: the file is closed when its last user is.
        with zipfile.ZipFile(path) as archive:
            return archive.open(name)
    except (KeyError, ValueError) as exc:
        raise zipfile.BadZipFile(str(exc)) from exc


def _decompressed(file: IO[bytes]) -> io.BufferedReader:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    stream = decompressor.stream_reader(file, read_across_frames=True)
    # zstandard's reader has no readline; it is a raw stream, except in its type.
    return io.BufferedReader(stream)
