"""Read a file that is written whole, from its start to its end."""

from typing import IO

from backstory.ingest.importers.base import DocumentFormat, Origin
from backstory.ingest.intake import Intake
from backstory.ingest.parsing.failures import UntilFailure, describe_failure
from backstory.ingest.parsing.streams import open_source
from backstory.ingest.reading.changes import (
    ChangedWhileReading,
    OutOfTime,
    describe_file,
)
from backstory.store.base.history import SourceState
from backstory.values.history import Problem, Source


def read_document(
    source: Source, importer: DocumentFormat, origin: Origin, *, intake: Intake
) -> None:
    """Read a document. Raises ``ChangedWhileReading`` if it is rewritten.

    Raises ``OutOfTime`` if the time is up: the next reading starts again.
    """
    with open_source(source) as file:
        said = UntilFailure(lambda: importer.parse(file, origin))
        for item in said:
            if intake.is_late:
                raise OutOfTime
            intake.add(item)
            if intake.is_full:
                intake.commit(None)
        _report_failure(said.failure, file, intake)
    if describe_file(source.file.path).signature != source.file.signature:
        raise ChangedWhileReading
    intake.commit(
        SourceState(
            key=intake.key,
            host=source.host,
            format=source.format,
            signature=source.file.signature,
            excluded_by=intake.excluded_by,
        )
    )


def _report_failure(failure: Exception | None, file: IO[bytes], intake: Intake) -> None:
    """Report what ended the reading early; tried again when the file changes."""
    if isinstance(failure, OSError):
        # A problem of the disk, not of the content, so it is tried again in the next
        # run.
        intake.commit(None)
        raise failure
    if failure is not None:
        reason = describe_failure(failure)
        intake.add(Problem(f"near byte {file.tell():,}: {reason}"))
