"""The report on copying a memory from one database to another."""

from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct


class MoveReport(FrozenStruct):
    """What the new place contains, compared with the old one and found to be the same.

    ``rows`` has the number of rows of each table. ``was_there``: nothing had to be
    copied.
    """

    rows: tuple[tuple[str, int], ...]
    notes: int
    vectors: int
    was_there: bool = False
    problems: tuple[Problem, ...] = ()

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return dict(self.rows)[table]
