"""A ``UnitFilter`` as an SQL condition on a table that is named ``units``."""

from typing import Any, NamedTuple

from backstory.store.base.containers import to_number
from backstory.store.base.index import UnitFilter


class UnitCondition(NamedTuple):
    """A condition on ``units``, and the values of its placeholders."""

    sql: str
    # Any: whatever PostgreSQL may bind.
    values: list[Any]


def to_condition(where: UnitFilter) -> UnitCondition:
    # All kinds are. It lets the indexes by time and by source be used: see looked_up.
    sql = "units.kind >= 0 AND units.kind = ANY(%s::smallint[])"
    values: list[Any] = [sorted(map(int, where.kinds))]
    for operator, bound in zip((">=", "<"), where.widest_bounds(), strict=True):
        if bound is not None:
            sql += f" AND units.said_at {operator} %s"
            values.append(bound)
    if len(where.kinds_by_bounds()) > 1:
        sql += " AND " + _bounds_of_each_kind(where, values)
    if where.containers is not None:
        sql += " AND units.source_id = ANY(%s::bigint[])"
        values.append(list(map(to_number, where.containers)))
    if where.without_containers:
        sql += " AND units.source_id <> ALL(%s::bigint[])"
        values.append(list(map(to_number, where.without_containers)))
    if where.without:
        sql += " AND units.unit_id <> ALL(%s::bigint[])"
        values.append(list(where.without))
    return UnitCondition(sql, values)


def _bounds_of_each_kind(where: UnitFilter, values: list[Any]) -> str:
    """A condition on the times of each kind of unit; its values are appended."""
    conditions = []
    for (first, end), kinds in where.kinds_by_bounds().items():
        condition = "units.kind = ANY(%s::smallint[])"
        values.append(sorted(map(int, kinds)))
        for operator, bound in ((">=", first), ("<", end)):
            if bound is not None:
                condition += f" AND units.said_at {operator} %s"
                values.append(bound)
        conditions.append(f"({condition})")
    return f"({' OR '.join(conditions)})"
