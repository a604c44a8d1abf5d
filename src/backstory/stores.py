"""Where a home keeps everything: in files of its folder, or in a PostgreSQL database.

No other module names the classes of the database that an entire home is in.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from backstory.address import DatabaseAddress
from backstory.errors import MissingExtra
from backstory.index.history_damage import note_damage
from backstory.notes.places import DatabaseNotes, FileNotes, NotesPlace
from backstory.store.base.history import HistoryStore
from backstory.store.base.index_place import IndexPlace
from backstory.store.sqlite.history import HISTORY_NAME, SqliteHistory
from backstory.store.sqlite.index_files import SqliteIndexFiles
from backstory.system.locks import FileLocks, Locks
from backstory.values.proof import ProveMessages

if TYPE_CHECKING:
    from backstory.store.base.history_rows import HistoryRows
    from backstory.store.base.summaries import SummaryStore
    from backstory.store.postgres.database import Database

# The open databases, by address: all memories of a process share their connections.
_DATABASES: "WeakValueDictionary[str, Database]" = WeakValueDictionary()


class Stores(Protocol):
    """The stores of one home; each opens what it needs when it is first used."""

    @property
    def name(self) -> str:
        """Where everything is, for people; empty for the folder of the home."""
        ...

    @property
    def history(self) -> HistoryStore: ...

    @property
    def index_place(self) -> IndexPlace: ...

    @property
    def locks(self) -> Locks: ...

    @property
    def notes(self) -> NotesPlace: ...

    def open_summaries(self) -> "SummaryStore": ...

    def open_rows(self) -> "HistoryRows":
        """The entire history, to copy it; the caller closes it."""
        ...

    def open_notes_to_complete(self) -> NotesPlace:
        """The notes, for the move that completes a copy in this place."""
        ...

    def close(self) -> None:
        """Close what the stores share; they themselves must be closed before."""
        ...


def open_stores(
    home: Path, database: DatabaseAddress | None, *, prove: ProveMessages
) -> Stores:
    """The stores of a home. ``prove`` checks messages in damaged files."""
    if database is None:
        return SqliteStores(home, prove)
    return PostgresStores(database)


@contextmanager
def needing_psycopg() -> Iterator[None]:
    """Raise ``MissingExtra`` if the package for PostgreSQL cannot be imported."""
    try:
        yield
    except ImportError as exc:
        raise MissingExtra(
            f"store.url needs the package psycopg, which cannot be used ({exc})",
            hint="run: pip install 'backstory[postgres]'",
        ) from exc


def open_database(url: str) -> "Database":
    """The database at an address; all of a process share its connections."""
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.database import Database
    return _DATABASES.get(url) or _DATABASES.setdefault(url, Database(url))


def allow_connections(count: int) -> None:
    """Allow databases that are opened from now on up to ``count`` connections."""
    with needing_psycopg():
        # Slow to import.
        from backstory.store.postgres.database import Database
    Database.max_connections = count


class SqliteStores:
    """``Stores`` in the folder of a home."""

    name = ""

    def __init__(self, home: Path, prove: ProveMessages) -> None:
        self._home = home
        self.history = SqliteHistory(
            home / HISTORY_NAME, prove=prove, on_damage=partial(note_damage, home)
        )
        self.index_place = SqliteIndexFiles(home)
        self.locks = FileLocks(home)
        self.notes = FileNotes(home, self.history.check_complete)

    def open_summaries(self) -> "SummaryStore":
        # Searches do not need it.
        from backstory.store.sqlite.summaries import SqliteSummaryStore

        return SqliteSummaryStore(self._home / HISTORY_NAME)

    def open_rows(self) -> "HistoryRows":
        # Only moving needs it.
        from backstory.store.sqlite.history_rows import SqliteHistoryRows

        return SqliteHistoryRows(self._home / HISTORY_NAME)

    def open_notes_to_complete(self) -> NotesPlace:
        return FileNotes(self._home)

    def close(self) -> None:
        """Do nothing: these stores share nothing."""


class PostgresStores:
    """``Stores`` of a tenant of a PostgreSQL database."""

    def __init__(self, address: DatabaseAddress) -> None:
        with needing_psycopg():
            # Slow to import.
            from backstory.store.postgres.history import PostgresHistory
            from backstory.store.postgres.index_place import PostgresIndexPlace
            from backstory.store.postgres.locks import TenantLocks
            from backstory.store.postgres.notes import PostgresNotes
            from backstory.store.postgres.tenants import named_tenant
        self._database = open_database(address.url)
        self._tenant = named_tenant(self._database, address.tenant)
        self.name = f"{self._database.server.name}, tenant {address.tenant}"
        self.history = PostgresHistory(self._tenant)
        self.index_place = PostgresIndexPlace(self._tenant)
        self.locks = TenantLocks(self._tenant)
        self.notes = DatabaseNotes(PostgresNotes(self._tenant), self.locks)

    def open_summaries(self) -> "SummaryStore":
        # Searches do not need it.
        from backstory.store.postgres.summaries import PostgresSummaryStore

        return PostgresSummaryStore(self._tenant)

    def open_rows(self) -> "HistoryRows":
        # Only moving needs it.
        from backstory.store.postgres.history_rows import PostgresHistoryRows

        return PostgresHistoryRows(self._tenant)

    def open_notes_to_complete(self) -> NotesPlace:
        # Only moving needs it.
        from backstory.store.postgres.notes import PostgresNotes

        return DatabaseNotes(PostgresNotes(self._tenant.completing()), self.locks)

    def close(self) -> None:
        self._database.close()
