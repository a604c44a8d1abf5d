"""Read rows of another program's database, whatever columns and bytes they hold.

Schemas grow over the years, and SQLite lets any bytes stand in a text column. So a
column that is not there reads as None, and bytes that are not UTF-8 are replaced: one
bad value costs itself, not the conversation around it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from backstory.importers.databases import list_columns


def iter_rows(
    db: apsw.Connection,
    table: str,
    columns: Sequence[str],
    *,
    rest: str = "",
    params: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """The rows of a table as mappings of ``columns``; ``rest`` is the SQL behind FROM.

    ``table``, ``columns`` and ``rest`` are constants of the calling importer, never
    text from a database; ``params`` are bound.
    """
    known = list_columns(db, table)
    chosen = ", ".join(
        _LENIENT.format(name) if name in known else "NULL" for name in columns
    )
    for row in db.execute(f"SELECT {chosen} FROM {table} {rest}", params):
        yield {name: decode(value) for name, value in zip(columns, row, strict=True)}


# apsw raises on text that is not UTF-8; bytes it hands over as they are.
_LENIENT = "CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) ELSE {0} END"


def decode(value: object) -> object:
    """Bytes as text, with what is not UTF-8 replaced; anything else as it is."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return value
