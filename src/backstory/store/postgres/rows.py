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


def to_dict(rows: Iterable[Sequence[Any]]) -> dict[Any, Any]:
    """Rows of two columns as a dictionary."""
    return {row[0]: row[1] for row in rows}
