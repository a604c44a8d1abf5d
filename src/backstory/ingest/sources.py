"""What the agents on this machine have written: found, and read into the history."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path

from backstory.errors import SourceUnreadable
from backstory.ingest.hosts import HOSTS, get_host
from backstory.ingest.hosts.base import Host
from backstory.ingest.hosts.find import iter_in_projects, iter_sources
from backstory.ingest.importers import FORMATS, get_format
from backstory.ingest.importers.base import Format, FormatRow
from backstory.ingest.intake import Rules
from backstory.ingest.parsing.glimpse import describe_content
from backstory.ingest.parsing.recognize import could_be_transcript, iter_recognized
from backstory.ingest.parsing.streams import read_head
from backstory.ingest.seen_files import LOCK_NAME, STAMP_NAME, SeenFile
from backstory.ingest.sync import Found, HistorySync
from backstory.store.base.history import HistoryStore
from backstory.system.files import describe
from backstory.system.locks import locked, try_locked
from backstory.system.machine import Machine, absolute
from backstory.text.arguments import to_path
from backstory.values.history import FoundFile, Problem, Source
from backstory.values.reports import IndexReport, OnProgress, SourceSummary
from backstory.values.structs import FrozenStruct

# Problems in this format already say what is wrong with a line, and how to read an
# export.
_OWN_FORMAT = "backstory-jsonl"
# What to do with a file of another program.
_CONVERT = "convert it to Backstory's own JSON lines (docs/reference/jsonl-format.md)"


@cache
def _load_format(name: str) -> Format:
    return get_format(name).load()


def _describe(path: Path) -> str | None:
    try:
        return describe_content(read_head(path))
    except (OSError, ValueError, SourceUnreadable):
        return "its content cannot be read"


def _explain_unread(path: Path) -> str:
    """Why a file that a person named cannot be read, and what to do about it."""
    seen = _describe(path)
    if seen is None:
        return "the file is empty"
    return f"not in a format that Backstory knows: {seen}; to have it read, {_CONVERT}"


def _explain_nothing(
    path: Path, sync: HistorySync, problems: Sequence[Problem]
) -> IndexReport:
    """Report a file that a person named if no message was found in it.

    Not for folders, which often have files without messages, and not if a problem with
    the whole file already says why.
    """
    is_folder = os.path.isdir(path)  # noqa: PTH112 (False for any odd path)
    if is_folder or sync.met_messages or not sync.read_formats:
        return IndexReport()
    if not sync.met_facts and [problem.line for problem in problems] == [None]:
        return IndexReport()
    if problems and set(sync.read_formats) == {_OWN_FORMAT}:
        return IndexReport()
    formats = " and ".join(f"'{name}'" for name in sync.read_formats)
    reason = (
        f"read as {formats}, but no message in it was understood: {_describe(path)}; "
        f"if another program wrote it, {_CONVERT}"
    )
    return IndexReport(problems=(Problem(reason, path=str(path)),))


class LocalSources(FrozenStruct, kw_only=True):
    """Finds the sources of one machine and reads what is new in them.

    ``list_projects`` gives the folders that sessions ran in; ``more_folders`` are read
    whichever program wrote to them.
    """

    home: Path
    machine: Machine
    store: HistoryStore
    rules: Rules
    excluded_hosts: Collection[str]
    list_projects: Callable[[], list[str]]
    more_folders: Sequence[str]
    clock: Callable[[], datetime]
    on_deleted: Callable[[str, Sequence[str]], None]

    def index(
        self,
        host: str | None,
        path: str | Path | None,
        *,
        update: Callable[[], IndexReport],
        on_progress: OnProgress | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> IndexReport:
        """Read what is new; ``update`` then makes it findable."""
        hosts = [get_host(host)] if host is not None else list(HOSTS)
        path = None if path is None else to_path(path, "path")
        sync = self._sync()
        with locked(self.home / LOCK_NAME, on_wait=on_wait):
            if path is not None:
                report = sync.run(self._found_at(Path(path), host), on_progress)
                report += _explain_nothing(Path(path), sync, report.problems)
                return report + update()
            report = sync.run(self._found(hosts), on_progress)
            # The sessions just read may name more project folders to look in.
            report += sync.run(self._found_in_projects(hosts), None)
            if host is None:
                loose = list(sync.loose_problems)
                self.store.replace_loose_problems(loose, now=self.clock())
                (self.home / STAMP_NAME).touch(mode=0o600)
            return report + update()

    def read_some(self, files: Iterable[SeenFile], until: float) -> list[str] | None:
        """Read files in this order until a time; returns the paths of those left.

        Raises nothing for a file that is gone. None if another process is reading.
        """
        sync = self._sync()
        with try_locked(self.home / LOCK_NAME) as lock:
            if lock is None:
                return None
            found = chain.from_iterable(map(self._find_again, files))
            left = sync.run_until(found, until)
            loose = list(sync.loose_problems)
            self.store.add_loose_problems(loose, now=self.clock())
        return [str(source.file.path) for source in left]

    def _find_again(self, file: SeenFile) -> Iterator[Found]:
        path = Path(file.path)
        if self.rules.exclude(path):
            return
        if not file.format:
            if could_be_transcript(path):
                yield from iter_recognized(path, self._formats(None))
            return
        # It may have been deleted in the meantime.
        with suppress(OSError):
            yield Source(file.host, file.format, describe(path))

    def _sync(self) -> HistorySync:
        return HistorySync(
            self.store,
            _load_format,
            self.clock,
            companions=frozenset(row.name for row in FORMATS if row.is_companion),
            rules=self.rules,
            on_deleted=self.on_deleted,
        )

    def _found(self, hosts: Iterable[Host]) -> Iterator[Found]:
        for host in hosts:
            if host.name not in self.excluded_hosts:
                yield from iter_sources(host, self.machine)
        for folder in self.more_folders:
            yield from self._found_at(absolute(folder, self.machine), None)

    def _found_in_projects(self, hosts: Iterable[Host]) -> Iterator[Found]:
        projects = self.list_projects()
        for host in hosts:
            if host.name not in self.excluded_hosts:
                yield from iter_in_projects(host, projects)

    def _found_at(self, path: Path, host: str | None) -> Iterator[Found]:
        if self.rules.exclude(path):
            yield Problem("your settings exclude it", path=str(path))
            return
        is_folder = os.path.isdir(path)  # noqa: PTH112 (False for any odd path)
        for found in iter_recognized(path, self._formats(host), self.rules.exclude):
            if isinstance(found, FoundFile) and not is_folder:
                yield Problem(_explain_unread(found.path), path=str(path))
            else:
                yield found

    def _formats(self, host: str | None) -> list[FormatRow]:
        return [
            row
            for row in FORMATS
            if row.host not in self.excluded_hosts and host in (None, row.host)
        ]

    def sources(self) -> list[SourceSummary]:
        """What each agent program has on this machine, and how much was read."""
        sync = self._sync()
        known = self.store.list_sources()
        counts = {count.host: count for count in self.store.count_by_host()}
        projects = self.list_projects()
        summaries = []
        for host in HOSTS:
            found = [
                item
                for item in chain(
                    iter_sources(host, self.machine), iter_in_projects(host, projects)
                )
                if isinstance(item, Source) and not get_format(item.format).is_companion
            ]
            count = counts.pop(host.name, None)
            if not found and count is None:
                continue
            sources, indexed = sync.survey(found, known)
            summaries.append(
                SourceSummary(
                    host=host.name,
                    title=host.title,
                    places=self._places(host, found),
                    found=sources,
                    found_bytes=sum(item.file.size_bytes for item in found),
                    indexed=indexed,
                    sessions=count.sessions if count else 0,
                    messages=count.messages if count else 0,
                    excluded=host.name in self.excluded_hosts,
                )
            )
        for count in counts.values():
            summaries.append(
                SourceSummary(
                    host=count.host,
                    title=count.host,
                    places=(),
                    found=0,
                    found_bytes=0,
                    indexed=0,
                    sessions=count.sessions,
                    messages=count.messages,
                )
            )
        return summaries

    def _places(self, host: Host, found: Iterable[Source]) -> tuple[str, ...]:
        roots = (folder.locate(self.machine) for folder in host.folders)
        there = [str(root) for root in roots if root is not None and root.exists()]
        if there:
            return tuple(dict.fromkeys(there))
        return tuple(sorted({str(item.file.path.parent) for item in found}))
