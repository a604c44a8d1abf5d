"""All rows of a tenant's history, to copy them from one database to another."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import orjson

from backstory.store.base.copies import COPYING
from backstory.store.base.history_rows import (
    COPIED,
    HISTORY_TABLES,
    HistoryTable,
    Row,
)
from backstory.store.postgres.changes import find_identity
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import Tenant
from backstory.store.postgres.erase import ERASE_DUE
from backstory.store.postgres.message_titles import record_key
from backstory.store.postgres.rows import key_of, to_columns
from backstory.store.postgres.session_names import start_of

_LOGGED = "logged_sessions"
_PAGE = 1_000

# What else a row has, for the indexes of the table: made from its columns by name.
# Any: whatever may be bound.
_Derive = Callable[[dict[str, Any]], Any]
_DERIVED: dict[str, dict[str, _Derive]] = {
    "sources": {"source_key": lambda row: key_of(row["path"], row["unit"])},
    "problems": {"source_key": lambda row: key_of(row["path"], row["unit"])},
    "sessions": {
        "session_key": lambda row: key_of(row["host"], row["native_id"]),
        "native_start": lambda row: start_of(row["native_id"]),
    },
    "messages": {"native_key": lambda row: key_of(row["native_id"])},
    "message_titles": {
        "title_key": lambda row: key_of(row["host"], row["native_id"]),
        "record_key": lambda row: record_key(row["host"], row["native_id"]),
        "native_key": lambda row: key_of(row["native_id"]),
    },
}
# How columns are read and written that are of other types than in a file.
_READ = {"day": "day::text", "hosts": "array_to_json(hosts)::text"}
_TYPES = {
    "host": "text",
    "text": "text",
    "role": "text",
    "native_id": "text",
    "tool_name": "text",
    "call_id": "text",
    "native_key": "bytea",
    "position": "integer",
    "utc_offset_min": "integer",
}


class PostgresHistoryRows:
    """The ``HistoryRows`` of one tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant.completing()
        self._reading = ExitStack()

    @property
    def identity(self) -> str:
        with self._tenant.reading() as db:
            return find_identity(db)

    def is_empty(self) -> bool:
        with self._tenant.reading() as db:
            row = db.execute(
                """
                SELECT EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM changes)
                    OR EXISTS (SELECT 1 FROM forgettings)
                """
            ).fetchone()
            return row == (False,)

    def iter_rows(self, table: HistoryTable, *, after: int | None) -> Iterator[Row]:
        if self._tenant.view is None:
            self._reading.enter_context(self._tenant.one_view())
        if not table.numbered:
            with self._tenant.reading() as db:
                yield from _fetch(db, table, "", ())
            return
        last = -1 if after is None else after
        while True:
            with self._tenant.reading() as db:
                page = _fetch(db, table, "LIMIT %s", (last, _PAGE))
            yield from page
            if len(page) < _PAGE:
                return
            last = int(page[-1][0] or 0)

    def count_rows(self, table: HistoryTable) -> int:
        with self._tenant.reading() as db:
            row = db.execute(
                f"SELECT COUNT(*) FROM {_find_rows(table)}".encode()
            ).fetchone()
            return 0 if row is None else int(row[0])

    def find_last(self, table: HistoryTable) -> int | None:
        with self._tenant.reading() as db:
            row = db.execute(
                f"SELECT MAX({table.columns[0]}) FROM {table.name}".encode()
            ).fetchone()
            return None if row is None else row[0]

    def find_last_change(self) -> str:
        with self._tenant.reading() as db:
            return _find_last_change(db)

    def get_state(self, name: str) -> str | None:
        with self._tenant.reading() as db:
            row = db.execute(
                "SELECT value FROM journal_state WHERE name = %s", (name,)
            ).fetchone()
            return None if row is None else str(row[0])

    # -- writing ---

    def begin(self, identity: str, state: str, *, last_change: str | None) -> bool:
        self._reading.close()
        with self._tenant.writing() as db:
            if last_change not in (None, _find_last_change(db)):
                return False
            for table in reversed(HISTORY_TABLES):
                if table.name != _LOGGED:
                    db.execute(f"DELETE FROM {table.name}".encode())
            db.execute("UPDATE counters SET identity = %s", (identity,))
            db.execute(
                "INSERT INTO journal_state (name, value) VALUES (%s, %s)",
                (COPYING, state),
            )
            return True

    def insert_rows(self, table: HistoryTable, rows: Sequence[Row]) -> None:
        self._reading.close()
        with self._tenant.writing(is_durable=False) as db:
            if table.name == _LOGGED:
                _update_logged(db, rows)
            else:
                _insert(db, table, rows)

    def finish(self, state: str) -> None:
        self._reading.close()
        with self._tenant.writing() as db:
            # The next numbers follow those that were copied.
            db.execute(
                """
                UPDATE counters SET
                last_session_id = (SELECT COALESCE(MAX(session_id), 0) FROM sessions),
                last_message_id = GREATEST(
                    (SELECT COALESCE(MAX(message_id), 0) FROM messages),
                    (SELECT COALESCE(MAX(last_message_id), 0) FROM changes)),
                last_change_id = (SELECT COALESCE(MAX(change_id), 0) FROM changes),
                last_forgetting_id =
                    (SELECT COALESCE(MAX(forgetting_id), 0) FROM forgettings),
                last_call_id = (SELECT COALESCE(MAX(call_id), 0) FROM model_calls),
                last_row_id = GREATEST(
                    (SELECT COALESCE(MAX(problem_id), 0) FROM problems),
                    (SELECT COALESCE(MAX(summary_id), 0) FROM summaries),
                    (SELECT COALESCE(MAX(set_aside_id), 0) FROM set_aside_logs))
                """
            )
            db.execute(
                "DELETE FROM journal_state WHERE name IN (%s, %s)", (COPYING, COPIED)
            )
            db.execute(
                "INSERT INTO journal_state (name, value) VALUES (%s, %s)",
                (COPIED, state),
            )

    def close(self) -> None:
        self._reading.close()


def _find_last_change(db: Connection) -> str:
    row = db.execute(
        """
        SELECT change_id || ' ' || tag FROM changes
         ORDER BY change_id DESC LIMIT 1
        """
    ).fetchone()
    return "" if row is None else str(row[0])


def _fetch(
    db: Connection, table: HistoryTable, end: str, values: tuple[int, ...]
) -> list[Row]:
    order = ", ".join(table.columns[: table.keys])
    columns = ", ".join(_READ.get(name, name) for name in table.columns)
    after = f"AND {order} > %s" if table.numbered else ""
    rows = db.execute(
        f"""
        SELECT {columns} FROM {_find_rows(table)} {after} ORDER BY {order} {end}
        """.encode(),
        values,
    )
    return rows.fetchall()


def _find_rows(table: HistoryTable) -> str:
    """Where the rows of a table are, and which of those there."""
    if table.name == _LOGGED:
        return "sessions WHERE last_logged_message_id IS NOT NULL"
    if table.name == "journal_state":
        own = f"'{COPYING}', '{COPIED}', '{ERASE_DUE}'"
        return f"journal_state WHERE name NOT IN ({own})"
    if table.name == "message_titles":
        return "message_titles WHERE native_id <> ''"
    return f"{table.name} WHERE true"


def _insert(db: Connection, table: HistoryTable, rows: Sequence[Row]) -> None:
    derived = _DERIVED.get(table.name, {})
    names = [*table.columns, *derived]
    made: list[tuple[Any, ...]] = []
    for row in rows:
        known = dict(zip(table.columns, row, strict=True))
        made.append((*row, *(derive(known) for derive in derived.values())))
    if table.name == "messages":
        # All at once, as there may be millions.
        types = ", ".join(f"%s::{_TYPES.get(name, 'bigint')}[]" for name in names)
        source, values = f"SELECT * FROM unnest({types})", to_columns(made, len(names))
        db.execute(_to_insert(table, names, source), values)
        return
    if table.name == "forgettings":
        place = table.columns.index("hosts")
        made = [
            (*row[:place], orjson.loads(row[place]), *row[place + 1 :]) for row in made
        ]
    marks = ", ".join(["%s"] * len(names))
    statement = _to_insert(table, names, f"VALUES ({marks})")
    db.cursor().executemany(statement, made)


def _to_insert(table: HistoryTable, names: Sequence[str], source: str) -> bytes:
    # Otherwise a constraint of messages is asked that is checked later.
    known = "(tenant_id, message_id)" if table.name == "messages" else ""
    # Made of constants alone.
    return f"""
        INSERT INTO {table.name} ({", ".join(names)}) {source}
            ON CONFLICT {known} DO NOTHING
    """.encode()


def _update_logged(db: Connection, rows: Sequence[Row]) -> None:
    db.execute(
        """
        UPDATE sessions SET last_logged_message_id = logged.message_id
          FROM unnest(%s::bigint[], %s::bigint[]) AS logged (session_id, message_id)
         WHERE sessions.session_id = logged.session_id
        """,
        to_columns(rows, 2),
    )
