"""The folders that the settings exclude, and what is still kept from them.

Excluding a folder does not delete what was read from it before; only forgetting does.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.system.files import is_inside
from backstory.system.machine import both_names
from backstory.values.identity import content_id
from backstory.values.reports import KeptExcluded
from backstory.values.structs import FrozenStruct


class ExcludedFolders(FrozenStruct):
    """The folders whose sessions must not be kept."""

    excluded_folders: tuple[Path, ...]

    @property
    def fingerprint(self) -> str:
        """Text that changes when other sessions would be excluded."""
        if not self.excluded_folders:
            return ""
        return content_id(*sorted(map(str, self.excluded_folders)))

    def exclude(self, path: str | Path) -> bool:
        """Whether this path is excluded under any of its names."""
        if not self.excluded_folders:
            return False
        names = {Path(path)}
        # A path from a transcript can be anything, for example contain a NUL.
        with suppress(OSError, ValueError, RuntimeError):
            names.add(Path(path).resolve())
        return any(
            is_inside(name, folder)
            for name in names
            for folder in self.excluded_folders
        )


def iter_kept_excluded(
    history: HistoryStore, *, hosts: Iterable[str], folders: Iterable[Path]
) -> Iterator[KeptExcluded]:
    """How much is kept of each, with the option of ``forget`` that selects it."""
    for host in hosts:
        yield from _count(history, "--host", host, [SessionFilter(host)])
    for folder in folders:
        names = [SessionFilter(folder=str(path)) for path in both_names(folder)]
        yield from _count(history, "--project", str(folder), names)


def _count(
    history: HistoryStore, option: str, name: str, filters: Iterable[SessionFilter]
) -> Iterator[KeptExcluded]:
    sessions = {
        each.session_id: each.message_count
        for where in filters
        for each in history.list_sessions(where)
    }
    if sessions:
        yield KeptExcluded(option, name, len(sessions), sum(sessions.values()))
