"""Find and mend the texts of a history that are not UTF-8.

They are read with U+FFFD in place of what is invalid (``readable_text``). Mending
writes that to the table.
"""

from collections.abc import Iterator, Mapping

import apsw

from backstory.values.history import Role, SessionKind
from backstory.values.structs import FrozenStruct

# Rows of these tables need not be kept with an invalid text: they are made again when a
# source is read, a note is seen or a session is summarized.
_MADE_AGAIN = frozenset(
    {"sources", "problems", "summaries", "seen_notes", "journal_state"}
)
# What replaces an invalid value in these columns, the same as when they are read.
_STAND_INS = {
    ("messages", "role"): Role.ERROR.value,
    ("sessions", "kind"): SessionKind.CONVERSATION.value,
}
_OF_MESSAGES = frozenset({"native_id", "role", "text", "tool_name", "call_id"})


class _InvalidText(FrozenStruct):
    table: str
    rowid: int
    column: str
    # With U+FFFD in place of what is not UTF-8.
    readable: str


def list_invalid_texts(db: apsw.Connection) -> list[str]:
    """The texts that are not UTF-8, described in words."""
    return [_describe(db, invalid) for invalid in _iter_invalid(db)]


def describe_invalid_text(
    db: apsw.Connection, row: Mapping[str, object], column: str
) -> str:
    """Say which text it is, as far as the columns of a row tell."""
    message_id, session_id = row.get("message_id"), row.get("session_id")
    if isinstance(message_id, int) and column in _OF_MESSAGES:
        return _describe(db, _InvalidText("messages", message_id, column, ""))
    if isinstance(session_id, int):
        return _describe(db, _InvalidText("sessions", session_id, column, ""))
    return f"a value of '{column}' is not valid UTF-8"


def mend_invalid_texts(db: apsw.Connection) -> list[str]:
    """Mend all invalid texts; returns which they were. Must run in a transaction."""
    found = list(_iter_invalid(db))
    described = [_describe(db, invalid) for invalid in found]
    for invalid in found:
        if invalid.table in _MADE_AGAIN:
            db.execute(f"DELETE FROM {invalid.table} WHERE rowid = ?", (invalid.rowid,))
        else:
            _replace(db, invalid)
    return described


def _replace(db: apsw.Connection, invalid: _InvalidText) -> None:
    stand_in = _STAND_INS.get((invalid.table, invalid.column), invalid.readable)
    statement = f"UPDATE {invalid.table} SET {invalid.column} = ? WHERE rowid = ?"
    try:
        db.execute(statement, (stand_in, invalid.rowid))
    except apsw.ConstraintError:
        # The row number keeps apart ids that differ only in the bytes that were
        # replaced.
        db.execute(statement, (f"{stand_in}-{invalid.rowid}", invalid.rowid))


def _iter_invalid(db: apsw.Connection) -> Iterator[_InvalidText]:
    for table, columns in _list_text_columns(db).items():
        casts = ", ".join(f"CAST({column} AS BLOB)" for column in columns)
        for rowid, *values in db.execute(f"SELECT rowid, {casts} FROM {table}"):
            for column, raw in zip(columns, values, strict=True):
                if raw is not None and not _is_valid(raw):
                    readable = raw.decode("utf-8", errors="replace")
                    yield _InvalidText(table, rowid, column, readable)


def _list_text_columns(db: apsw.Connection) -> dict[str, list[str]]:
    rows = db.execute(
        """
        SELECT tables.name, columns.name
          FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
         WHERE tables.type = 'table' AND columns.type = 'TEXT'
         ORDER BY tables.rowid, columns.cid
        """
    ).fetchall()
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(str(table), []).append(str(column))
    return found


def _is_valid(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _describe(db: apsw.Connection, invalid: _InvalidText) -> str:
    place = f"table {invalid.table}, row {invalid.rowid}"
    if invalid.table == "messages":
        session = _name_session(
            db,
            "session_id = (SELECT session_id FROM messages WHERE message_id = ?)",
            invalid.rowid,
        )
        place = f"session {session}, message {invalid.rowid}"
    elif invalid.table == "sessions":
        session = _name_session(db, "session_id = ?", invalid.rowid)
        place = f"session {session}"
    return f"{place}: its {invalid.column} is not valid UTF-8"


def _name_session(db: apsw.Connection, which: str, number: int) -> str:
    # As bytes, because the name may be the invalid text.
    raw = db.execute(
        f"SELECT CAST(host || '/' || native_id AS BLOB) FROM sessions WHERE {which}",
        (number,),
    ).get
    return "of an unknown name" if raw is None else raw.decode(errors="replace")
