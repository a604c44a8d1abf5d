"""Check and repair the files of a home, also of one that cannot be opened."""

from collections.abc import Callable
from pathlib import Path

from backstory.index.damage import check_files, repair_history, repair_vectors
from backstory.system.machine import find_home, this_machine
from backstory.values.reports import CheckedFile, SalvagedHistory


def check_home(
    home: str | Path | None = None, *, is_deep: bool = False
) -> list[CheckedFile]:
    """What is wrong with each file of a home; ``is_deep`` compares all rows as well."""
    return check_files(find_home(this_machine(), home), is_deep=is_deep)


def repair_home(home: str | Path | None = None) -> SalvagedHistory | None:
    """Repair a damaged history: all that can be read is kept, and the damaged file.

    Returns None if it is not damaged. Vectors that can be read are kept as well. A
    damaged index is made again by ``Memory.rebuild``.
    """
    found = find_home(this_machine(), home)
    repaired = repair_history(found)
    repair_vectors(found)
    return repaired


def check_repaired(
    home: str | Path | None, rebuild: Callable[[], object], *, is_deep: bool = False
) -> list[CheckedFile]:
    """Check a home after ``repair_home``; ``rebuild`` replaces a damaged index."""
    found = check_home(home, is_deep=is_deep)
    # If the history is lost, the index is all that knows of it, and must stay.
    if any(file.problems and file.is_derived for file in found):
        rebuild()
        found = check_home(home, is_deep=is_deep)
    return found
