"""Check and repair the files of a home, even one that cannot be opened.

A database can be checked here, but only repaired by its own means.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import (
    StoreFull,
    StoreIncomplete,
    StoreLocked,
    StoreProblem,
    StoreUnreachable,
    StoreUnwritable,
)
from backstory.index.damage import check_files, repair_history, repair_vectors
from backstory.system.machine import find_home, this_machine
from backstory.values.reports import CheckedFile, SalvagedHistory

if TYPE_CHECKING:
    from backstory.address import DatabaseAddress


def check_home(
    home: str | Path | None = None,
    *,
    is_deep: bool = False,
    database: "DatabaseAddress | None" = None,
) -> list[CheckedFile]:
    """What is wrong with each file of a home; ``is_deep`` compares all rows as well.

    If the home is in a ``database``, what is wrong with each part of it.
    """
    if database is not None:
        return _check_database(database, is_deep=is_deep)
    return check_files(find_home(this_machine(), home), is_deep=is_deep)


def _check_database(database: "DatabaseAddress", *, is_deep: bool) -> list[CheckedFile]:
    # Slow to import, and most homes are files.
    from backstory.stores import PostgresStores

    with closing(PostgresStores(database)) as stores:
        history, place = stores.history, stores.index_place
        embeddings = place.open_embeddings()
        index = place.open_index(embeddings)

        def check_history() -> list[str]:
            history.count_by_host()
            return history.verify() if is_deep else []

        def check_index() -> list[str]:
            index.check()
            return index.verify() if is_deep else []

        def check_vectors() -> list[str]:
            embeddings.list_hashes()
            return []

        name = Path(stores.name)
        return [
            _check_part(name / "history", check_history),
            _check_part(name / "index", check_index, is_derived=True),
            _check_part(name / "vectors", check_vectors, is_derived=True),
        ]


def _check_part(
    path: Path, check: Callable[[], list[str]], *, is_derived: bool = False
) -> CheckedFile:
    try:
        return CheckedFile(path, tuple(check()), is_derived=is_derived)
    except (
        StoreFull,
        StoreIncomplete,
        StoreLocked,
        StoreUnreachable,
        StoreUnwritable,
    ) as exc:
        # That says nothing about its content.
        return CheckedFile(path, not_checked=str(exc), is_derived=is_derived)
    except StoreProblem as exc:
        return CheckedFile(path, (str(exc),), is_derived=is_derived)


def repair_home(home: str | Path | None = None) -> SalvagedHistory | None:
    """Repair a damaged history, keeping all that can be read, and the damaged file.

    Returns None if it is not damaged. Vectors that can be read are kept as well. A
    damaged index is made again by ``Memory.rebuild``.
    """
    found = find_home(this_machine(), home)
    repaired = repair_history(found)
    repair_vectors(found)
    return repaired


def check_repaired(
    home: str | Path | None,
    rebuild: Callable[[], object],
    *,
    is_deep: bool = False,
    database: "DatabaseAddress | None" = None,
) -> list[CheckedFile]:
    """Check a home after ``repair_home``; ``rebuild`` replaces a damaged index."""
    found = check_home(home, is_deep=is_deep, database=database)
    # If the history is lost, only the index still knows of it, and must stay.
    if any(file.problems and file.is_derived for file in found):
        rebuild()
        found = check_home(home, is_deep=is_deep, database=database)
    return found
