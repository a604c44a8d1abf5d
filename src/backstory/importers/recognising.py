"""Tell the format of a file from its name and its first bytes, inside zip files too."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from backstory.files import describe, find_files
from backstory.importers.base import FormatRow
from backstory.importers.opening import HEAD_BYTES, read_head
from backstory.model import FoundFile, Problem, Source

_SUFFIXES = frozenset(
    {".jsonl", ".json", ".md", ".db", ".sqlite", ".sqlite3", ".zip", ".zst", ".yaml"}
)


def iter_recognised(
    path: Path, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    """The sources at ``path``, a file or a folder; a file of no known format as it is.

    Only a folder's files with a name that could be a transcript's are looked at.
    """
    try:
        is_folder = path.is_dir()
        if not is_folder:
            yield from _recognise(describe(path.resolve(strict=True)), formats)
            return
    except OSError as exc:
        yield Problem(f"it cannot be read ({exc.strerror})", path=str(path))
        return
    for found in find_files(path, "**/*"):
        if isinstance(found, Problem):
            yield found
        elif found.path.suffix.lower() in _SUFFIXES:
            yield from _recognise(found, formats)


def _recognise(
    file: FoundFile, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    try:
        head = read_head(file.path)
        if head.startswith(b"PK\x03\x04"):
            yield from _look_inside(file, formats)
            return
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        yield Problem(f"it cannot be read ({reason})", path=str(file.path))
        return
    row = find_format(file.path, head, formats)
    yield Source(row.host, row.name, file) if row else file


def _look_inside(
    file: FoundFile, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    try:
        archive = zipfile.ZipFile(file.path)
    except (zipfile.BadZipFile, OSError) as exc:
        yield Problem(f"not a readable zip file ({exc})", path=str(file.path))
        return
    known = False
    with archive:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            name = PurePosixPath(entry.filename.replace("\\", "/"))
            if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
                yield Problem(
                    f"an entry with an unsafe name, {entry.filename!r}",
                    path=str(file.path),
                )
                continue
            if name.suffix.lower() not in _SUFFIXES:
                continue
            try:
                with archive.open(entry) as stream:
                    head = stream.read(HEAD_BYTES)
            except (
                zipfile.BadZipFile,
                RuntimeError,
                NotImplementedError,
                OSError,
            ) as exc:
                yield Problem(
                    f"the entry {entry.filename!r} cannot be read ({exc})",
                    path=str(file.path),
                )
                continue
            row = find_format(Path(name), head, formats)
            if row is not None:
                known = True
                yield Source(row.host, row.name, file, entry.filename)
    if not known:
        yield file


def find_format(
    path: Path, head: bytes, formats: Sequence[FormatRow]
) -> FormatRow | None:
    """The first format that takes a file of this name and beginning for its own."""
    return next((row for row in formats if row.load().recognises(path, head)), None)
