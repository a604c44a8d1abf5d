"""Check the files of a home, and repair them as far as that is possible.

This opens each file by itself: a home with a damaged history cannot be opened as a
memory.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from backstory.errors import StoreProblem
from backstory.index.files import EMBEDDINGS_NAME, INDEX_NAME
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.history import HISTORY_NAME, SqliteHistory
from backstory.store.sqlite.history_salvage import salvage_history
from backstory.store.sqlite.index import SqliteIndex
from backstory.store.sqlite.salvage import list_damaged_pages
from backstory.system.files import storing
from backstory.values.reports import CheckedFile, SalvagedHistory

logger = logging.getLogger(__name__)


def check_files(home: Path, *, is_deep: bool = False) -> list[CheckedFile]:
    """What is wrong with each file of a home; ``is_deep`` compares all rows as well."""
    checks: tuple[tuple[str, Callable[[Path, bool], list[str]]], ...] = (
        (HISTORY_NAME, _check_history),
        (INDEX_NAME, _check_index),
        (EMBEDDINGS_NAME, _check_embeddings),
    )
    return [
        CheckedFile(home / name, tuple(_check(home / name, check, is_deep)))
        for name, check in checks
        if _exists(home / name)
    ]


def _exists(path: Path) -> bool:
    # A name can be too long to ask for, or a folder closed.
    with storing(path):
        return path.exists()


def _check(
    path: Path, check: Callable[[Path, bool], list[str]], is_deep: bool
) -> list[str]:
    damaged = [str(page) for page in list_damaged_pages(path)]
    try:
        return damaged or check(path, is_deep)
    except StoreProblem as exc:
        return [str(exc)]


def _check_history(path: Path, is_deep: bool) -> list[str]:
    history = SqliteHistory(path)
    try:
        return history.verify() if is_deep else []
    finally:
        history.close()


def _check_index(path: Path, is_deep: bool) -> list[str]:
    embeddings = SqliteEmbeddings(path.with_name(EMBEDDINGS_NAME))
    index = SqliteIndex(path, embeddings)
    try:
        index.check()
        return index.verify() if is_deep else []
    finally:
        index.close()
        embeddings.close()


def _check_embeddings(path: Path, is_deep: bool) -> list[str]:
    embeddings = SqliteEmbeddings(path)
    try:
        embeddings.list_hashes()
        return []
    finally:
        embeddings.close()


def repair_history(home: Path) -> SalvagedHistory | None:
    """Repair the history if it is damaged; returns None if it is not."""
    path = home / HISTORY_NAME
    if not _exists(path) or not _check(path, _check_history, True):
        return None
    return salvage_history(path)
