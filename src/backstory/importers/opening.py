"""Open a source as a stream of bytes: a file, a compressed file, or a zip entry."""

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
from backstory.model import Source

HEAD_BYTES = 64 * 1024
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
    """Whether reading can go on in the middle: not inside anything compressed."""
    return not source.entry and source.file.path.suffix != ".zst"


@contextmanager
def open_source(source: Source) -> Iterator[IO[bytes]]:
    """The bytes of a source. Everything that goes wrong is ``SourceUnreadable``."""
    path = source.file.path
    try:
        if source.entry:
            with _open_entry(path, source.entry) as entry:
                yield entry
        elif path.suffix == ".zst":
            with path.open("rb") as file, _decompressed(file) as stream:
                yield stream
        else:
            with path.open("rb") as file:
                yield file
    except _FOREIGN_ERRORS as exc:
        reason = (isinstance(exc, OSError) and exc.strerror) or exc
        raise SourceUnreadable(f"it cannot be read ({reason})") from exc


def read_head(path: Path) -> bytes:
    """The first bytes of a file, decompressed if it is compressed."""
    with path.open("rb") as file:
        if path.suffix != ".zst":
            return file.read(HEAD_BYTES)
        try:
            with _decompressed(file) as stream:
                return stream.read(HEAD_BYTES)
        except zstandard.ZstdError as exc:
            raise ValueError(str(exc)) from exc


def _open_entry(path: Path, name: str) -> IO[bytes]:
    try:
        # The entry stays readable: the file is closed with the last that needs it.
        with zipfile.ZipFile(path) as archive:
            return archive.open(name)
    except (KeyError, ValueError) as exc:
        raise zipfile.BadZipFile(str(exc)) from exc


def _decompressed(file: IO[bytes]) -> io.BufferedReader:
    stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    # zstandard's reader has no readline; it is a raw stream in all but its type.
    return io.BufferedReader(stream)
