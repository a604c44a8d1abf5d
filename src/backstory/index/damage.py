"""Check the files of a home, and repair them as far as that is possible.

Each file is opened by itself here: a home with a damaged history cannot be opened as a
memory.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from backstory.errors import (
    StoreFull,
    StoreIncomplete,
    StoreLocked,
    StoreProblem,
    StoreUnwritable,
)
from backstory.index.history_damage import forget_damage, list_noted_damage
from backstory.index.lost_texts import list_saved_texts
from backstory.index.origin import HISTORY
from backstory.index.proof import prove_by_index
from backstory.store.base.index import SearchIndex
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.history import HISTORY_NAME, SqliteHistory
from backstory.store.sqlite.history_salvage import (
    list_damaged_copies,
    salvage_history,
)
from backstory.store.sqlite.index import SqliteIndex
from backstory.store.sqlite.index_files import (
    EMBEDDINGS_NAME,
    INDEX_NAME,
    repair_embeddings,
)
from backstory.store.sqlite.salvage import list_damaged_pages
from backstory.system.files import storing
from backstory.values.proof import ProveMessages, prove_nothing
from backstory.values.reports import CheckedFile, SalvagedHistory
from backstory.values.structs import replace

logger = logging.getLogger(__name__)

Check = Callable[[Path, bool], list[str]]


def check_files(home: Path, *, is_deep: bool = False) -> list[CheckedFile]:
    """What is wrong with each file of a home; ``is_deep`` compares all rows as well."""
    checks: tuple[tuple[str, Check], ...] = (
        (HISTORY_NAME, _check_history),
        (INDEX_NAME, _check_index),
        (EMBEDDINGS_NAME, _check_embeddings),
    )
    found = [
        _check(home / name, check, is_deep)
        for name, check in checks
        if _exists(home / name)
    ]
    if not _exists(home / HISTORY_NAME):
        lost = _describe_loss(home / HISTORY_NAME, "it is missing")
        return [*(CheckedFile(home / HISTORY_NAME, (each,)) for each in lost), *found]
    if not found[0].problems and not found[0].not_checked:
        forget_damage(home)
    return found


def _exists(path: Path) -> bool:
    # A name may be too long to look up, or a folder not accessible.
    with storing(path):
        return path.exists()


def _check(path: Path, check: Check, is_deep: bool) -> CheckedFile:
    checked = CheckedFile(path, is_derived=path.name != HISTORY_NAME)
    try:
        damaged = [str(page) for page in list_damaged_pages(path)]
        return replace(checked, problems=tuple(damaged or check(path, is_deep)))
    except (StoreFull, StoreIncomplete, StoreLocked, StoreUnwritable) as exc:
        # That says nothing about the content of the file.
        return replace(checked, not_checked=str(exc))
    except StoreProblem as exc:
        return replace(checked, problems=(str(exc),))


def _check_history(path: Path, is_deep: bool) -> list[str]:
    with closing(SqliteHistory(path)) as history:
        if not history.last_change_id():
            return _describe_loss(path, "it is empty")
        # Damage that was noticed before may be of a kind that only a deep check finds.
        noted = list_noted_damage(path.parent)
        return history.verify() if is_deep or noted else []


def _describe_loss(path: Path, what: str) -> list[str]:
    """What is lost with a history, if the index next to it has messages of it."""
    with suppress(StoreProblem), _opened_index(path.with_name(INDEX_NAME)) as index:
        known = 0 if index is None else index.counts().messages
        if known:
            return [
                f"{what}, but the index knows {known:,} of its messages; restore a "
                "backup of history.db, or run 'backstory salvage' to save their texts"
            ]
    return []


@contextmanager
def _opened_index(path: Path) -> Iterator[SearchIndex | None]:
    """The index; None if there is none. Raises ``StoreProblem``."""
    if not path.exists():
        yield None
        return
    with (
        closing(SqliteEmbeddings(path.with_name(EMBEDDINGS_NAME))) as embeddings,
        closing(SqliteIndex(path, embeddings)) as index,
    ):
        yield index


def _check_index(path: Path, is_deep: bool) -> list[str]:
    with _opened_index(path) as index:
        assert index is not None
        index.check()
        return index.verify() if is_deep else []


def _check_embeddings(path: Path, is_deep: bool) -> list[str]:
    with closing(SqliteEmbeddings(path)) as embeddings:
        embeddings.list_hashes()
        return []


def repair_history(home: Path) -> SalvagedHistory | None:
    """Repair the history if it is damaged; returns None if it is not.

    The content of damaged pages is compared with the index. Raises ``StoreProblem`` if
    the history cannot be written.
    """
    path = home / HISTORY_NAME
    if not _exists(path) or not _is_damaged(path):
        return None
    with _proving(path) as prove:
        saved = salvage_history(path, prove=prove)
    forget_damage(home)
    return saved


def repair_vectors(home: Path) -> None:
    """Repair the cache of vectors if it is damaged."""
    path = home / EMBEDDINGS_NAME
    with storing(path):
        if path.exists() and list_damaged_pages(path):
            repair_embeddings(home)


def _is_damaged(path: Path) -> bool:
    # An empty file is intact; there is nothing in it to repair.
    return bool(_check(path, _verify_history, is_deep=True).problems)


def _verify_history(path: Path, is_deep: bool) -> list[str]:
    with closing(SqliteHistory(path)) as history:
        return history.verify()


@contextmanager
def _proving(path: Path) -> Iterator[ProveMessages]:
    """Compares messages with the index, if there is an intact one of this history."""
    prove: ProveMessages = prove_nothing
    with ExitStack() as opened:
        try:
            index = opened.enter_context(_opened_index(path.with_name(INDEX_NAME)))
            if index is not None and _is_of(index, path):
                index.check()
                prove = partial(prove_by_index, index)
        except StoreProblem as exc:
            logger.info("%s", exc)
        yield prove


def _is_of(index: SearchIndex, path: Path) -> bool:
    """Whether an index was made from this history, if the history can still tell."""
    with suppress(StoreProblem), closing(SqliteHistory(path)) as history:
        return index.get_state(HISTORY) == history.identity
    return True


def list_copies(home: Path) -> list[Path]:
    """Files with messages that repairs, or a person, have left in a home."""
    left = [*list_saved_texts(home), *list_damaged_copies(home / HISTORY_NAME)]
    copied = [
        path
        for name in (HISTORY_NAME, INDEX_NAME, EMBEDDINGS_NAME)
        for path in home.glob(f"{Path(name).stem}*.db*")
        if path.name not in (name, f"{name}-wal", f"{name}-shm")
    ]
    return list(dict.fromkeys([*left, *sorted(copied)]))
