"""Read a file that is written whole, from its start to its end."""

from backstory.ingest.importers.base import DocumentFormat, Origin
from backstory.ingest.intake import Intake
from backstory.ingest.parsing.streams import open_source
from backstory.ingest.reading.changes import ChangedWhileReading, describe_file
from backstory.store.base.history import SourceState
from backstory.values.history import Problem, Source


def read_document(
    source: Source, importer: DocumentFormat, origin: Origin, *, intake: Intake
) -> None:
    """Read a document. Raises ``ChangedWhileReading`` if it is rewritten."""
    if not source.file.size_bytes:
        intake.add(Problem("the file is empty"))
    with open_source(source) as file:
        for item in importer.parse(file, origin):
            intake.add(item)
            if intake.is_full:
                intake.commit(None)
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
