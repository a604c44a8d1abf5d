"""What a home holds, at a glance: read-only, with few imports, and without waiting.

For the commands that must be quick and change nothing. A database that is missing,
locked, damaged or of another version raises ``StoreProblem``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from backstory.errors import StoreLocked, StoreProblem
from backstory.store.base.history import Counts
from backstory.store.base.index import IndexCounts
from backstory.store.sqlite.read_only import open_read_only
from backstory.store.sqlite.sessions import count_by_host
from backstory.store.sqlite.unit_counts import count_units
from backstory.values.structs import FrozenStruct

_HISTORY = "history.db"
_INDEX = "index.db"


class NamedSession(FrozenStruct):
    """A session by its names: its id, its program, and what it is about."""

    native_id: str
    host: str
    title: str


def read_host_counts(home: Path) -> list[Counts]:
    """How much each agent program has in the history."""
    with _reading(home, _HISTORY) as db:
        return count_by_host(db)


def read_unit_counts(home: Path) -> IndexCounts:
    """How much is in the index, and how much of it has vectors."""
    with _reading(home, _INDEX) as db:
        return count_units(db)


def list_named_sessions(home: Path, beginning: str, limit: int) -> list[NamedSession]:
    """The sessions whose id begins so, the most recently active first."""
    with _reading(home, _HISTORY) as db:
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


def list_project_folders(home: Path) -> list[str]:
    """The folders that sessions ran in, the most recently used first."""
    with _reading(home, _HISTORY) as db:
        # Any: as above.
        rows: Any = db.execute(
            """
            SELECT project FROM sessions
             WHERE message_count > 0 AND project IS NOT NULL
             GROUP BY project ORDER BY MAX(last_active_at) DESC
            """
        )
        return [project for (project,) in rows]


@contextmanager
def _reading(home: Path, name: str) -> Iterator[apsw.Connection]:
    path = home / name
    try:
        db = open_read_only(str(home), name)
        try:
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
