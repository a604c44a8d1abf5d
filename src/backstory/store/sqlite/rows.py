"""Bind lists to statements, and read rows as dictionaries and days."""

from collections.abc import Iterable
from datetime import date
from typing import Any

import msgspec


def to_json(values: Iterable[int | str | tuple[int | str | None, ...]]) -> str:
    """A list as one bound value, to be read with ``json_each``.

    With a question mark for each value, the statement would be prepared again for
    every length, and SQLite limits how many there may be.
    """
    # Not orjson, which is slow to import and which most commands do without.
    return msgspec.json.encode(list(values)).decode()


# Any: SQLite rows carry no types; the schema does.
def to_dict(rows: Iterable[Any]) -> dict[Any, Any]:
    """Rows of two columns as a dictionary."""
    return dict(rows)


def read_day(text: str) -> date | None:
    """The day of a row; None if the row is damaged."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
