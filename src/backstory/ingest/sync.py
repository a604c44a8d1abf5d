"""Bring the history up to date with its sources.

Each source is read from where the last reading stopped, and what was read is written
in the same transaction as the place it was read to. So a reading can be killed at any
point and repeated at any time; the store is the same as after one clean reading.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from backstory.errors import SourceUnreadable
from backstory.ingest.importers.base import (
    Conversation,
    DatabaseFormat,
    DocumentFormat,
    Format,
    LineFormat,
    Memo,
    Origin,
    Record,
)
from backstory.ingest.importers.databases import (
    ForeignDatabase,
    foreign_errors,
    list_tables,
    log_signature,
    open_foreign,
)
from backstory.ingest.importers.lines import LineReader
from backstory.ingest.importers.opening import is_seekable, open_source
from backstory.ingest.intake import Intake, Rules
from backstory.store.base.history import HistoryStore, SourceKey, SourceState, Written
from backstory.system.files import describe, prefix_hash
from backstory.values.history import FoundFile, Problem, Source
from backstory.values.moments import Localise, from_microseconds, read_as_local
from backstory.values.reports import IndexReport, OnProgress

Found = Source | Problem | FoundFile

# A source that is rewritten while it is read is read again, but not for ever.
_MAX_ATTEMPTS = 3


class _ChangedMeanwhile(Exception):
    """A source was rewritten while it was being read."""


@dataclass(slots=True)
class HistorySync:
    """Reads sources into a store.

    ``find_format`` gives the importer of a name; ``companions`` are the formats that
    only say more about sessions which other sources hold.
    """

    store: HistoryStore
    find_format: Callable[[str], Format]
    clock: Callable[[], datetime]
    companions: frozenset[str] = frozenset()
    rules: Rules = field(default_factory=Rules)
    localise: Localise = read_as_local
    # A dictionary for its order: what no source's reading has written down.
    loose_problems: dict[Problem, None] = field(default_factory=dict)

    def run(
        self, found: Iterable[Found], on_progress: OnProgress | None = None
    ) -> IndexReport:
        """Read every source that changed; report what was read and what could not be.

        A found file that is no source is of no known format; it is only counted.
        """
        # What speaks of sessions comes after what holds them, wherever it lies.
        everything = sorted(found, key=self._is_companion)
        total = sum(_size(item) for item in everything)
        reading = _Reading(self, self.store.list_sources())
        done = 0
        for item in everything:
            if on_progress is not None:
                reading.on_bytes = partial(_tell, on_progress, done, total, _name(item))
                reading.on_bytes(0)
            match item:
                case Source():
                    reading.take(item)
                case Problem():
                    reading.report_problem(item)
                case FoundFile():
                    reading.unknown += 1
            done += _size(item)
        if on_progress is not None:
            on_progress(total, total, "")
        return reading.report()

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
                for unit in importer.list_conversations(foreign.db):
                    yield SourceKey(path, unit.native_id), unit.version
        except SourceUnreadable:
            yield SourceKey(path), source.file.signature


def _tell(tell: OnProgress, done: int, total: int, name: str, read_bytes: int) -> None:
    tell(done + read_bytes, total, name)


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


@dataclass(slots=True)
class _Reading:
    """One pass over all sources, and what has come of it so far."""

    sync: HistorySync
    known: dict[SourceKey, SourceState]
    read: int = 0
    unchanged: int = 0
    excluded: int = 0
    unknown: int = 0
    read_bytes: int = 0
    written: list[Written] = field(default_factory=list)
    made_now: set[tuple[str, str]] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    on_bytes: Callable[[int], None] | None = None
    _by_file_id: dict[str, SourceState] | None = None

    def report(self) -> IndexReport:
        return IndexReport(
            read=self.read,
            unchanged=self.unchanged,
            excluded=self.excluded,
            unknown=self.unknown,
            new_sessions=sum(len(written.made_sessions) for written in self.written),
            new_messages=sum(written.new_messages for written in self.written),
            changed_messages=sum(written.changed_messages for written in self.written),
            read_bytes=self.read_bytes,
            problems=tuple(self.problems),
        )

    def report_problem(self, problem: Problem) -> None:
        """Report a problem that no source's reading will write down."""
        # Several patterns may lead past the same place.
        if problem not in self.sync.loose_problems:
            self.sync.loose_problems[problem] = None
            self.problems.append(problem)

    def take(self, source: Source) -> None:
        """Read a source if it is new or changed."""
        if self.sync.rules.exclude(source.file.path):
            self.excluded += 1
            return
        try:
            for _ in range(_MAX_ATTEMPTS):
                try:
                    self._take_once(source)
                    return
                except _ChangedMeanwhile:
                    source = replace(source, file=_describe(source.file.path))
                    self.known = self.sync.store.list_sources()
            raise SourceUnreadable("it changes faster than it can be read")
        except SourceUnreadable as exc:
            self.report_problem(Problem(str(exc), path=str(source.file.path)))

    def _take_once(self, source: Source) -> None:
        importer = self.sync.find_format(source.format)
        signature = source.file.signature
        if importer.kind == "database":
            signature += log_signature(source.file.path)
        state = self.known.get(SourceKey(str(source.file.path), source.entry))
        if state is not None and state.signature == signature and self._holds(state):
            is_database = importer.kind == "database"
            self.unchanged += self._count_units(source) if is_database else 1
            return
        match importer.kind:
            case "lines":
                self._take_lines(source, importer, state)
            case "document":
                self._take_document(source, importer)
            case "database":
                self._take_database(source, importer, signature)

    def _count_units(self, source: Source) -> int:
        """How many conversations of a database have been read."""
        path = str(source.file.path)
        return sum(key.path == path and key.part != "" for key in self.known)

    def _known_units(self, source: Source) -> list[SourceState]:
        """The conversations of a database, as they are known after reading it."""
        path = str(source.file.path)
        known = self.sync.store.list_sources()
        return [state for key, state in known.items() if key.path == path and key.part]

    def _holds(self, state: SourceState) -> bool:
        """Whether what was left out then would be left out now."""
        return state.excluded_by in ("", self.sync.rules.fingerprint)

    def _intake(self, source: Source, unit: str, *, replaces: bool) -> Intake:
        return Intake(
            self.sync.store,
            self.sync.rules,
            self.sync.clock,
            source.host,
            SourceKey(str(source.file.path), unit),
            replaces,
            is_companion=source.format in self.sync.companions,
            # Shared: a reading that starts again has written all the same.
            written=self.written,
            made_now=self.made_now,
        )

    def _finish(self, intake: Intake) -> None:
        # A companion that waits for its session is looked at in every run.
        is_waiting = bool(intake.written) and intake.written[-1].is_waiting
        self.read += not is_waiting
        self.unchanged += is_waiting
        self.excluded += intake.newly_excluded
        self.problems.extend(intake.problems)

    def _origin(self, source: Source, beside: Mapping[str, str]) -> Origin:
        return Origin(
            path=Path(source.entry) if source.entry else source.file.path,
            modified=from_microseconds(source.file.mtime_ns // 1000),
            localise=self.sync.localise,
            beside=beside,
        )

    # -- lines ---

    def _take_lines(
        self, source: Source, importer: LineFormat, state: SourceState | None
    ) -> None:
        path = source.file.path
        is_plain = is_seekable(source)
        start, moved_from = self._find_start(source, state)
        intake = self._intake(source, source.entry, replaces=importer.revises)
        intake.moved_from = moved_from
        intake.after_line = start.lines_read if start else 0
        intake.reread = set() if start is None and state is not None else None
        memo: Memo = dict(start.memo) if start else {}
        intake.restore(memo)
        if not source.file.size_bytes:
            intake.add(Problem("the file is empty"))
        before = _prefix_hash(path, source.file.size_bytes) if is_plain else ""
        with open_source(source) as file:
            reader = LineReader(file)
            if start is not None:
                file.seek(start.read_to)
                reader.read_to, reader.line = start.read_to, start.lines_read

            def progress(*, is_last: bool) -> SourceState:
                state = SourceState(
                    key=intake.key,
                    host=source.host,
                    format=source.format,
                    # Until the end is reached, the source counts as changed.
                    signature=source.file.signature if is_last else "",
                    file_id=source.file.file_id if is_plain else "",
                    read_to=reader.read_to if is_plain else 0,
                    lines_read=reader.line if is_plain else 0,
                    prefix_hash=_prefix_hash(path, reader.read_to) if is_plain else "",
                    memo=intake.save(memo, is_last=is_last),
                    excluded_by=intake.excluded_by,
                )
                # Looked at after the hash: if the file is still the one that was opened
                # here, it was when the hash was taken.
                if before and _prefix_hash(path, source.file.size_bytes) != before:
                    raise _ChangedMeanwhile
                return state

            def records() -> Iterator[Record]:
                for item in reader.records():
                    # The parser is done with all lines up to reader.line, and what it
                    # found in them has been taken in.
                    if intake.is_full and intake.last_line <= reader.line:
                        # A second reading cannot go on in the middle: it would not know
                        # which ids it has met. Killed, it starts again.
                        is_second = intake.reread is not None
                        intake.commit(None if is_second else progress(is_last=False))
                        if self.on_bytes is not None:
                            self.on_bytes(reader.read_to)
                    if isinstance(item, Record):
                        yield item
                    else:
                        intake.add(item, item.line)

            origin = self._origin(source, importer.look_beside(path))
            for item in importer.parse(records(), origin, memo):
                intake.add(item, reader.line + 1)
            if not is_plain and reader.line == 0 and not intake.problems:
                # A compressed file that is cut off gives nothing, and no error.
                intake.add(Problem("nothing in it can be read; it may be cut off"))
            intake.commit(progress(is_last=True))
        self.read_bytes += reader.read_to - (start.read_to if start else 0)
        self._finish(intake)

    def _find_start(
        self, source: Source, state: SourceState | None
    ) -> tuple[SourceState | None, SourceKey | None]:
        """Where reading goes on, and under which key the file was known if it moved."""
        if state is not None:
            return (state if self._can_go_on(source, state) else None), None
        moved = self._find_moved(source)
        if moved is not None and self._can_go_on(source, moved):
            return moved, moved.key
        return None, None

    def _can_go_on(self, source: Source, state: SourceState) -> bool:
        """Whether the file is the one read before, with nothing but new lines added."""
        return (
            is_seekable(source)
            and state.format == source.format
            and 0 < state.read_to <= source.file.size_bytes
            and self._holds(state)
            and _prefix_hash(source.file.path, state.read_to) == state.prefix_hash
        )

    def _find_moved(self, source: Source) -> SourceState | None:
        """What is known of this very file under a name that is gone."""
        if self._by_file_id is None:
            self._by_file_id = {
                state.file_id: state for state in self.known.values() if state.file_id
            }
        state = self._by_file_id.get(source.file.file_id)
        return None if state is None or Path(state.key.path).exists() else state

    # -- documents ---

    def _take_document(self, source: Source, importer: DocumentFormat) -> None:
        intake = self._intake(source, source.entry, replaces=True)
        if not source.file.size_bytes:
            intake.add(Problem("the file is empty"))
        with open_source(source) as file:
            origin = self._origin(source, importer.look_beside(source.file.path))
            for item in importer.parse(file, origin):
                intake.add(item)
                if intake.is_full:
                    intake.commit(None)
        if _describe(source.file.path).signature != source.file.signature:
            raise _ChangedMeanwhile
        intake.commit(
            SourceState(
                key=intake.key,
                host=source.host,
                format=source.format,
                signature=source.file.signature,
                excluded_by=intake.excluded_by,
            )
        )
        self.read_bytes += source.file.size_bytes
        self._finish(intake)

    # -- databases ---

    def _take_database(
        self, source: Source, importer: DatabaseFormat, signature: str
    ) -> None:
        with open_foreign(source.file.path) as foreign:
            missing = importer.tables - list_tables(foreign.db)
            if missing:
                names = ", ".join(sorted(missing))
                raise SourceUnreadable(
                    f"a schema that this importer does not know: it has no {names}"
                )

            def check() -> None:
                if foreign.is_unguarded and _database_signature(source) != signature:
                    raise _ChangedMeanwhile

            try:
                with foreign_errors():
                    for unit in importer.list_conversations(foreign.db):
                        self._take_unit(source, importer, foreign, unit, check)
            finally:
                # Whatever was wrong with it, a database that changed is read again.
                check()
        whole = self._intake(source, "", replaces=True)
        units = self._known_units(source)
        # A conversation that could not be read, or whose session is not there yet, is
        # looked for again in the next run.
        is_done = all(unit.signature for unit in units)
        excluded_by = next((unit.excluded_by for unit in units if unit.excluded_by), "")
        whole.commit(
            SourceState(
                key=whole.key,
                host=source.host,
                format=source.format,
                signature=signature if is_done else "",
                excluded_by=excluded_by,
            )
        )
        self.read_bytes += source.file.size_bytes

    def _take_unit(
        self,
        source: Source,
        importer: DatabaseFormat,
        foreign: ForeignDatabase,
        unit: Conversation,
        check: Callable[[], None],
    ) -> None:
        intake = self._intake(source, unit.native_id, replaces=True)
        state = self.known.get(intake.key)
        if state is not None and state.signature == unit.version and self._holds(state):
            self.unchanged += 1
            return
        origin = self._origin(source, {})
        try:
            with foreign_errors():
                for item in importer.parse(foreign.db, unit.native_id, origin):
                    intake.add(item)
                    if intake.is_full:
                        check()
                        intake.commit(None)
        except SourceUnreadable as exc:
            # One conversation that cannot be read costs no other, and is tried again.
            intake.add(Problem(f"conversation {unit.native_id}: {exc}"))
            unit = unit._replace(version="")
        check()
        intake.commit(
            SourceState(
                key=intake.key,
                host=source.host,
                format=source.format,
                signature=unit.version,
                excluded_by=intake.excluded_by,
            )
        )
        self._finish(intake)


def _describe(path: Path) -> FoundFile:
    try:
        return describe(path)
    except OSError as exc:
        raise SourceUnreadable(f"it cannot be read ({exc.strerror})") from exc


def _prefix_hash(path: Path, length: int) -> str:
    try:
        return prefix_hash(path, length)
    except OSError as exc:
        raise SourceUnreadable(f"it cannot be read ({exc.strerror})") from exc


def _database_signature(source: Source) -> str:
    path = source.file.path
    return _describe(path).signature + log_signature(path)
