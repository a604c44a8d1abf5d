"""Where the notes of a home are: files in its folder, or rows of a database.

Both identify a note by its name, such as ``MEMORY.md`` or ``daily/2026-02-25.md``, and
replace it only if it is still as it was read.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from errno import ENOENT
from pathlib import Path
from typing import Protocol

from backstory.errors import SourceUnreadable, StoreUnwritable
from backstory.notes.beginning import MAX_NOTE_BYTES
from backstory.notes.find import (
    FoundNote,
    NoteKind,
    find_memory_notes,
    parse_log_name,
)
from backstory.notes.note_versions import (
    decode_note,
    read_version,
    real_path,
    remove_leftovers,
)
from backstory.store.base.notes import NoteEntry, NoteStore
from backstory.system.files import (
    make_private_folder,
    read_small_file,
    replace_file,
    storing,
    write_new,
)
from backstory.system.locks import Locks, locked
from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct

MEMORY_NAME = "MEMORY.md"
REMOVED_NAME = "removed-notes.json"
_LOGS = "daily/"
_BACKUPS = "backups"
_LOCK_NAME = "notes"
_MAX_RECORD_BYTES = 20_000_000


class ReadNote(Protocol):
    """A note as it was read; ``raw`` is None if there was none."""

    @property
    def raw(self) -> bytes | None: ...

    @property
    def text(self) -> str:
        """Raises ``SourceUnreadable`` if it is not UTF-8."""
        ...

    def replace(self, new: bytes) -> bool:
        """Replace the content; returns False if it is no longer what was read."""
        ...


class NotesPlace(Protocol):
    """Reads, replaces and lists the notes of one home."""

    @property
    def folder(self) -> Path:
        """The folder of the notes, in the form in which it is shown."""
        ...

    def path(self, name: str) -> Path:
        """The path of a note, in the form in which it is shown."""
        ...

    def changing(self, name: str | None = None) -> AbstractContextManager[None]:
        """Hold the lock under which notes are changed; ``name`` is the one to replace.

        Everything that is needed to replace it is prepared.
        """
        ...

    def read(self, name: str) -> ReadNote:
        """A note as it is now. Raises ``SourceUnreadable``."""
        ...

    def add(self, name: str, raw: bytes) -> None:
        """Write a new note. Raises ``StoreUnwritable`` if there is one."""
        ...

    def delete(self, name: str) -> None:
        """Delete a note, if it exists."""
        ...

    def saved_at(self, name: str) -> datetime:
        """The local time at which a note was saved."""
        ...

    def list_backups(self) -> list[str]:
        """The names of the backups of MEMORY.md."""
        ...

    def find_notes(self) -> Iterator[FoundNote | Problem]:
        """The long-term memory, then the daily logs by day, if they exist."""
        ...


# -- files ----------------------------------------------------------------------------


class FileNotes:
    """The notes in the folder of a home; ``check`` raises if they must not be used."""

    def __init__(self, home: Path, check: Callable[[], None] = lambda: None) -> None:
        self._home = home
        self._check = check
        self.folder = home / "memory"

    def path(self, name: str) -> Path:
        return (self._home if name == REMOVED_NAME else self.folder) / name

    @contextmanager
    def changing(self, name: str | None = None) -> Iterator[None]:
        self._check()
        path = self.path(name or MEMORY_NAME)
        make_private_folder(path.parent)
        with locked(self._home / f"{_LOCK_NAME}.lock"):
            if name is not None:
                remove_leftovers(real_path(path, self.folder).parent)
            yield

    def read(self, name: str) -> ReadNote:
        self._check()
        path = self.path(name)
        if name == REMOVED_NAME:
            return _RecordFile(path, _read_record(path))
        return read_version(path, self.folder)

    def add(self, name: str, raw: bytes) -> None:
        path = self.path(name)
        make_private_folder(path.parent)
        with storing(path):
            write_new(path, raw)

    def delete(self, name: str) -> None:
        path = self.path(name)
        with storing(path):
            real_path(path, self.folder).unlink(missing_ok=True)

    def saved_at(self, name: str) -> datetime:
        with suppress(OverflowError, ValueError):
            return datetime.fromtimestamp(self.path(name).stat().st_mtime)
        return _LONG_AGO

    def list_backups(self) -> list[str]:
        return self._list(f"{_BACKUPS}/MEMORY-*.md")

    def list_loose_copies(self) -> list[str]:
        """The copies that an editor made, and texts that were set aside."""
        patterns = ("MEMORY-edited-*.md", "MEMORY.md.bak", "MEMORY.md~")
        return [name for each in patterns for name in self._list(each)]

    def _list(self, pattern: str) -> list[str]:
        with storing(self.folder):
            found = self.folder.glob(pattern)
            return sorted(each.relative_to(self.folder).as_posix() for each in found)

    def find_notes(self) -> Iterator[FoundNote | Problem]:
        return find_memory_notes(self._home)

    def write_aside(self, raw: bytes, name: str) -> Path:
        """Write a new file, which is not searched, with a number after its stem."""
        stem, dot, suffix = name.partition(".")
        make_private_folder(self.folder)
        with storing(self.folder / name):
            for number in range(1, 10_000):
                path = self.folder / (f"{stem}-{number}{dot}{suffix}")
                with suppress(FileExistsError):
                    write_new(path, raw)
                    return path
        raise StoreUnwritable(f"{self.folder}: too many files named {stem}")


# Four digits on every system.
_LONG_AGO = datetime.min.replace(year=1000)


class _RecordFile(FrozenStruct):
    """The record of what was removed: a file beside the folder of the notes."""

    path: Path
    raw: bytes | None

    @property
    def text(self) -> str:
        return decode_note(self.raw, self.path)

    def replace(self, new: bytes) -> bool:
        with storing(self.path):
            replace_file(self.path, new, instead_of=self.raw)
        return True


def _read_record(path: Path) -> bytes | None:
    try:
        return read_small_file(path, max_bytes=_MAX_RECORD_BYTES)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise SourceUnreadable(f"{path}: {exc.strerror}") from exc


# -- rows -----------------------------------------------------------------------------


class DatabaseNotes:
    """The notes in a database, which several machines share."""

    def __init__(self, store: NoteStore, locks: Locks) -> None:
        self._store = store
        self._locks = locks
        self.folder = Path("memory")

    def path(self, name: str) -> Path:
        return self.folder / name

    @contextmanager
    def changing(self, name: str | None = None) -> Iterator[None]:
        with self._locks.locked(_LOCK_NAME):
            yield

    def read(self, name: str) -> ReadNote:
        version, raw = self._store.read(name) or (None, None)
        return _Row(self._store, self.path(name), name, version, raw)

    def add(self, name: str, raw: bytes) -> None:
        if not self._store.replace(name, raw, version=None):
            raise StoreUnwritable(f"{self.path(name)}: it exists already")

    def delete(self, name: str) -> None:
        self._store.delete(name)

    def saved_at(self, name: str) -> datetime:
        for entry in self._store.list_entries():
            if entry.name == name:
                return datetime.fromtimestamp(entry.modified_at / 1_000_000)
        return _LONG_AGO

    def list_backups(self) -> list[str]:
        entries = self._store.list_entries()
        return [each.name for each in entries if each.name.startswith(f"{_BACKUPS}/")]

    def find_notes(self) -> Iterator[FoundNote | Problem]:
        for entry in self._store.list_entries():
            if entry.name == MEMORY_NAME:
                yield self._describe(entry, NoteKind.MEMORY)
            elif entry.name.startswith(_LOGS):
                yield self._describe(entry, NoteKind.DAILY_LOG)

    def _describe(self, entry: NoteEntry, kind: NoteKind) -> FoundNote:
        return FoundNote(
            kind,
            self.path(entry.name),
            None,
            f"version {entry.version}",
            entry.modified_at * 1_000,
            parse_log_name(entry.name.removeprefix(_LOGS)),
            entry.size_bytes,
            read_bytes=_ReadBeginning(self._store, entry.name),
        )


class _ReadBeginning(FrozenStruct):
    """Reads the beginning of a note; two of the same note are equal."""

    store: NoteStore
    name: str

    def __call__(self) -> bytes:
        found = self.store.read(self.name)
        if found is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        return found[1][: MAX_NOTE_BYTES + 1]


class _Row(FrozenStruct):
    """A note as it was read from a database."""

    store: NoteStore
    path: Path
    name: str
    version: int | None
    raw: bytes | None

    @property
    def text(self) -> str:
        return decode_note(self.raw, self.path)

    def replace(self, new: bytes) -> bool:
        return self.store.replace(self.name, new, version=self.version)
