"""Open a session when no server is running: fast, read-only, few imports.

The text is that of ``memory.opening`` where the settings are the default ones. Neither
the index nor the embedder is needed for it, and the history only to know which blocks
of the daily logs are about this project.
"""

import os

from backstory.hooks.limits import HookAnswer, write_within_limits
from backstory.hooks.log import log_failure
from backstory.hooks.projects import is_same_project
from backstory.notes.beginning import read_beginning
from backstory.search.opening_text import RECENT_DAYS, iter_recent, write_opening
from backstory.store.sqlite.recent_sessions import SqliteRecentSessions
from backstory.text.memories_frame import MemoriesFrame
from backstory.text.tokens import most_tokens

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date, datetime

# The default of the setting ``context.max_tokens``.
_MAX_TOKENS = 2_000
_DAY_S = 24 * 3600
_LOG_SUFFIX = ".md"


def open_by_files(home: str, cwd: str, *, is_compacted: bool, now: float) -> str:
    """What to tell an agent when a session begins in the folder ``cwd``.

    Raises ``apsw.Error``, OSError or LookupError if the history cannot be read.
    """
    sessions = SqliteRecentSessions(home)
    try:
        memory = _read(home, "MEMORY.md")
        recent = list(_list_recent(home, cwd, sessions, now)) if cwd else []
        seal = MemoriesFrame(sessions.identity).seal
    finally:
        sessions.close()

    def write(max_tokens: int) -> HookAnswer:
        text = write_opening(
            memory,
            recent,
            is_compacted=is_compacted,
            max_tokens=max_tokens,
            count_tokens=most_tokens,
            seal=seal,
        )
        return text, ()

    return write_within_limits(write, _MAX_TOKENS)[0]


def _list_recent(
    home: str, cwd: str, sessions: SqliteRecentSessions, now: float
) -> "list[tuple[date, str]]":
    """The newest blocks of logs about sessions of the project, with their days."""
    try:
        names = os.listdir(os.path.join(home, "memory", "daily"))
    except OSError:
        return []
    if not names:
        return []
    # Most homes have no logs.
    from datetime import UTC, date, datetime, timedelta

    # As above.
    from backstory.notes.log_markers import marker_start

    since = datetime.fromtimestamp(now, UTC) - timedelta(days=RECENT_DAYS)
    first = since.astimezone().date()
    days = []
    for name in sorted(names):
        try:
            day = date.fromisoformat(name.removesuffix(_LOG_SUFFIX))
        except ValueError:
            continue
        if day >= first and name == f"{day.isoformat()}{_LOG_SUFFIX}":
            days.append(day)
    if not days:
        return []
    active = since - timedelta(days=RECENT_DAYS)
    midnight = datetime.combine(active.astimezone().date(), datetime.min.time(), UTC)
    starts = tuple(
        marker_start(each)
        for each in sessions.list_active(_microseconds(active), _microseconds(midnight))
        if is_same_project(each.project, cwd)
    )
    return list(
        iter_recent(
            days,
            lambda day: _read(home, f"daily/{day.isoformat()}{_LOG_SUFFIX}"),
            lambda marker: marker.startswith(starts),
        )
    )


def _microseconds(at: "datetime") -> int:
    return int(at.timestamp() * 1_000_000)


def _read(home: str, name: str) -> str:
    """A note; empty if it cannot be read, which the log then says."""
    try:
        return read_beginning(os.path.join(home, "memory"), name)
    except OSError as exc:
        log_failure(home, "session-start", exc)
        return ""
