"""Read a file that grows by lines, from where the last reading stopped.

Every batch is written together with the place it was read to, always between two lines.
So a reading that is killed resumes after its last batch, and one that reads the same
lines again writes nothing twice.
"""

from collections.abc import Callable
from typing import NoReturn

from backstory.ingest.importers.base import LineFormat, Memo, Origin, Record
from backstory.ingest.intake import Intake
from backstory.ingest.parsing.failures import UntilFailure, describe_failure
from backstory.ingest.parsing.lines import LineReader
from backstory.ingest.parsing.streams import is_seekable, open_source
from backstory.ingest.reading.changes import OutOfTime, Snapshot, hash_of
from backstory.ingest.reading.known import KnownSources
from backstory.store.base.history import SourceKey, SourceState
from backstory.values.history import Problem, Source
from backstory.values.structs import FrozenStruct, field, replace


class Start(FrozenStruct):
    """Where a reading begins, and what it must know from the readings before.

    ``moved_from`` is the key of the file under its former name. ``is_second``: the file
    was read before, but has to be read from its start once more.
    """

    read_to: int = 0
    lines_read: int = 0
    memo: Memo = field(default_factory=dict)
    moved_from: SourceKey | None = None
    is_second: bool = False


def find_start(source: Source, known: KnownSources) -> Start:
    """Where to begin: after what was read, or at the start of a rewritten file."""
    state = known.find(SourceKey(str(source.file.path), source.entry))
    if state is not None:
        if _has_only_grown(source, state, known):
            return Start(state.read_to, state.lines_read, dict(state.memo))
        return Start(is_second=True)
    moved = known.find_moved(source.file)
    if moved is not None and _has_only_grown(source, moved, known):
        return Start(moved.read_to, moved.lines_read, dict(moved.memo), moved.key)
    return Start()


def _has_only_grown(source: Source, state: SourceState, known: KnownSources) -> bool:
    """Whether the file is the one read before, with nothing but new lines added."""
    return (
        is_seekable(source)
        and state.format == source.format
        and 0 < state.read_to <= source.file.size_bytes
        and known.excludes_the_same(state)
        and hash_of(source.file.path, state.read_to) == state.prefix_hash
    )


class LineReading:
    """One reading of a line file. Raises ``ChangedWhileReading`` if it is rewritten."""

    def __init__(
        self, source: Source, importer: LineFormat, origin: Origin, *, start: Start
    ) -> None:
        self._source = source
        self._importer = importer
        self._origin = origin
        self._start = start
        self._memo = start.memo
        # Inside compressed data, a reading can neither resume nor compare what it read.
        self._snapshot = Snapshot.of(source.file) if is_seekable(source) else None

    def read(self, intake: Intake, on_progress: Callable[[int], None]) -> int:
        """Read to the end of the file; returns how many bytes that were.

        Raises ``OutOfTime`` if the time is up; the next reading goes on from there.

        ``on_progress`` is called after every batch with how many bytes have been read.
        """
        intake.restore(self._memo)
        with open_source(self._source) as file:
            if self._start.read_to:
                file.seek(self._start.read_to)
            reader = LineReader(file, self._start.read_to, self._start.lines_read)
            records = UntilFailure(reader.records)
            for item in records:
                # The current line may have been reported on already.
                if intake.last_line <= reader.line:
                    if intake.is_full:
                        self._write_batch(intake, reader)
                        on_progress(reader.read_to)
                    elif intake.is_late:
                        self._stop_here(intake, reader)
                self._take(item, intake)
            self._report_failure(records.failure, intake, reader)
            intake.commit(self._progress(intake, reader, is_last=True))
        return reader.read_to - self._start.read_to

    def _stop_here(self, intake: Intake, reader: LineReader) -> NoReturn:
        """End the reading; if it has read nothing, it writes nothing."""
        if reader.read_to > self._start.read_to:
            self._write_batch(intake, reader)
        raise OutOfTime

    def _take(self, item: Record | Problem, intake: Intake) -> None:
        if isinstance(item, Problem):
            intake.add(item, item.line)
            return
        said = UntilFailure(
            lambda: self._importer.parse(item, self._origin, self._memo)
        )
        for each in said:
            intake.add(each, item.line)
        if said.failure is not None:
            intake.add(Problem(describe_failure(said.failure)), item.line)

    def _report_failure(
        self, failure: Exception | None, intake: Intake, reader: LineReader
    ) -> None:
        """Report what ended the reading early; tried again when the file changes."""
        if isinstance(failure, OSError):
            # A problem of the disk, not of the content, so it is tried again in the
            # next run.
            self._write_batch(intake, reader)
            raise failure
        if failure is not None:
            intake.add(Problem(describe_failure(failure)), reader.line + 1)
        elif not reader.read_to and not intake.problems and self._is_packed():
            # A truncated compressed file yields nothing, and no error.
            intake.add(Problem("nothing in it can be read; it may be incomplete"))

    def _is_packed(self) -> bool:
        """Whether the source is compressed and not empty."""
        file, entry = self._source.file, self._source.entry
        return file.size_bytes > 0 and not entry and self._snapshot is None

    def _write_batch(self, intake: Intake, reader: LineReader) -> None:
        # A second reading cannot resume in the middle, because it would not know which
        # ids it has read. If it is killed, it starts again.
        is_second = self._start.is_second
        progress = None if is_second else self._progress(intake, reader, is_last=False)
        intake.commit(progress)

    def _progress(
        self, intake: Intake, reader: LineReader, *, is_last: bool
    ) -> SourceState:
        """How far the file is read: up to the last line that the reader returned."""
        file = self._source.file
        state = SourceState(
            key=intake.key,
            host=self._source.host,
            format=self._source.format,
            # Until the end is reached, the source counts as changed.
            signature=file.signature if is_last else "",
            memo=intake.save(self._memo, is_last=is_last),
            excluded_by=intake.excluded_by,
        )
        if self._snapshot is None:
            return state
        state = replace(
            state,
            file_id=file.file_id,
            read_to=reader.read_to,
            lines_read=reader.line,
            prefix_hash=hash_of(file.path, reader.read_to),
        )
        # Checked after hashing: if the file is unchanged now, it was unchanged when the
        # hash was taken.
        self._snapshot.check()
        return state
