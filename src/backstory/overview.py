"""What a home has, at a glance, for the command line: its overview, and completion.

Nothing is created, changed or waited for, and only what is needed is loaded. So it is
quick, and gives an answer whatever is wrong with a home.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from backstory.errors import (
    BackstoryError,
    SourceUnreadable,
    StoreIncomplete,
    StoreProblem,
)
from backstory.ingest.hosts import HOSTS
from backstory.ingest.hosts.base import Host
from backstory.ingest.hosts.find import iter_sources
from backstory.ingest.seen_files import find_last_reading
from backstory.notes.find import FoundNote, NoteKind, find_memory_notes, read_note
from backstory.store.base.glance import Glance, NamedSession
from backstory.store.sqlite.glance import SqliteGlance
from backstory.system.machine import Machine
from backstory.values.history import Source
from backstory.values.reports import Overview

if TYPE_CHECKING:
    from backstory.address import DatabaseAddress
    from backstory.store.base.history import Counts
    from backstory.store.base.index import IndexCounts

__all__ = ["Glance", "open_glance", "read_overview"]

Found = TypeVar("Found")


def open_glance(home: Path, database: "DatabaseAddress | None") -> Glance:
    """Open a glance at a home: at its files or, if it is in one, its database."""
    return SqliteGlance(home) if database is None else _DatabaseGlance(database)


def check_complete(home: Path) -> None:
    """Raise ``StoreIncomplete`` if the files are an incomplete copy.

    If anything else is wrong with them, nothing is raised.
    """
    try:
        SqliteGlance(home).check_complete()
    except StoreIncomplete:
        raise
    except StoreProblem:
        return


def read_overview(
    home: Path, machine: Machine, database: "DatabaseAddress | None" = None
) -> Overview:
    """How much a home holds. What cannot be read is a problem; nothing is raised."""
    problems: list[str] = []
    glance = _try(lambda: open_glance(home, database), problems)
    has_history = glance and _try(glance.has_history, problems)
    hosts = (
        _try(glance.count_by_host, problems) if glance and has_history else []
    ) or []
    counts = _try(glance.count_units, problems) if glance and not problems else None
    sessions_by_host = {count.host: count.sessions for count in hosts if count.sessions}
    is_empty = not sessions_by_host and not problems
    notes = _try(lambda: _list_notes(home, glance), problems) or []
    kinds = [note.kind for note in notes]
    return Overview(
        str(home),
        is_new=has_history is False,
        sessions_by_host=sessions_by_host,
        messages=sum(count.messages for count in hosts),
        last_read_at=find_last_reading(home),
        texts=counts.with_meaning if counts else 0,
        embedded=counts.embedded if counts else 0,
        facts=_count_facts(notes),
        logs=kinds.count(NoteKind.DAILY_LOG),
        found_hosts=tuple(_iter_found_hosts(machine)) if is_empty else (),
        problems=tuple(dict.fromkeys(problems)),
    )


class _DatabaseGlance:
    """A ``Glance`` at a database, and at the notes in it."""

    def __init__(self, database: "DatabaseAddress") -> None:
        # Slow to import, and most homes are files.
        from backstory.stores import PostgresStores

        self._stores = PostgresStores(database)

    def has_history(self) -> bool:
        return self._stores.history.has_messages()

    def count_by_host(self) -> "list[Counts]":
        return self._stores.history.count_by_host()

    def count_units(self) -> "IndexCounts | None":
        place = self._stores.index_place
        if not place.has_index():
            return None
        return place.open_index(place.open_embeddings()).counts()

    def list_named_sessions(self, beginning: str, limit: int) -> list[NamedSession]:
        found = self._stores.history.find_sessions(beginning)
        return [
            NamedSession(each.native_id, each.host, each.title or "")
            for each in found[:limit]
        ]

    def list_project_folders(self) -> list[str]:
        return self._stores.history.list_projects()

    def list_notes(self) -> list[FoundNote]:
        found = self._stores.notes.find_notes()
        return [each for each in found if isinstance(each, FoundNote)]


def _try(read: Callable[[], Found], problems: list[str]) -> Found | None:
    try:
        return read()
    except BackstoryError as exc:
        problems.append(str(exc))
        return None


def _list_notes(home: Path, glance: Glance | None) -> list[FoundNote]:
    if isinstance(glance, _DatabaseGlance):
        return glance.list_notes()
    found = find_memory_notes(home)
    return [each for each in found if isinstance(each, FoundNote)]


def _count_facts(notes: list[FoundNote]) -> int:
    memory = next((each for each in notes if each.kind is NoteKind.MEMORY), None)
    if memory is None:
        return 0
    # Slow to import, and only needed if there is a long-term memory.
    from backstory.notes.facts import list_facts

    try:
        return len(list_facts(read_note(memory)))
    except SourceUnreadable:
        return 0


def _iter_found_hosts(machine: Machine) -> Iterator[str]:
    """The titles of the agent programs that have left something to read."""
    for host in HOSTS:
        if _has_sources(host, machine):
            yield host.title


def _has_sources(host: Host, machine: Machine) -> bool:
    found = iter_sources(host, machine)
    return any(isinstance(each, Source) for each in found)
