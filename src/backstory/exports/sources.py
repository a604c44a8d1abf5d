"""Where an export is read from: a folder or a zip file, which anybody may have made.

Files are found by listing folders, never by a name that the export gives. Links that
lead out, pipes and devices are not read, and nothing is unpacked to disk.
"""

import hashlib
import shlex
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NoReturn, Protocol

from backstory.errors import SourceUnreadable
from backstory.exports.manifest import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    FileEntry,
    begins_manifest,
)
from backstory.system.files import find_files, open_file
from backstory.values.history import Problem

# Where an export has files, folder by folder.
_PATTERNS = ("*", "conversations/*/*", "notes/*", "notes/daily/*")
_PIECE = 1024 * 1024
_MAX_ENTRIES = 2_000_000
# Conversations shrink to a tenth or so. Anything packed more densely than this was made
# to fill a disk.
_MAX_RATIO = 200
_SMALL_BYTES = 10_000_000
_BEGINNING_BYTES = 200
_ZIP_ERRORS = (
    EOFError,
    RuntimeError,
    NotImplementedError,
    KeyError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_HINT = (
    "'backstory export' writes one; 'backstory memory import' reads a zip file of "
    "notes, 'backstory index --path' any other conversations"
)


class ExportSource(Protocol):
    """The files of an export, by name; ``problems`` are those that cannot be read."""

    names: frozenset[str]
    problems: tuple[Problem, ...]

    def open(self, name: str) -> IO[bytes]:
        """Open a file to read it. Raises OSError and what zip files raise."""
        ...

    def path_of(self, name: str) -> Path:
        """What to call a file in messages."""
        ...


@contextmanager
def open_source(path: Path) -> Iterator[ExportSource]:
    """The export at this path. Raises ``SourceUnreadable`` if there is none."""
    if path.is_dir():
        yield FolderSource(path)
        return
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open_file(path))
            archive = opened.enter_context(zipfile.ZipFile(file))
            source = ZipSource(path, archive)
        except OSError as exc:
            raise SourceUnreadable(f"{path}: {exc.strerror or exc}") from exc
        except _ZIP_ERRORS as exc:
            raise SourceUnreadable(
                f"{path}: not an export: neither a folder nor a zip file ({exc})",
                hint=_HINT,
            ) from exc
        yield source


def refuse_export(path: Path) -> None:
    """Raise ``SourceUnreadable`` for an export, which is not read file by file."""
    if begins_manifest(_read_beginning(path)):
        raise SourceUnreadable(
            f"{path}: an export of Backstory, which is read as a whole",
            hint=f"run: {shlex.join(['backstory', 'import', str(path)])}",
        )


def _read_beginning(path: Path) -> bytes:
    """The beginning of an export's manifest; nothing if there is none."""
    try:
        if path.is_dir():
            with open_file(path / MANIFEST_NAME) as file:
                return file.read(_BEGINNING_BYTES)
        if path.suffix.lower() != ".zip":
            return b""
        with open_source(path) as source, source.open(MANIFEST_NAME) as file:
            return file.read(_BEGINNING_BYTES)
    except (SourceUnreadable, OSError, *_ZIP_ERRORS):
        # Not an export; reading it says what is wrong with it.
        return b""


class FolderSource:
    """A folder. Hidden files, such as those of Git, do not count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # With links resolved, like the paths of the files that are found.
        root = Path(path).resolve()
        self._files: dict[str, Path] = {}
        problems = []
        for found in (each for p in _PATTERNS for each in find_files(path, p)):
            if isinstance(found, Problem):
                problems.append(found)
            else:
                name = found.path.relative_to(root).as_posix()
                self._files[name] = found.path
        self.problems = tuple(problems)
        self.names = frozenset(self._files)

    def open(self, name: str) -> IO[bytes]:
        return open_file(self._files[name])

    def path_of(self, name: str) -> Path:
        return self._path / name


class ZipSource:
    """A zip file; an entry with an odd name, a link or a zip bomb makes it unusable."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self.problems: tuple[Problem, ...] = ()
        entries = [info for info in archive.infolist() if not info.is_dir()]
        if len(entries) > _MAX_ENTRIES:
            self._refuse(f"{len(entries):,} files; the limit is {_MAX_ENTRIES:,}")
        self._entries = {info.filename: info for info in entries}
        if len(self._entries) < len(entries):
            self._refuse("it has two files of the same name")
        for info in entries:
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                self._refuse(f"{info.filename!r:.100} is a link or a special file")
            packed = max(info.compress_size, 1)
            if info.file_size > max(_SMALL_BYTES, packed * _MAX_RATIO):
                self._refuse(f"{info.filename!r:.100} is packed too densely")
        self.names = frozenset(self._entries)

    def _refuse(self, reason: str) -> NoReturn:
        raise SourceUnreadable(f"{self._path}: {reason}", hint="nothing was imported")

    def open(self, name: str) -> IO[bytes]:
        return self._archive.open(self._entries[name])

    def path_of(self, name: str) -> Path:
        return self._path / name


# -- reading and checking -------------------------------------------------------------


def read_whole(source: ExportSource, name: str, *, max_bytes: int) -> bytes:
    """All of a file. Raises ``SourceUnreadable``, including if it is too large."""
    with reading(source, name), source.open(name) as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise SourceUnreadable(
            f"{source.path_of(name)}: more than the {max_bytes:,} bytes it may have"
        )
    return raw


@contextmanager
def reading(source: ExportSource, name: str) -> Iterator[None]:
    """Raise ``SourceUnreadable`` if a file cannot be read."""
    try:
        yield
    except OSError as exc:
        reason = exc.strerror or exc
        raise SourceUnreadable(f"{source.path_of(name)}: {reason}") from exc
    except _ZIP_ERRORS as exc:
        raise SourceUnreadable(f"{source.path_of(name)}: {exc}") from exc


def read_manifest(source: ExportSource, path: Path) -> bytes:
    """Read the manifest. Raises ``SourceUnreadable`` if there is none."""
    if MANIFEST_NAME not in source.names:
        raise SourceUnreadable(
            f"{path}: not an export: it has no {MANIFEST_NAME}",
            hint=_HINT,
        )
    return read_whole(source, MANIFEST_NAME, max_bytes=MAX_MANIFEST_BYTES)


def find_damage(source: ExportSource, name: str, entry: FileEntry | None) -> str | None:
    """Why a file is not what was exported; None if it is."""
    if name not in source.names:
        return "missing"
    digest, size = hashlib.sha256(), 0
    try:
        with reading(source, name), source.open(name) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                size += len(piece)
                if entry is None or size > entry.size_bytes:
                    return "changed since it was exported"
    except SourceUnreadable as exc:
        return str(exc)
    is_same = entry is not None and digest.hexdigest() == entry.sha256
    return None if is_same else "changed since it was exported"
