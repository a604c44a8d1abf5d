"""Keys of rows, rows of values as lists of columns, and rows as dictionaries."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

_KEY_BYTES = 16


def key_of(*parts: str) -> bytes:
    """What a row is looked up by: a hash, as ids and paths may be of any length."""
    digest = blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        encoded = part.encode("utf-8", errors="surrogatepass")
        # The length keeps ("ab", "c") apart from ("a", "bc").
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()


# Any: whatever may be bound; the schema says what it is.
def to_columns(rows: Iterable[Sequence[Any]], count: int) -> list[list[Any]]:
    """Rows as ``count`` lists, one for each column, to be read with ``unnest``.

    However many rows there are, the statement is the same, and it is one.
    """
    columns = [list(column) for column in zip(*rows, strict=True)]
    return columns or [[] for _ in range(count)]


def looked_up(table: str, columns: str) -> str:
    """What to select from for some units of an index, each looked up by its number.

    Its values are a list of numbers, and the number of the index. The planner expects a
    large tenant to be about as small as the others: asked for ``= ANY(numbers)``, it
    would read all rows of the tenant to find a few of them. No other index than the
    primary key may do for it, or it could read them all for each number: the others of
    "units" are only used where ``kind >= 0`` is asked for.
    """
    return f"""
        unnest(%s::bigint[]) AS wanted (number)
        CROSS JOIN LATERAL (
              SELECT {columns} FROM {table}
               WHERE {table}.index_id = %s AND {table}.unit_id = wanted.number
              OFFSET 0) AS {table}
    """


def to_dict(rows: Iterable[Sequence[Any]]) -> dict[Any, Any]:
    """Rows of two columns as a dictionary."""
    return {row[0]: row[1] for row in rows}
