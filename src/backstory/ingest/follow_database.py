"""Follow one session in the database that its program writes.

Rows change while a tool runs, and nothing tells which are new. So whenever the database
has changed, the whole session is read and compared with what was read before.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from backstory.errors import SourceUnreadable
from backstory.ingest.importers.base import DatabaseFormat, Origin
from backstory.ingest.parsing.databases import (
    ForeignDatabase,
    foreign_errors,
    list_tables,
    open_foreign,
)
from backstory.ingest.parsing.failures import UntilFailure
from backstory.ingest.reading.changes import database_signature
from backstory.values.history import Item, NewMessage, SessionFacts, Source
from backstory.values.identity import content_id
from backstory.values.structs import Struct, field

logger = logging.getLogger(__name__)


class DatabaseFollower(Struct):
    """Reads one session; ``exclude`` says whether a path must not be read."""

    source: Source
    importer: DatabaseFormat
    exclude: Callable[[str | Path], bool]
    session_id: str
    _signature: str = ""
    # A key for each message that was read, to compare them by.
    _read: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.source.file.path

    def has_changed(self) -> bool:
        with self._naming():
            return database_signature(self.source) != self._signature

    def start_over(self) -> None:
        """Read from the beginning the next time."""
        self._signature, self._read = "", []

    def iter_new(
        self, on_rewritten: Callable[[], object] = lambda: None
    ) -> Iterator[NewMessage]:
        """The messages added since the last time.

        ``on_rewritten`` is called first if one that was read before has changed: then
        all are returned again.
        """
        with self._naming():
            # Taken first, so that what is written meanwhile is read the next time.
            signature = database_signature(self.source)
            messages = [
                each for each in self._list_items() if isinstance(each, NewMessage)
            ]
        found = [content_id(each.native_id or "", each.text) for each in messages]
        if found[: len(self._read)] != self._read:
            self.start_over()
            on_rewritten()
        yield from messages[len(self._read) :]
        self._signature, self._read = signature, found

    def holds_session(self) -> bool:
        """Whether the session is in this database."""
        with self._naming():
            return any(isinstance(each, SessionFacts) for each in self._list_items())

    def _list_items(self) -> list[SessionFacts | NewMessage]:
        """What the database says about this session alone."""
        found: list[SessionFacts | NewMessage] = []
        with open_foreign(self.path) as foreign:
            said = UntilFailure(partial(self._parse, foreign))
            for item in said:
                match item:
                    case SessionFacts() if item.native_id == self.session_id:
                        self._check(item)
                        found.append(item)
                    case NewMessage() if item.session_id == self.session_id:
                        found.append(item)
        if isinstance(said.failure, SourceUnreadable):
            raise said.failure
        if said.failure is not None:
            # Reported when the sources are read.
            logger.debug("%s", self.path, exc_info=said.failure)
        return found

    def _parse(self, foreign: ForeignDatabase) -> Iterator[Item]:
        with foreign_errors():
            if self.importer.tables <= list_tables(foreign.db):
                origin = Origin(self.path, modified=self.source.file.modified)
                yield from self.importer.parse(foreign.db, self.session_id, origin)

    def _check(self, facts: SessionFacts) -> None:
        if facts.project and self.exclude(facts.project):
            raise SourceUnreadable(
                f"the session runs in {facts.project}, which your settings exclude"
            )

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Name the database in errors about it."""
        try:
            yield
        except SourceUnreadable as exc:
            raise SourceUnreadable(f"{self.path}: {exc}", hint=exc.hint) from exc
