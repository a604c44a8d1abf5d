"""All rows of history.db, to copy them from one database to another."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backstory.store.base.copies import COPYING
from backstory.store.base.history_rows import (
    COPIED,
    HISTORY_TABLES,
    HistoryTable,
    Row,
)
from backstory.store.sqlite.changes import identity
from backstory.store.sqlite.connection import close_database, transaction, translated
from backstory.store.sqlite.history import open_history

_LOGGED = "logged_sessions"


class SqliteHistoryRows:
    """The ``HistoryRows`` of one file, which is made if it is missing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = open_history(path)

    @property
    def identity(self) -> str:
        with translated(self._path):
            return identity(self._db)

    def is_empty(self) -> bool:
        with translated(self._path):
            found = self._db.execute(
                """
                SELECT EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM changes)
                    OR EXISTS (SELECT 1 FROM forgettings)
                """
            ).get
            return not found

    def iter_rows(self, table: HistoryTable, *, after: int | None) -> Iterator[Row]:
        with translated(self._path):
            if not self._db.in_transaction:
                self._db.execute("BEGIN")
            # Any: SQLite rows carry no types; the schema does.
            rows: Any = self._db.execute(
                _select(table), {"after": -1 if after is None else after}
            )
            yield from rows

    def count_rows(self, table: HistoryTable) -> int:
        with translated(self._path):
            found = self._db.execute(
                f"SELECT COUNT(*) FROM ({_select(table)})", {"after": -1}
            ).get
            return int(str(found))

    def find_last(self, table: HistoryTable) -> int | None:
        with translated(self._path):
            # Any: SQLite rows carry no types; the schema does.
            found: Any = self._db.execute(
                f"SELECT MAX({table.columns[0]}) FROM {table.name}"
            ).get
            return None if found is None else int(found)

    def find_last_change(self) -> str:
        with translated(self._path):
            found = self._db.execute(
                """
                SELECT change_id || ' ' || tag FROM changes
                 ORDER BY change_id DESC LIMIT 1
                """
            ).get
            return str(found or "")

    def get_state(self, name: str) -> str | None:
        with translated(self._path):
            found = self._db.execute(
                "SELECT value FROM journal_state WHERE name = ?", (name,)
            ).get
            return None if found is None else str(found)

    # -- writing ---

    def begin(self, identity: str, state: str, *, last_change: str | None) -> bool:
        with self._writing():
            if last_change not in (None, self.find_last_change()):
                return False
            for table in reversed(HISTORY_TABLES):
                if table.name != _LOGGED:
                    self._db.execute(f"DELETE FROM {table.name}")
            self._db.execute("UPDATE identity SET value = ?", (identity,))
            self._db.execute(
                "INSERT INTO journal_state (name, value) VALUES (?, ?)",
                (COPYING, state),
            )
            return True

    def insert_rows(self, table: HistoryTable, rows: Sequence[Row]) -> None:
        if table.name == _LOGGED:
            statement = (
                "UPDATE sessions SET last_logged_message_id = ?2 WHERE session_id = ?1"
            )
        else:
            places = ", ".join("?" * len(table.columns))
            statement = (
                f"INSERT OR IGNORE INTO {table.name} ({', '.join(table.columns)}) "
                f"VALUES ({places})"
            )
        with self._writing():
            self._db.executemany(statement, rows)

    def finish(self, state: str) -> None:
        with self._writing():
            self._db.execute(
                "DELETE FROM journal_state WHERE name IN (?, ?)", (COPYING, COPIED)
            )
            self._db.execute(
                "INSERT INTO journal_state (name, value) VALUES (?, ?)", (COPIED, state)
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with translated(self._path):
            self._end_reading()
            with transaction(self._db):
                yield

    def _end_reading(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def close(self) -> None:
        with translated(self._path):
            self._end_reading()
            close_database(self._db)


def _select(table: HistoryTable) -> str:
    columns, order = ", ".join(table.columns), ", ".join(table.columns[: table.keys])
    if table.name == _LOGGED:
        source, condition = "sessions", "last_logged_message_id IS NOT NULL"
    elif table.name == "journal_state":
        source, condition = table.name, f"name NOT IN ('{COPYING}', '{COPIED}')"
    else:
        source, condition = table.name, "true"
    after = f"AND {order} > :after" if table.numbered else ""
    # A key that one forgetting stored twice counts once.
    distinct = "DISTINCT" if table.name == "forgotten" else ""
    return f"""
        SELECT {distinct} {columns} FROM {source} WHERE {condition} {after}
         ORDER BY {order}
    """
