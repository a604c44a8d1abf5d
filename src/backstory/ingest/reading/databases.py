"""Read another program's database, one conversation at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from backstory.errors import SourceUnreadable
from backstory.ingest.importers.base import Conversation, DatabaseFormat, Origin
from backstory.ingest.intake import Intake
from backstory.ingest.parsing.databases import (
    ForeignDatabase,
    foreign_errors,
    list_tables,
    open_foreign,
)
from backstory.ingest.parsing.failures import UntilFailure, describe_failure
from backstory.ingest.reading.changes import (
    ChangedWhileReading,
    OutOfTime,
    database_signature,
)
from backstory.store.base.history import SourceState
from backstory.values.history import Item, Problem, Source
from backstory.values.structs import FrozenStruct


class DatabaseReading(FrozenStruct):
    """An open database that is being read; ``signature`` is what it looked like."""

    source: Source
    importer: DatabaseFormat
    signature: str
    _foreign: ForeignDatabase

    @classmethod
    @contextmanager
    def open(
        cls, source: Source, importer: DatabaseFormat, signature: str
    ) -> Iterator[Self]:
        """Open a database; raises ``ChangedWhileReading`` at the end if it was changed.

        That replaces any other error: whatever was wrong, a database that changed is
        read again.
        """
        with open_foreign(source.file.path) as foreign:
            with foreign_errors():
                missing = importer.tables - list_tables(foreign.db)
            if missing:
                names = ", ".join(sorted(missing))
                raise SourceUnreadable(f"unknown schema; missing tables: {names}")
            reading = cls(source, importer, signature, foreign)
            try:
                yield reading
            finally:
                reading._check()

    def iter_conversations(self) -> Iterator[Conversation]:
        with foreign_errors():
            yield from self.importer.list_conversations(self._foreign.db)

    def read(
        self, conversation: Conversation, origin: Origin, *, intake: Intake
    ) -> None:
        """Read one conversation; if the database fails, it is tried again next time.

        Raises ``OutOfTime`` if the time is up: the conversation is read again.
        """
        version = conversation.version
        failure = self._take(conversation.native_id, origin, intake)
        if failure is not None:
            # A conversation that cannot be read affects no others.
            reason = describe_failure(failure)
            intake.add(Problem(f"conversation {conversation.native_id}: {reason}"))
        if isinstance(failure, SourceUnreadable):
            version = ""
        self._check()
        intake.commit(
            SourceState(
                key=intake.key,
                host=self.source.host,
                format=self.source.format,
                signature=version,
                excluded_by=intake.excluded_by,
            )
        )
        if failure is not None and self._foreign.allowance.is_spent:
            # No other conversation in this database could be read either.
            raise failure

    def _take(self, native_id: str, origin: Origin, intake: Intake) -> Exception | None:
        """Take in what a conversation says; returns what ended it early, if any."""
        said = UntilFailure(lambda: self._parse(native_id, origin))
        for item in said:
            if intake.is_late:
                raise OutOfTime
            intake.add(item)
            if intake.is_full:
                self._check()
                intake.commit(None)
        return said.failure

    def _parse(self, native_id: str, origin: Origin) -> Iterator[Item]:
        with foreign_errors():
            yield from self.importer.parse(self._foreign.db, native_id, origin)

    def _check(self) -> None:
        if not self._foreign.is_unguarded:
            return
        if database_signature(self.source) != self.signature:
            raise ChangedWhileReading
