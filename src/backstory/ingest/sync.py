"""Bring the history up to date with its sources.

Each source is read from where the last reading stopped, and what was read is written
in the same transaction as the place it was read to. So a reading can be killed at any
point and repeated at any time; the store is the same as after one clean reading.
``reading`` does that for one source.
"""

import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from backstory.errors import BackstoryError, SourceUnreadable
from backstory.ingest.importers.base import (
    DatabaseFormat,
    DocumentFormat,
    Format,
    LineFormat,
    Origin,
)
from backstory.ingest.intake import Intake, Rules
from backstory.ingest.parsing.databases import (
    foreign_errors,
    open_foreign,
)
from backstory.ingest.parsing.failures import describe_failure
from backstory.ingest.parsing.streams import is_seekable
from backstory.ingest.reading.beside import read_beside
from backstory.ingest.reading.changes import (
    ChangedWhileReading,
    OutOfTime,
    describe_file,
)
from backstory.ingest.reading.databases import DatabaseReading
from backstory.ingest.reading.documents import read_document
from backstory.ingest.reading.known import KnownSources
from backstory.ingest.reading.lines import LineReading, Start, find_start
from backstory.store.base.history import HistoryStore, SourceKey, SourceState, Written
from backstory.system.files import log_signature
from backstory.values.history import FoundFile, Problem, Source
from backstory.values.moments import Localize, read_as_local
from backstory.values.reports import IndexReport, OnProgress, ReadingProgress
from backstory.values.structs import Struct, field, replace

logger = logging.getLogger(__name__)

Found = Source | Problem | FoundFile

# How often a source that keeps being rewritten is read again.
_MAX_ATTEMPTS = 3
# The size of the largest file that is read from start to end before a search; of a
# database, only what changed is read.
_MAX_HURRIED_BYTES = 4 * 1024 * 1024
_MAX_HURRIED_DATABASE_BYTES = 100 * 1024 * 1024


class HistorySync(Struct):
    """Reads sources into a store.

    ``find_format`` returns the importer for a name; ``companions`` are the formats that
    only add facts to sessions from other sources.
    """

    store: HistoryStore
    find_format: Callable[[str], Format]
    clock: Callable[[], datetime]
    rules: Rules
    companions: frozenset[str] = frozenset()
    localize: Localize = read_as_local
    # Called with the host and the ids of sessions that are in their program's trash.
    on_deleted: Callable[[str, Sequence[str]], None] = lambda host, native_ids: None
    # Problems that belong to no source that was read; a dictionary keeps their order.
    loose_problems: dict[Problem, None] = field(default_factory=dict)
    # The formats that sources were read in, and how much was in them.
    read_formats: dict[str, None] = field(default_factory=dict)
    met_messages: int = 0
    met_facts: int = 0

    def run(
        self, found: Iterable[Found], on_progress: OnProgress | None = None
    ) -> IndexReport:
        """Read every source that changed; report what was read and what could not be.

        A found file of no known format is only counted.
        """
        # Companions come after the files that hold their sessions.
        everything = sorted(found, key=self._is_companion)
        progress = _Progress(on_progress, everything)
        sync_pass = _Pass(self, progress)
        try:
            for item in everything:
                progress.begin(item)
                match item:
                    case Source():
                        sync_pass.take(item)
                    case Problem():
                        sync_pass.report_problem(item)
                    case FoundFile():
                        sync_pass.unknown += 1
            progress.end()
        except _CallerFailed as failed:
            raise failed.error from None
        # Only now, because a file that was renamed is still known by its former name.
        self.store.delete_lost_sources(os.path.exists)
        return sync_pass.report()

    def run_until(self, found: Iterable[Found], until: float) -> list[Source]:
        """Read sources in this order until a time; returns those not read to the end.

        ``until`` is on the monotonic clock. Anything that takes long and cannot be
        interrupted is not begun.
        """
        sync_pass = _Pass(self, _Progress(None, ()), until)
        left = []
        for item in sorted(found, key=self._is_companion):
            match item:
                case Source():
                    if not sync_pass.take_in_time(item):
                        left.append(item)
                case Problem():
                    sync_pass.report_problem(item)
        return left

    def _is_companion(self, item: Found) -> bool:
        return isinstance(item, Source) and item.format in self.companions

    def survey(
        self, sources: Iterable[Source], known: Mapping[SourceKey, SourceState]
    ) -> tuple[int, int]:
        """How many files and conversations there are, and how many are up to date."""
        found = indexed = 0
        for source in sources:
            for key, version in self._versions(source):
                state = known.get(key)
                found += 1
                indexed += state is not None and state.signature == version
        return found, indexed

    def _versions(self, source: Source) -> Iterator[tuple[SourceKey, str]]:
        """What a source consists of: itself, or the conversations of a database."""
        importer = self.find_format(source.format)
        path = str(source.file.path)
        if importer.kind != "database":
            yield SourceKey(path, source.entry), source.file.signature
            return
        try:
            with open_foreign(source.file.path) as foreign, foreign_errors():
                for conversation in importer.list_conversations(foreign.db):
                    if conversation.is_deleted:
                        continue
                    yield SourceKey(path, conversation.native_id), conversation.version
        except Exception as exc:
            # The reason is reported when it is read.
            logger.debug("%s cannot be counted", path, exc_info=exc)
            yield SourceKey(path), source.file.signature


def _size(item: Found) -> int:
    match item:
        case Source():
            return item.file.size_bytes
        case FoundFile():
            return item.size_bytes
        case Problem():
            return 0


def _name(item: Found) -> str:
    return str(item.file.path) if isinstance(item, Source) else str(item.path)


class _CallerFailed(BaseException):
    """Wraps an error of the caller's own function, which is no fault of a source."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _Progress:
    """Reports how much has been read, and what was new in it."""

    def __init__(self, tell: OnProgress | None, items: Sequence[Found]) -> None:
        self._tell = tell
        self._total = sum(map(_size, items))
        self._left = len(items)
        self._before = 0
        self._size = 0
        self._name = ""
        # What was written so far, and how much of it is counted.
        self.written: list[Written] = []
        self._counted = 0
        self._sessions = 0
        self._messages = 0

    def begin(self, item: Found) -> None:
        """Continue with the next item."""
        self._before += self._size
        self._left -= 1
        self._size, self._name = _size(item), _name(item)
        self.advance_to(0)

    def advance_to(self, read_bytes: int) -> None:
        """Say how far the current item is read."""
        self._say(self._before + read_bytes, self._name)

    def end(self) -> None:
        self._say(self._total, "")

    def _say(self, done: int, name: str) -> None:
        if self._tell is None:
            return
        for each in self.written[self._counted :]:
            self._sessions += len(each.made_sessions)
            self._messages += each.new_messages
        self._counted = len(self.written)
        progress = ReadingProgress(
            done, self._total, name, self._left, self._sessions, self._messages
        )
        try:
            self._tell(progress)
        except Exception as exc:
            raise _CallerFailed(exc) from exc


class _Pass:
    """One pass over all sources, and its results so far."""

    def __init__(
        self, sync: HistorySync, progress: _Progress, until: float = math.inf
    ) -> None:
        self.unknown = 0
        self._until = until
        self._sync = sync
        self._progress = progress
        self._known = self._list_known()
        self._read = 0
        self._unchanged = 0
        self._excluded = 0
        self._read_bytes = 0
        self._problems: list[Problem] = []
        # Shared by all readings, because one that starts over has written something
        # before.
        self._written = progress.written
        self._made_sessions: set[tuple[str, str]] = set()

    def _list_known(self) -> KnownSources:
        return KnownSources(self._sync.store.list_sources(), self._sync.rules)

    # -- results ---

    def report(self) -> IndexReport:
        written = self._written
        return IndexReport(
            read=self._read,
            unchanged=self._unchanged,
            excluded=self._excluded,
            unknown=self.unknown,
            # A session without a message is not shown anywhere.
            new_sessions=sum(len(each.made_sessions) for each in written)
            if self._sync.met_messages
            else 0,
            new_messages=sum(each.new_messages for each in written),
            changed_messages=sum(each.changed_messages for each in written),
            read_bytes=self._read_bytes,
            problems=tuple(self._problems),
        )

    def report_problem(self, problem: Problem) -> None:
        """Report a problem that belongs to no source that was read."""
        # Several patterns may match the same place.
        if problem not in self._sync.loose_problems:
            self._sync.loose_problems[problem] = None
            self._problems.append(problem)

    def _finish(self, source: Source, intake: Intake) -> None:
        self._sync.met_messages += intake.met_messages
        self._sync.met_facts += intake.met_facts
        if not intake.is_companion:
            self._sync.read_formats[source.format] = None
            self._read += 1
        self._excluded += intake.newly_excluded
        self._problems.extend(intake.problems)

    def _count_unchanged(self, source: Source, number: int = 1) -> None:
        """Count sources that were not read; a companion is part of others."""
        if source.format not in self._sync.companions:
            self._unchanged += number

    # -- one source ---

    def take_in_time(self, source: Source) -> bool:
        """Read a source if it is new or changed; returns whether there was time."""
        try:
            self._check_time()
            self.take(source)
        except OutOfTime:
            return False
        return True

    def _check_time(self) -> None:
        if time.monotonic() >= self._until:
            raise OutOfTime

    def _check_size(self, source: Source, max_bytes: int) -> None:
        """Raise ``OutOfTime`` for a large source that could not be continued later."""
        if self._until < math.inf and source.file.size_bytes > max_bytes:
            raise OutOfTime

    def take(self, source: Source) -> None:
        """Read a source if it is new or changed."""
        if self._sync.rules.exclude(source.file.path):
            self._excluded += source.format not in self._sync.companions
            return
        try:
            self._take_as_it_is_now(source)
        except OutOfTime:
            raise
        except Exception as exc:
            # A problem with our own store ends the run, because every source would
            # fail.
            if isinstance(exc, BackstoryError) and not isinstance(
                exc, SourceUnreadable
            ):
                raise
            reason = describe_failure(exc)
            self.report_problem(Problem(reason, path=str(source.file.path)))

    def _take_as_it_is_now(self, source: Source) -> None:
        for _ in range(_MAX_ATTEMPTS):
            try:
                self._take_once(source)
                return
            except ChangedWhileReading:
                source = replace(source, file=describe_file(source.file.path))
                self._known = self._list_known()
        raise SourceUnreadable("it changes faster than it can be read")

    def _take_once(self, source: Source) -> None:
        importer = self._sync.find_format(source.format)
        key = _key_of(source, source.entry)
        match importer.kind:
            case "database":
                log = log_signature(source.file.path)
                signature = source.file.signature + log
                if not source.file.size_bytes and not log:
                    # Its program has created it, but not written to it yet.
                    self._count_unchanged(source)
                elif self._known.is_up_to_date(key, signature):
                    parts = self._known.iter_parts(source.file.path)
                    self._count_unchanged(source, sum(1 for _ in parts))
                else:
                    self._read_database(source, importer, signature)
            case _ if self._known.is_up_to_date(key, source.file.signature):
                self._count_unchanged(source)
            case "lines":
                self._read_lines(source, importer)
            case "document":
                self._read_document(source, importer)

    def _read_lines(self, source: Source, importer: LineFormat) -> None:
        start = find_start(source, self._known)
        if start.is_second or not is_seekable(source):
            self._check_size(source, _MAX_HURRIED_BYTES)
        intake = self._intake(
            source, source.entry, replaces=importer.revises, start=start
        )
        origin = self._origin(source, _look_beside(source, importer, intake))
        reading = LineReading(source, importer, origin, start=start)
        self._read_bytes += reading.read(intake, self._progress.advance_to)
        self._finish(source, intake)

    def _read_document(self, source: Source, importer: DocumentFormat) -> None:
        self._check_size(source, _MAX_HURRIED_BYTES)
        intake = self._intake(source, source.entry)
        origin = self._origin(source, _look_beside(source, importer, intake))
        read_document(source, importer, origin, intake=intake)
        self._read_bytes += source.file.size_bytes
        self._finish(source, intake)

    def _read_database(
        self, source: Source, importer: DatabaseFormat, signature: str
    ) -> None:
        self._check_size(source, _MAX_HURRIED_DATABASE_BYTES)
        origin = self._origin(source, {})
        with DatabaseReading.open(source, importer, signature) as reading:
            deleted = []
            for conversation in reading.iter_conversations():
                if conversation.is_deleted:
                    deleted.append(conversation.native_id)
                    continue
                key = _key_of(source, conversation.native_id)
                if self._known.is_up_to_date(key, conversation.version):
                    self._count_unchanged(source)
                    continue
                self._check_time()
                intake = self._intake(source, conversation.native_id)
                reading.read(conversation, origin, intake=intake)
                self._finish(source, intake)
        if deleted:
            self._sync.on_deleted(source.host, deleted)
        self._finish_database(source, signature)
        self._read_bytes += source.file.size_bytes

    def _finish_database(self, source: Source, signature: str) -> None:
        """Record that a database was read, if all its conversations were."""
        parts = list(self._list_known().iter_parts(source.file.path))
        # A conversation that could not be read, or whose session is missing, is read
        # again in the next run.
        is_done = all(part.signature for part in parts)
        self._intake(source, "").commit(
            SourceState(
                key=_key_of(source, ""),
                host=source.host,
                format=source.format,
                signature=signature if is_done else "",
                excluded_by=next((p.excluded_by for p in parts if p.excluded_by), ""),
            )
        )

    def _intake(
        self,
        source: Source,
        part: str,
        *,
        replaces: bool = True,
        start: Start | None = None,
    ) -> Intake:
        start = start or Start()
        return Intake(
            store=self._sync.store,
            rules=self._sync.rules,
            clock=self._sync.clock,
            host=source.host,
            key=_key_of(source, part),
            replaces=replaces,
            is_companion=source.format in self._sync.companions,
            after_line=start.lines_read,
            moved_from=start.moved_from,
            reread=set() if start.is_second else None,
            written=self._written,
            made_now=self._made_sessions,
            until=self._until,
        )

    def _origin(self, source: Source, beside: Mapping[str, str]) -> Origin:
        return Origin(
            path=Path(source.entry) if source.entry else source.file.path,
            modified=source.file.modified,
            localize=self._sync.localize,
            beside=beside,
        )


def _look_beside(
    source: Source, importer: LineFormat | DocumentFormat, intake: Intake
) -> Mapping[str, str]:
    read = partial(read_beside, report=intake.add)
    return importer.look_beside(source.file.path, read)


def _key_of(source: Source, part: str) -> SourceKey:
    return SourceKey(str(source.file.path), part)
