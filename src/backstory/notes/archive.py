"""The notes of a home as a zip file, which can be merged into another home's notes.

An archive may come from anybody. It is read and checked as a whole before any of it is
used, and nothing is ever unpacked under a name that it gives.
"""

import io
import re
import stat
import time
import zipfile
import zlib
from collections.abc import Mapping
from datetime import date
from pathlib import Path, PurePosixPath
from typing import NoReturn

from backstory.errors import SourceUnreadable, StoreUnwritable
from backstory.notes.beginning import MAX_NOTE_BYTES
from backstory.notes.find import (
    parse_log_name,
)
from backstory.notes.notebook import Notebook
from backstory.system.files import open_file, storing, write_new
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.structs import FrozenStruct

MAX_ENTRIES = 20_000
MAX_ARCHIVE_BYTES = 200_000_000

_ZIP_ERRORS = (
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    KeyError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_ENTRY = re.compile(r"(?:memory/)?(?:MEMORY\.md|daily/([^/]+))")
_DRIVE = re.compile(r"[A-Za-z]:")
_IS_ENCRYPTED = 0x1
_MAX_NAME_CHARS = 200


class Archive(FrozenStruct):
    """The notes in an archive; ``skipped`` are the names of its other files."""

    memory: str | None
    logs: Mapping[date, str]
    skipped: tuple[str, ...] = ()


class Merged(FrozenStruct):
    """What an archive added: how many blocks, and to how many logs."""

    memory_blocks: int
    log_blocks: int
    logs: int


def merge_archive(notebook: Notebook, archive: Archive) -> Merged:
    """Add to the notes what only the archive has. Can be repeated after a crash."""
    memory_blocks = notebook.merge_memory(archive.memory) if archive.memory else 0
    added = [
        notebook.merge_log(day, text) for day, text in sorted(archive.logs.items())
    ]
    return Merged(memory_blocks, sum(added), sum(count > 0 for count in added))


# -- writing --------------------------------------------------------------------------


def write_archive(notebook: Notebook, path: Path) -> int:
    """Write all notes to a new zip file; returns the number of files in it.

    Raises ``StoreUnwritable``, also if a file with that name already exists.
    """
    made = io.BytesIO()
    count = 0
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in notebook.iter_files():
            info = zipfile.ZipInfo(file.name, _zip_time(file.mtime_ns))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFREG | 0o600) << 16
            archive.writestr(info, file.raw)
            count += 1
    try:
        with storing(path):
            write_new(path, made.getvalue())
    except StoreUnwritable as exc:
        raise StoreUnwritable(str(exc), hint="choose another name") from exc
    return count


def _zip_time(mtime_ns: int) -> tuple[int, int, int, int, int, int]:
    """The time in UTC, limited to the years that a zip file can express."""
    at = time.gmtime(min(max(mtime_ns // 1_000_000_000, 315_532_800), 4_354_819_198))
    return (at.tm_year, at.tm_mon, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec)


# -- reading --------------------------------------------------------------------------


def read_archive(path: Path) -> Archive:
    """All notes in a zip file. Raises ``SourceUnreadable``.

    Other files in it are skipped. A name that leads out of it, a link or a file that is
    too large makes the entire archive unusable.
    """
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            return _read_entries(archive, path)
    except FileNotFoundError as exc:
        raise SourceUnreadable(f"{path}: {exc.strerror}") from exc
    except _ZIP_ERRORS as exc:
        reason = (isinstance(exc, OSError) and exc.strerror) or exc
        raise SourceUnreadable(f"{path}: not a readable zip file ({reason})") from exc


def _read_entries(archive: zipfile.ZipFile, path: Path) -> Archive:
    entries = [info for info in archive.infolist() if not info.is_dir()]
    if len(entries) > MAX_ENTRIES:
        _refuse(path, f"{len(entries):,} files; the limit is {MAX_ENTRIES:,}")
    texts: dict[date | None, str] = {}
    skipped: list[str] = []
    total = 0
    for info in entries:
        shown = one_line(neutralize(info.filename), _MAX_NAME_CHARS)
        _check_entry(info, shown, path)
        found = _ENTRY.fullmatch(info.filename)
        day = parse_log_name(found[1]) if found and found[1] else None
        if found is None or (found[1] and day is None):
            skipped.append(shown)
            continue
        if day in texts:
            _refuse(path, f"it contains '{shown}' twice")
        raw = _read_entry(archive, info, shown, path)
        total += len(raw)
        if total > MAX_ARCHIVE_BYTES:
            _refuse(path, f"its notes have more than {MAX_ARCHIVE_BYTES:,} bytes")
        try:
            texts[day] = raw.decode("utf-8")
        except UnicodeDecodeError:
            _refuse(path, f"'{shown}' is not UTF-8")
    if not texts:
        _refuse(path, "it contains neither a MEMORY.md nor a daily log")
    logs = {day: text for day, text in texts.items() if day is not None}
    return Archive(texts.get(None), logs, tuple(skipped))


def _check_entry(info: zipfile.ZipInfo, shown: str, path: Path) -> None:
    name = info.filename
    leads_out = name.startswith("/") or ".." in PurePosixPath(name).parts
    if leads_out or "\\" in name or _DRIVE.match(name):
        _refuse(path, f"'{shown}' is not a path inside the archive")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        _refuse(path, f"'{shown}' is a link or another special file")
    if info.flag_bits & _IS_ENCRYPTED:
        _refuse(path, f"'{shown}' is encrypted")


def _read_entry(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, shown: str, path: Path
) -> bytes:
    # The declared size may be wrong.
    with archive.open(info) as stream:
        raw = stream.read(MAX_NOTE_BYTES + 1)
    if len(raw) > MAX_NOTE_BYTES:
        _refuse(
            path,
            f"'{shown}' has more than {MAX_NOTE_BYTES:,} bytes, the limit of a note",
        )
    return raw


def _refuse(path: Path, reason: str) -> NoReturn:
    raise SourceUnreadable(f"{path}: {reason}", hint="nothing was imported")
