"""What a home holds, at a glance: read-only, with few imports, and without waiting.

This is for commands that must be quick and change nothing. A database that is missing,
locked, damaged or of another version raises ``StoreProblem``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from backstory.errors import StoreLocked, StoreProblem
from backstory.store.base.copies import check_complete
from backstory.store.base.glance import NamedSession
from backstory.store.base.history import Counts
from backstory.store.base.index import IndexCounts
from backstory.store.sqlite.read_only import is_copying, open_read_only
from backstory.store.sqlite.sessions import count_by_host
from backstory.store.sqlite.unit_counts import count_units

_HISTORY = "history.db"
_INDEX = "index.db"


class SqliteGlance:
    """A ``Glance`` at the files of a home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def check_complete(self) -> None:
        """Raise ``StoreIncomplete`` for a copy that is not complete."""
        with _reading(self._home, _HISTORY):
            pass  # opening it checks this

    def has_history(self) -> bool:
        return _is_there(self._home / _HISTORY)

    def count_by_host(self) -> list[Counts]:
        with _reading(self._home, _HISTORY) as db:
            return count_by_host(db)

    def count_units(self) -> IndexCounts | None:
        if not _is_there(self._home / _INDEX):
            return None
        with _reading(self._home, _INDEX) as db:
            return count_units(db)

    def list_named_sessions(self, beginning: str, limit: int) -> list[NamedSession]:
        with _reading(self._home, _HISTORY) as db:
            # Any: SQLite rows carry no types; the schema does.
            rows: Any = db.execute(
                """
                SELECT native_id, host, COALESCE(title, message_title, opening)
                  FROM sessions
                 WHERE message_count > 0 AND substr(native_id, 1, length(?1)) = ?1
                 ORDER BY last_active_at DESC NULLS LAST, session_id DESC
                 LIMIT ?2
                """,
                (beginning, limit),
            )
            return [NamedSession(*row) for row in rows]

    def list_project_folders(self) -> list[str]:
        """The folders that sessions ran in, the most recently used first."""
        with _reading(self._home, _HISTORY) as db:
            # Any: SQLite rows carry no types; the schema does.
            rows: Any = db.execute(
                """
                SELECT project FROM sessions
                 WHERE message_count > 0 AND project IS NOT NULL
                 GROUP BY project ORDER BY MAX(last_active_at) DESC
                """
            )
            return [project for (project,) in rows]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # It cannot be reached now; opening it will say why.
        return True


@contextmanager
def _reading(home: Path, name: str) -> Iterator[apsw.Connection]:
    path = home / name
    try:
        db = open_read_only(str(home), name)
        try:
            if name == _HISTORY:
                check_complete(is_copying(db), str(path))
            yield db
        finally:
            db.close()
    except apsw.BusyError as exc:
        raise StoreLocked(f"{path}: another process is using it", path=path) from exc
    except (apsw.Error, OSError, UnicodeError) as exc:
        raise StoreProblem(f"{path}: it cannot be read ({exc})", path=path) from exc
    except LookupError as exc:
        raise StoreProblem(
            f"{path}: another version of Backstory made it; 'backstory status' brings "
            "an older one up to date",
            path=path,
        ) from exc
