"""What copying a memory from one database to another reports."""

from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct


class MoveReport(FrozenStruct):
    """What is in the new place now: the same as in the old one, as a comparison showed.

    ``rows`` are the numbers of rows of each table. ``was_there``: nothing had to be
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
