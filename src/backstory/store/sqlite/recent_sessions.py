"""What a hook reads of a history when a session begins: read-only, with few imports."""

from backstory.store.sqlite.read_only import open_history_read_only, read_identity

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Like ``values.moments.WHOLE_DAY``: only the day is known.
_WHOLE_DAY = 24 * 60


class RecentSession:
    """A session that was active lately, and the folder it ran in."""

    __slots__ = ("host", "native_id", "project")

    def __init__(self, host: str, native_id: str, project: str) -> None:
        self.host = host
        self.native_id = native_id
        self.project = project


class SqliteRecentSessions:
    """The sessions of one home.

    Raises ``apsw.Error``, OSError or LookupError if the history cannot be read as it
    is.
    """

    def __init__(self, home: str) -> None:
        self._history = open_history_read_only(home)

    def close(self) -> None:
        self._history.close()

    @property
    def identity(self) -> str:
        return read_identity(self._history)

    def list_active(self, since: int, since_day: int) -> list[RecentSession]:
        """Active sessions with a project; both times are in microseconds.

        ``since_day`` is for sessions of which only the day is known.
        """
        # Any: SQLite rows carry no types; the schema does.
        rows: Any = self._history.execute(
            """
            SELECT host, native_id, project FROM sessions
             WHERE message_count > 0 AND project IS NOT NULL
               AND last_active_at >= iif(last_active_offset_min = ?, ?, ?)
            """,
            (_WHOLE_DAY, since_day, since),
        )
        return [RecentSession(*row) for row in rows]
