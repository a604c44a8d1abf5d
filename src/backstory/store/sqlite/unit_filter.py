"""A ``UnitFilter`` as an SQL condition."""

from typing import Any, NamedTuple

from backstory.store.base.index import UnitFilter
from backstory.store.sqlite.containers import to_number
from backstory.store.sqlite.rows import to_json


class Clause(NamedTuple):
    """A condition on ``units``, and the values of its question marks."""

    sql: str
    # Any: whatever SQLite may bind.
    values: list[Any]


def to_clause(where: UnitFilter) -> Clause:
    sql = f"units.kind IN ({', '.join(str(int(kind)) for kind in sorted(where.kinds))})"
    values: list[Any] = []
    if where.said_from is not None:
        sql += " AND units.said_at >= ?"
        values.append(where.said_from)
    if where.said_before is not None:
        sql += " AND units.said_at < ?"
        values.append(where.said_before)
    if where.containers is not None:
        sql += " AND units.source_id IN (SELECT value FROM json_each(?))"
        values.append(to_json(map(to_number, where.containers)))
    if where.without_containers:
        sql += " AND units.source_id NOT IN (SELECT value FROM json_each(?))"
        values.append(to_json(map(to_number, where.without_containers)))
    if where.without:
        sql += " AND units.unit_id NOT IN (SELECT value FROM json_each(?))"
        values.append(to_json(where.without))
    return Clause(sql, values)
