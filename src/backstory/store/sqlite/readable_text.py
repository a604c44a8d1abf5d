"""Read rows whose texts are not all UTF-8.

SQLite stores any bytes as text, but apsw raises an error for a row whose text is not
UTF-8. Here, invalid bytes become U+FFFD, so that one wrong byte hides neither the rest
of its text nor other rows. We never write such a text, so it is damage, and a callback
is told.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import apsw

# Type checkers read this as true. Hooks open a database faster than typing is imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Called with the row, by the names of its columns, and the column that is not UTF-8.
OnInvalid = Callable[[apsw.Connection, Mapping[str, object], str], None]


def read_invalid_text(
    db: apsw.Connection, on_invalid: OnInvalid = lambda db, row, column: None
) -> None:
    """Have all statements of a connection return rows with invalid text, too."""

    def make_cursor(connection: apsw.Connection) -> apsw.Cursor:
        return _Cursor(connection, on_invalid)

    db.cursor_factory = make_cursor


class _Cursor(apsw.Cursor):
    def __init__(self, connection: apsw.Connection, on_invalid: OnInvalid) -> None:
        super().__init__(connection)
        self._on_invalid = on_invalid

    # Any: SQLite rows carry no types; the schema does.
    def execute(
        self, statements: str, bindings: "Any" = None, **options: "Any"
    ) -> apsw.Cursor:
        self._asked = (statements, bindings)
        return super().execute(statements, bindings, **options)

    # A generator takes less time per row than a ``__next__`` in Python.
    def __iter__(self) -> "Iterator[Any]":  # type: ignore[override]
        given = 0
        try:
            # No row is None, so this iterates over all of them.
            for row in iter(super().__next__, None):
                given += 1
                yield row
        except UnicodeDecodeError:
            # The first statement is still open, so this one reads the same state.
            yield from islice(self._read_again(), given, None)

    def fetchone(self) -> "Any":
        return next(iter(self), None)

    @property
    def get(self) -> "Any":
        try:
            return super().get
        except UnicodeDecodeError:
            row = next(self._read_again())
            return row if len(row) > 1 else row[0]

    def _read_again(self) -> "Iterator[tuple[Any, ...]]":
        """All rows of the statement, with their texts read as bytes."""
        statement, bindings = self._asked
        names = [name for name, _ in self.get_description()]
        columns = [f"column_{number}" for number in range(len(names))]
        values = ", ".join(
            f"typeof({each}) = 'text', "
            f"iif(typeof({each}) = 'text', CAST({each} AS BLOB), {each})"
            for each in columns
        )
        found = apsw.Cursor(self.connection).execute(
            f"WITH found ({', '.join(columns)}) AS ({statement}) "
            f"SELECT {values} FROM found",
            bindings,
        )
        for row in found:
            yield self._decode(names, row[::2], row[1::2])

    def _decode(
        self, names: list[str], is_text: "tuple[Any, ...]", values: "tuple[Any, ...]"
    ) -> "tuple[Any, ...]":
        row = tuple(
            value.decode("utf-8", errors="replace") if decodes else value
            for value, decodes in zip(values, is_text, strict=True)
        )
        for name, raw, text in zip(names, values, row, strict=True):
            if isinstance(text, str) and text.encode() != raw:
                self._on_invalid(
                    self.connection, dict(zip(names, row, strict=True)), name
                )
        return row
