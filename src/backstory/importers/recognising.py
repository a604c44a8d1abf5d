"""Tell the format of a file from its name and its first bytes, inside zip files too."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from backstory.files import describe, find_files, has_text_name, shown_name
from backstory.importers.base import FormatRow
from backstory.importers.opening import HEAD_BYTES, ZIP_ERRORS, read_head
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
        file = None if is_folder else path.resolve(strict=True)
    # RuntimeError: a link that leads to itself.
    except (OSError, RuntimeError) as exc:
        yield Problem(f"it cannot be read ({_reason(exc)})", path=str(path))
        return
    if file is not None:
        yield from _recognise_one(file, formats)
        return
    for found in find_files(path, "**/*"):
        if isinstance(found, Problem):
            yield found
        elif found.path.suffix.lower() in _SUFFIXES:
            yield from _recognise(found, formats)


def _recognise_one(
    file: Path, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    if not has_text_name(file):
        yield Problem("its name is not valid UTF-8", path=shown_name(file))
    # A pipe or a device would be waited for.
    elif not file.is_file():
        yield Problem("neither a file nor a folder", path=str(file))
    else:
        yield from _recognise(describe(file), formats)


def _recognise(
    file: FoundFile, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    try:
        head = read_head(file.path)
    except (OSError, ValueError) as exc:
        yield Problem(f"it cannot be read ({_reason(exc)})", path=str(file.path))
        return
    if head.startswith(b"PK\x03\x04"):
        yield from _look_inside(file, formats)
        return
    row = find_format(file.path, head, formats)
    yield Source(row.host, row.name, file) if row else file


def _reason(exc: Exception) -> object:
    return getattr(exc, "strerror", None) or exc


def _look_inside(
    file: FoundFile, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    try:
        archive = zipfile.ZipFile(file.path)
    except ZIP_ERRORS as exc:
        yield Problem(f"not a readable zip file ({exc})", path=str(file.path))
        return
    known = False
    with archive:
        for entry in archive.infolist():
            # ZipInfo.is_dir() raises when there is no name at all.
            if entry.filename.endswith("/"):
                continue
            name = PurePosixPath(entry.filename.replace("\\", "/"))
            if PureWindowsPath(name).anchor or ".." in name.parts:
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
            except ZIP_ERRORS as exc:
                yield Problem(
                    f"the entry {entry.filename!r} cannot be read ({exc})",
                    path=str(file.path),
                )
                continue
            row = find_format(Path(name), head, formats)
            if row is not None and row.load().kind == "database":
                known = True
                yield Problem(
                    f"the entry {entry.filename!r} is a database, which can only be "
                    "read when it is unpacked",
                    path=str(file.path),
                )
            elif row is not None:
                known = True
                yield Source(row.host, row.name, file, entry.filename)
    if not known:
        yield file


def find_format(
    path: Path, head: bytes, formats: Sequence[FormatRow]
) -> FormatRow | None:
    """The first format that takes a file of this name and beginning for its own."""
    return next((row for row in formats if row.load().recognises(path, head)), None)
