"""Tell the format of a file from its name and its first bytes, inside zip files too."""

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath, PureWindowsPath

from backstory.errors import SourceUnreadable
from backstory.ingest.importers.base import FormatRow
from backstory.ingest.parsing.databases import (
    foreign_errors,
    list_tables,
    open_foreign,
)
from backstory.ingest.parsing.failures import describe_failure
from backstory.ingest.parsing.streams import (
    ZIP_ERRORS,
    head_of,
    max_unpacked,
    open_zip,
    read_head,
    too_much,
)
from backstory.system.files import (
    describe,
    find_files,
    has_text_name,
    open_file,
    shown_name,
)
from backstory.values.history import FoundFile, Problem, Source

_SUFFIXES = frozenset(
    {".jsonl", ".json", ".md", ".db", ".sqlite", ".sqlite3", ".zip", ".zst", ".yaml"}
)

# A log that its program moved aside: a.1.jsonl, a.jsonl.1, a.jsonl.bak.
_MOVED_ASIDE = re.compile(r"\.(\d{1,2}|bak)(?=\.jsonl\Z)|(?<=\.jsonl)\.(\d{1,2}|bak)\Z")


def _skip_nothing(path: Path) -> bool:
    return False


def iter_recognized(
    path: Path,
    formats: Sequence[FormatRow],
    skip: Callable[[Path], bool] = _skip_nothing,
) -> Iterator[Source | Problem | FoundFile]:
    """The sources at ``path``, a file or a folder, and files of unknown formats.

    In a folder, only files whose names could be a transcript's are opened, and none for
    which ``skip`` is true.
    """
    try:
        is_folder = path.is_dir()
        file = None if is_folder else path.resolve(strict=True)
    # RuntimeError: a link that leads to itself.
    except (OSError, ValueError, RuntimeError) as exc:
        yield Problem(f"it cannot be read ({_reason(exc)})", path=shown_name(path))
        return
    if file is not None:
        yield from _recognize_one(file, formats)
        return
    # The files of one folder come one after the other.
    for _, group in groupby(find_files(path, "**/*"), key=_folder_of):
        for found in sorted(group, key=_oldest_first):
            if isinstance(found, Problem):
                if not _is_harmless_link(found):
                    yield found
            elif could_be_transcript(found.path) and not skip(found.path):
                for item in _recognize(found, formats):
                    yield found if _is_stranger(item, formats) else item


def _folder_of(found: FoundFile | Problem) -> Path:
    return _path_of(found).parent


def _path_of(found: FoundFile | Problem) -> Path:
    return Path(found.path or "") if isinstance(found, Problem) else found.path


def _oldest_first(found: FoundFile | Problem) -> tuple[str, int]:
    """Sort a log after its older parts that were moved aside, highest number first."""
    name = _path_of(found).name
    moved = _MOVED_ASIDE.search(name)
    if moved is None:
        return name, 0
    number = moved[1] or moved[2]
    return _MOVED_ASIDE.sub("", name), -100 if number == "bak" else -int(number) - 1


def could_be_transcript(path: Path | PurePosixPath) -> bool:
    return path.suffix.lower() in _SUFFIXES or bool(_MOVED_ASIDE.search(path.name))


def _is_harmless_link(problem: Problem) -> bool:
    """Whether a problem is about a link to a file that nobody would read."""
    path = _path_of(problem)
    return path.is_symlink() and not path.is_dir() and not could_be_transcript(path)


def _is_stranger(
    found: Source | Problem | FoundFile, formats: Sequence[FormatRow]
) -> bool:
    """Whether a database has only its name in common with one that we can read."""
    if not isinstance(found, Source) or found.entry:
        return False
    importer = next(row for row in formats if row.name == found.format).load()
    if importer.kind != "database":
        return False
    try:
        with open_foreign(found.file.path) as foreign, foreign_errors():
            return not importer.tables <= list_tables(foreign.db)
    except SourceUnreadable:
        # Reading it will say why.
        return False


def _recognize_one(
    file: Path, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    if not has_text_name(file):
        yield Problem("its name is not valid UTF-8", path=shown_name(file))
    # Opening a pipe or a device could wait for ever.
    elif not file.is_file():
        yield Problem("neither a file nor a folder", path=str(file))
    else:
        yield from _recognize(describe(file), formats)


def _recognize(
    file: FoundFile, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    try:
        head = read_head(file.path)
    except SourceUnreadable as exc:
        yield Problem(str(exc), path=str(file.path))
        return
    except (OSError, ValueError) as exc:
        yield Problem(f"it cannot be read ({_reason(exc)})", path=str(file.path))
        return
    if head.startswith(b"PK\x03\x04"):
        yield from _look_inside(file, formats)
        return
    try:
        row = find_format(file.path, head, formats)
    except Exception as exc:
        yield Problem(describe_failure(exc), path=str(file.path))
        return
    yield Source(row.host, row.name, file) if row else file


def _reason(exc: Exception) -> object:
    return getattr(exc, "strerror", None) or exc


def _look_inside(
    file: FoundFile, formats: Sequence[FormatRow]
) -> Iterator[Source | Problem | FoundFile]:
    found: list[FormatRow | str | None] = []
    # Entries can share their bytes, so the sum of their sizes is limited.
    left = max_unpacked(file.size_bytes)
    try:
        with open_file(file.path) as packed, open_zip(packed) as archive:
            for entry in archive.infolist():
                if _is_transcript(entry):
                    left -= entry.file_size
                if left < 0:
                    yield Problem(too_much(file.size_bytes), path=str(file.path))
                    return
                row = _recognize_entry(archive, entry, formats)
                found.append(row)
                if isinstance(row, FormatRow):
                    yield Source(row.host, row.name, file, entry.filename)
                elif row is not None:
                    yield Problem(row, path=str(file.path))
    except ZIP_ERRORS as exc:
        yield Problem(f"not a readable zip file ({exc})", path=str(file.path))
        return
    if not any(found):
        yield file


def _path_in_zip(entry: zipfile.ZipInfo) -> PurePosixPath:
    return PurePosixPath(entry.filename.replace("\\", "/"))


def _is_transcript(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry has a name that could be a transcript's."""
    # ZipInfo.is_dir() raises when there is no name at all.
    is_folder = entry.filename.endswith("/")
    return not is_folder and could_be_transcript(_path_in_zip(entry))


def _recognize_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, formats: Sequence[FormatRow]
) -> FormatRow | str | None:
    """The format of an entry, or what is wrong with it; None for unknown formats."""
    path = _path_in_zip(entry)
    if PureWindowsPath(path).anchor or ".." in path.parts:
        return f"an entry with an unsafe name, {entry.filename!r}"
    if not _is_transcript(entry):
        return None
    try:
        with archive.open(entry) as stream:
            row = find_format(Path(path), head_of(stream), formats)
    except ZIP_ERRORS as exc:
        return f"the entry {entry.filename!r} cannot be read ({exc})"
    if row is not None and row.load().kind == "database":
        return (
            f"the entry {entry.filename!r} is a database, which can only be read when "
            "it is unpacked"
        )
    return row


def find_format(
    path: Path, head: bytes, formats: Sequence[FormatRow]
) -> FormatRow | None:
    """The first format that recognizes a file of this name and beginning."""
    # The case of a suffix makes no difference.
    if path.suffix:
        path = path.with_suffix(path.suffix.lower())
    return next((row for row in formats if row.load().recognizes(path, head)), None)
