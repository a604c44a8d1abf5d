"""What a home has, at a glance, for the command line: its overview, and completion.

Nothing is made, changed or waited for, and only what is needed is loaded. So it is
quick, and whatever is wrong with a home, there is an answer.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from backstory.errors import StoreProblem
from backstory.ingest.hosts import HOSTS
from backstory.ingest.hosts.base import Host
from backstory.ingest.hosts.find import iter_sources
from backstory.ingest.seen_files import find_last_reading
from backstory.notes.beginning import read_beginning
from backstory.notes.find import FoundNote, NoteKind, find_memory_notes
from backstory.store.sqlite.glance import (
    NamedSession,
    list_named_sessions,
    list_project_folders,
    read_host_counts,
    read_unit_counts,
)
from backstory.system.machine import Machine
from backstory.values.history import Source
from backstory.values.reports import Overview

__all__ = [
    "NamedSession",
    "list_named_sessions",
    "list_project_folders",
    "list_read_hosts",
    "read_overview",
]

_HISTORY = "history.db"
_INDEX = "index.db"

Found = TypeVar("Found")


def read_overview(home: Path, machine: Machine) -> Overview:
    """How much a home holds. What cannot be read is a problem; nothing is raised."""
    problems: list[str] = []
    is_new = not _is_there(home / _HISTORY)
    hosts = [] if is_new else _try(read_host_counts, home, problems) or []
    has_index = _is_there(home / _INDEX)
    counts = _try(read_unit_counts, home, problems) if has_index else None
    sessions_by_host = {count.host: count.sessions for count in hosts if count.sessions}
    is_empty = not sessions_by_host and not problems
    notes = list(_iter_notes(home))
    return Overview(
        str(home),
        is_new=is_new,
        sessions_by_host=sessions_by_host,
        messages=sum(count.messages for count in hosts),
        last_read_at=find_last_reading(home),
        texts=counts.with_meaning if counts else 0,
        embedded=counts.embedded if counts else 0,
        facts=_count_facts(home) if NoteKind.MEMORY in notes else 0,
        logs=notes.count(NoteKind.DAILY_LOG),
        found_hosts=tuple(_iter_found_hosts(machine)) if is_empty else (),
        problems=tuple(problems),
    )


def list_read_hosts(home: Path) -> list[str]:
    """The agent programs of which something was read. Raises ``StoreProblem``."""
    return [count.host for count in read_host_counts(home)]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # Not to be reached now: opening it says why.
        return True


def _try(
    read: Callable[[Path], Found], home: Path, problems: list[str]
) -> Found | None:
    try:
        return read(home)
    except StoreProblem as exc:
        problems.append(str(exc))
        return None


def _iter_notes(home: Path) -> Iterator[NoteKind]:
    for found in find_memory_notes(home):
        if isinstance(found, FoundNote):
            yield found.kind


def _count_facts(home: Path) -> int:
    # Slow to import, and only needed where there is a long-term memory.
    from backstory.notes.facts import list_facts

    try:
        return len(list_facts(read_beginning(str(home / "memory"), "MEMORY.md")))
    except OSError:
        return 0


def _iter_found_hosts(machine: Machine) -> Iterator[str]:
    """The titles of the agent programs that have left something to read."""
    for host in HOSTS:
        if _has_sources(host, machine):
            yield host.title


def _has_sources(host: Host, machine: Machine) -> bool:
    found = iter_sources(host, machine)
    return any(isinstance(each, Source) for each in found)
