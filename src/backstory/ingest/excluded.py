"""What is kept of agent programs and folders that the settings exclude now.

Excluding something leaves alone what was read before; it is deleted only by forgetting.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.system.machine import both_names
from backstory.values.reports import KeptExcluded


def iter_kept_excluded(
    history: HistoryStore, *, hosts: Iterable[str], folders: Iterable[Path]
) -> Iterator[KeptExcluded]:
    """How much is kept of each, with the option by which ``forget`` names it."""
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
