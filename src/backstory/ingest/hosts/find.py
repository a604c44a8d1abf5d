"""Find what the agent programs on this machine have written."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from backstory.ingest.hosts.base import Host, Pattern
from backstory.system.files import find_files
from backstory.system.machine import Machine
from backstory.values.history import Problem, Source


def iter_sources(host: Host, machine: Machine) -> Iterator[Source | Problem]:
    """The files in a host's own folders."""
    for root, pattern in iter_places(host, machine):
        yield from _matching(host, root, pattern)


def iter_in_projects(host: Host, projects: Iterable[str]) -> Iterator[Source | Problem]:
    """The files that a host keeps in the folders people work in."""
    for root, pattern in iter_places_in_projects(host, projects):
        yield from _matching(host, root, pattern)


def iter_places(host: Host, machine: Machine) -> Iterator[tuple[Path, Pattern]]:
    """A host's own folders, and what to look for in each."""
    for folder in host.folders:
        root = folder.locate(machine)
        if root is not None:
            for pattern in folder.patterns:
                yield root, pattern


def iter_places_in_projects(
    host: Host, projects: Iterable[str]
) -> Iterator[tuple[Path, Pattern]]:
    """The folders people work in, and a host's files to look for in each."""
    for project in projects:
        for pattern in host.in_projects:
            yield Path(project), pattern


def _matching(host: Host, root: Path, pattern: Pattern) -> Iterator[Source | Problem]:
    for found in find_files(root, pattern.glob):
        if isinstance(found, Problem):
            yield found
        else:
            yield Source(host.name, pattern.format, found)
