"""See which files of the agent programs are new or changed, without opening any.

This happens before searches, so it loads no importer and does as little as possible for
each file: a thousand of them take a few milliseconds.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from backstory.ingest.hosts import HOSTS
from backstory.ingest.hosts.base import Host, Pattern
from backstory.ingest.hosts.find import iter_places, iter_places_in_projects
from backstory.system.files import (
    find_entries,
    log_signature,
    signature_of,
    stat_entry,
)
from backstory.system.machine import Machine, absolute
from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct, Struct

LOCK_NAME = "index.lock"
# An empty file; its modification time says when the sources were last read.
STAMP_NAME = "last-read"
# Suffixes of databases, whose logs beside them change before they do.
DATABASE_SUFFIXES = (".db", ".sqlite")


def find_last_reading(home: Path) -> datetime | None:
    """When the sources were last read."""
    try:
        modified = (home / STAMP_NAME).stat().st_mtime
        return datetime.fromtimestamp(modified, UTC)
    except (OSError, OverflowError, ValueError):
        return None


class SeenFile(Struct):
    """A file as it looks now; without a format, it has to be recognized."""

    host: str
    format: str
    path: str
    signature: str
    size_bytes: int
    mtime_ns: int


class FileFinder(FrozenStruct, kw_only=True):
    """Finds the same files as a reading of all sources."""

    machine: Machine
    excluded_hosts: Collection[str]
    list_projects: Callable[[], list[str]]
    more_folders: Sequence[str]

    def iter_of_hosts(self, names: Collection[str] | None) -> Iterator[SeenFile]:
        """The files of the named agent programs, or of all; never of excluded ones."""
        projects: list[str] | None = None
        for host in HOSTS:
            if host.name in self.excluded_hosts:
                continue
            if names is not None and host.name not in names:
                continue
            if host.in_projects and projects is None:
                projects = self.list_projects()
            yield from self._iter_files(host, projects or [])

    def _iter_files(self, host: Host, projects: Iterable[str]) -> Iterator[SeenFile]:
        yield from _iter_matching(host.name, iter_places(host, self.machine))
        in_projects = iter_places_in_projects(host, projects)
        yield from _iter_matching(host.name, in_projects)

    def iter_in_folders(self) -> Iterator[SeenFile]:
        """The files in the additional folders, of any format."""
        for folder in self.more_folders:
            path = absolute(folder, self.machine)
            yield from _iter_below(path)


def _iter_matching(
    host: str, places: Iterable[tuple[Path, Pattern]]
) -> Iterator[SeenFile]:
    for root, pattern in places:
        for entry in find_entries(root, pattern.glob):
            # What is wrong with a folder is reported when the sources are read.
            if isinstance(entry, Problem):
                continue
            seen = _see(host, pattern.format, entry)
            if seen is not None:
                yield seen


def _iter_below(path: Path) -> Iterator[SeenFile]:
    root, glob = (path, "**/*") if path.is_dir() else (path.parent, path.name)
    for entry in find_entries(root, glob):
        seen = None if isinstance(entry, Problem) else _see("", "", entry)
        if seen is not None:
            yield seen


def _see(host: str, format_name: str, entry: os.DirEntry[str]) -> SeenFile | None:
    try:
        state = stat_entry(entry)
    except OSError:
        return None  # it was deleted a moment ago
    signature = signature_of(state)
    if entry.name.endswith(DATABASE_SUFFIXES):
        signature += log_signature(Path(entry.path))
    return SeenFile(
        host, format_name, entry.path, signature, state.st_size, state.st_mtime_ns
    )
