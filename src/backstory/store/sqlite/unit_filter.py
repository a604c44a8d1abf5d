"""A ``UnitFilter`` as an SQL condition."""

from typing import Any, NamedTuple

from backstory.store.base.containers import to_number
from backstory.store.base.index import UnitFilter
from backstory.store.sqlite.rows import to_json


class Clause(NamedTuple):
    """A condition on ``units``, and the values of its question marks."""

    sql: str
    # Any: whatever SQLite may bind.
    values: list[Any]


def to_clause(where: UnitFilter) -> Clause:
    sql = f"units.kind IN ({', '.join(str(int(kind)) for kind in sorted(where.kinds))})"
    values: list[Any] = []
    for operator, bound in zip((">=", "<"), where.widest_bounds(), strict=True):
        if bound is not None:
            sql += f" AND units.said_at {operator} ?"
            values.append(bound)
    if len(where.kinds_by_bounds()) > 1:
        sql += " AND " + _bounds_of_each_kind(where, values)
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


def _bounds_of_each_kind(where: UnitFilter, values: list[Any]) -> str:
    """A condition on the times of each kind of unit; its values are appended."""
    conditions = []
    for (first, end), kinds in where.kinds_by_bounds().items():
        listed = ", ".join(str(int(kind)) for kind in kinds)
        conditions.append(
            f"(units.kind IN ({listed}) AND (? IS NULL OR units.said_at >= ?)"
            " AND (? IS NULL OR units.said_at < ?))"
        )
        values += [first, first, end, end]
    return f"({' OR '.join(conditions)})"
