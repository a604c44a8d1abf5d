"""Keys of rows, rows of values as lists of columns, and rows as dictionaries."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

from backstory.store.postgres.connecting import Connection

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


def looked_up(
    table: str,
    columns: str,
    *,
    key: str = "unit_id",
    within: str = "index_id",
    keys: str = "%s::bigint[]",
) -> str:
    """What to select from for some rows of a tenant, each looked up by its key.

    Its values are a list, which is bound as ``keys``, and the number that all rows have
    in the column ``within``, if any. No two rows have the same key.

    The planner may expect one row of a tenant that was made since it last counted, and
    few rows of a large one. Asked for ``= ANY(keys)``, or for a join, it would read all
    rows of the tenant to find some of them; asked for one key after the other, it would
    do so for each, as any index seems as good. Only the order makes it take the one
    that has the key: ``=`` alone would not, as rows with the same key are in order.
    """
    condition = f"{table}.{within} = %s AND " if within else ""
    return f"""
        unnest({keys}) AS wanted (key)
        CROSS JOIN LATERAL (
              SELECT {columns} FROM {table}
               WHERE {condition}{table}.{key} >= wanted.key
                 AND {table}.{key} <= wanted.key
               ORDER BY {table}.{key} LIMIT 1) AS {table}
    """


@contextmanager
def changed_by_place(db: Connection) -> Iterator[None]:
    """Have the rows that are changed in the block found by ``in_places`` alone.

    Otherwise the planner would compare all rows of the tenant with those places, for
    the reason that ``looked_up`` tells.
    """
    _allow_index_scans(db, "off")
    yield
    _allow_index_scans(db, "on")


@contextmanager
def without_sorting(db: Connection) -> Iterator[None]:
    """Have the rows that a statement wants in order read by the index with that order.

    Otherwise the planner might read all rows of a tenant of which it expects one, for
    each key, by an index that seems a little better, and sort those that are left.
    """
    db.execute("SET LOCAL enable_sort TO off")
    yield
    db.execute("SET LOCAL enable_sort TO on")


def _allow_index_scans(db: Connection, value: str) -> None:
    db.execute(
        """
        SELECT set_config('enable_indexscan', %s, true),
               set_config('enable_bitmapscan', %s, true)
        """,
        (value, value),
    )


def in_places(
    table: str,
    *,
    key: str = "unit_id",
    within: str = "index_id",
    keys: str = "%s::bigint[]",
) -> str:
    """A condition for changing rows with some keys; its values are as of looked_up."""
    found = looked_up(table, "ctid AS place", key=key, within=within, keys=keys)
    return f"{table}.ctid = ANY(ARRAY(SELECT place FROM {found}))"


def to_dict(rows: Iterable[Sequence[Any]]) -> dict[Any, Any]:
    """Rows of two columns as a dictionary."""
    return {row[0]: row[1] for row in rows}
