"""Read what agents have written since the last reading, before a search.

Only what can be read quickly, because the search waits for it. The rest is named in a
notice, and read by the background worker if there is one. Nothing here makes a search
fail.

Looking at every file takes a while if there are thousands, so it is not done before
each search: most searches only look at the files that were written last.
"""

import heapq
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import BackstoryError, StoreLocked
from backstory.ingest.excluded import ExcludedFolders
from backstory.ingest.hosts import HOSTS
from backstory.ingest.seen_files import (
    DATABASE_SUFFIXES,
    STAMP_NAME,
    FileFinder,
    SeenFile,
)
from backstory.store.base.history import HistoryStore, ReadFile
from backstory.system.fork_safety import reset_in_child

if TYPE_CHECKING:
    from backstory.ingest.sources import LocalSources

# How long a search may be kept waiting, and how much of that is always left for
# reading.
BUDGET_S = 0.2
_READING_S = 0.1
# The pause between two looks at all files is this many times as long as a look.
_REST_SHARE = 50
# The files looked at before every search.
_WATCHED = 20
# This file exists while there is something for the worker to read that a search had no
# time for.
_WANTED = "reading-wanted"
# The same, for a home in which no agent program was read before.
_ALL_WANTED = "first-reading-wanted"
_BEING_READ = (
    "another process is reading what agents have written; the newest may be missing"
)
_BEING_WRITTEN = "another process is writing history.db; the newest may be missing"
_INDEX_HINT = "run 'backstory index'"

# What a path looked like; None if there was nothing.
_Look = tuple[int, int] | None


class Refresh:
    """Brings the history of one home up to date before searches.

    ``start_worker`` is None if nothing may be done in the background.
    """

    def __init__(
        self,
        home: Path,
        store: HistoryStore,
        excluded: ExcludedFolders,
        finder: FileFinder,
        load_sources: "Callable[[], LocalSources]",
        *,
        start_worker: Callable[[], None] | None,
    ) -> None:
        self._home = home
        self._store = store
        self._excluded = excluded
        self._finder = finder
        self._load_sources = load_sources
        self._start_worker = start_worker
        self._due = 0.0
        self._notices: tuple[str, ...] = ()
        self._watched: dict[str, _Look] = {}
        # Files that were tried and still count as changed, because they cannot be read
        # or wait for another file. Each is not tried again until it looks different.
        self._tried: dict[str, str] = {}
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()

    # -- before a search ---

    def read_changed(self) -> tuple[str, ...]:
        """Read what changed if that is quick; returns notices."""
        with self._lock:
            if time.monotonic() < self._due and not self._has_moved():
                return self._notices
            try:
                self._notices = tuple(self._look_and_read())
            except StoreLocked:
                # Another process writes for longer than a search may wait.
                self.look_again()
                self._notices = (_BEING_WRITTEN,)
            except BackstoryError as exc:
                self._notices = (f"what agents wrote last cannot be read: {exc}",)
            return self._notices

    def look_again(self) -> None:
        """Look at all files before the next search, however soon it comes."""
        self._due = 0.0

    def _has_moved(self) -> bool:
        """Whether one of the files that were written last has changed again."""
        return any(_look_at(path) != look for path, look in self._watched.items())

    def _look_and_read(self) -> list[str]:
        started = time.monotonic()
        read = self._store.list_read_files()
        if not read and not self._has_read_all():
            notices = self._describe_unread()
            self._rest(started)
            return notices
        seen = self._see_all(read)
        self._watched = _choose_watched(seen)
        changed = self._choose_changed(seen, read)
        self._rest(started)
        if not changed:
            return []
        return self._read(changed, until=started + BUDGET_S)

    def _rest(self, started: float) -> None:
        now = time.monotonic()
        self._due = now + _REST_SHARE * (now - started)

    def _has_read_all(self) -> bool:
        """Whether all agent programs were read before, not only chosen ones."""
        return (self._home / STAMP_NAME).exists()

    def _see_all(self, read: Iterable[ReadFile]) -> list[SeenFile]:
        if not self._has_read_all():
            return list(self._finder.iter_of_hosts({each.host for each in read}))
        return [*self._finder.iter_of_hosts(None), *self._finder.iter_in_folders()]

    def _choose_changed(
        self, seen: Iterable[SeenFile], read: Iterable[ReadFile]
    ) -> list[SeenFile]:
        left_out_now = ("", self._excluded.fingerprint)
        known = {
            (each.path, each.signature)
            for each in read
            if each.excluded_by in left_out_now
        }
        return [
            file
            for file in seen
            if (file.path, file.signature) not in known
            and self._tried.get(file.path) != file.signature
            and not self._excluded.exclude(file.path)
        ]

    def _read(self, changed: list[SeenFile], *, until: float) -> list[str]:
        sources = self._load_sources()
        until = max(until, time.monotonic() + _READING_S)
        left = sources.read_some(_newest_first(changed), until)
        if left is None:
            self.look_again()
            return [_BEING_READ]
        self._tried |= {
            file.path: file.signature for file in changed if file.path not in left
        }
        if not left and self._has_read_all():
            with suppress(OSError):
                (self._home / STAMP_NAME).touch(mode=0o600)
        return self._leave([file for file in changed if file.path in left])

    def _leave(self, left: Sequence[SeenFile]) -> list[str]:
        """Leave files to the worker, or to the user; returns notices."""
        if not left:
            return []
        if self._start_worker is None:
            what_to_do = _INDEX_HINT
        else:
            # If nothing can be written here, a worker could not read anything either.
            with suppress(OSError):
                (self._home / _WANTED).touch(mode=0o600)
                self._start_worker()
            what_to_do = "the background worker reads the rest"
        return [
            f"{_count(len(files), 'file')} of {_title(host)} changed since last read; "
            f"{what_to_do}"
            for host, files in _by_host(left).items()
        ]

    def _describe_unread(self) -> list[str]:
        """Describe what there is to read in a home that is used for the first time.

        A home with messages of its own may not be meant to read those of other
        programs.
        """
        if self._store.has_messages():
            return []
        by_host = _by_host(self._finder.iter_of_hosts(None))
        sizes = [
            f"{_title(host)} ({_count(len(files), 'file')}, {_size(files)})"
            for host, files in by_host.items()
        ]
        if not sizes:
            return []
        return [f"nothing has been read yet of {', '.join(sizes)}; {_INDEX_HINT}"]

    def count_unread(self) -> dict[str, int]:
        """How many files of each agent program changed since they were read."""
        read = self._store.list_read_files()
        unread = self._choose_changed(self._see_all(read), read)
        return {_title(host): len(files) for host, files in _by_host(unread).items()}

    # -- in the background ---

    def want_all(self) -> bool:
        """Have the worker read all agent programs, if nothing was ever read.

        Returns whether it will.
        """
        if self._start_worker is None or self._has_read_all():
            return False
        if self._store.list_read_files():
            return False
        # If nothing can be written here, nothing can be read either.
        with suppress(OSError):
            (self._home / _ALL_WANTED).touch(mode=0o600)
            self._start_worker()
            return True
        return False

    def read_wanted(self, read: Callable[[str | None], object]) -> None:
        """Read what searches had no time for; ``read`` reads one host, or all."""
        wanted, all_wanted = self._home / _WANTED, self._home / _ALL_WANTED
        is_for_all = all_wanted.exists()
        if not wanted.exists() and not is_for_all:
            return
        wanted.unlink(missing_ok=True)
        all_wanted.unlink(missing_ok=True)
        if is_for_all or self._has_read_all():
            read(None)
            return
        hosts = {each.host for each in self._store.list_read_files()}
        for host in HOSTS:
            if host.name in hosts:
                read(host.name)


def _look_at(path: str) -> _Look:
    try:
        state = os.stat(path)  # noqa: PTH116 (no Path: this is done very often)
    except (OSError, ValueError):
        return None
    return state.st_size, state.st_mtime_ns


def _choose_watched(seen: Iterable[SeenFile]) -> dict[str, _Look]:
    """The files that were written last, and their folders, in which new ones appear."""
    watched: dict[str, _Look] = {}
    for file in heapq.nlargest(_WATCHED, seen, key=lambda file: file.mtime_ns):
        watched[file.path] = (file.size_bytes, file.mtime_ns)
        if file.path.endswith(DATABASE_SUFFIXES):
            watched[f"{file.path}-wal"] = _look_at(f"{file.path}-wal")
        folder = os.path.dirname(file.path)  # noqa: PTH120
        for each in (folder, os.path.dirname(folder)):  # noqa: PTH120
            watched.setdefault(each, _look_at(each))
    return watched


def _newest_first(files: Iterable[SeenFile]) -> list[SeenFile]:
    """The files, newest first, but the parts of one log in their own order."""
    logs: dict[str, list[SeenFile]] = {}
    for file in files:
        folder, name = os.path.split(file.path)
        # A log that was moved aside has a number after its name: a.jsonl.1.
        stem = name.partition(".")[0] or name
        logs.setdefault(f"{folder}/{stem}", []).append(file)
    newest = sorted(logs.values(), key=_last_written, reverse=True)
    return [file for log in newest for file in log]


def _last_written(files: Collection[SeenFile]) -> int:
    return max(file.mtime_ns for file in files)


def _by_host(files: Iterable[SeenFile]) -> dict[str, list[SeenFile]]:
    found: dict[str, list[SeenFile]] = {}
    for file in files:
        found.setdefault(file.host, []).append(file)
    return found


def _title(host: str) -> str:
    titles = {each.name: each.title for each in HOSTS}
    return titles.get(host, "the additional folders")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _size(files: Iterable[SeenFile]) -> str:
    size_kb = sum(file.size_bytes for file in files) / 1_000
    return f"{size_kb / 1_000:,.1f} MB" if size_kb >= 1_000 else f"{size_kb:.0f} KB"
