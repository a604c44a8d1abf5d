"""All rows of a history, to copy them from one database to another.

Both kinds of databases have the same tables with the same columns, apart from what each
derives for its own indexes. A row is a tuple of the values of ``columns``: numbers,
texts, bytes and None, the same in both. So a copy can be compared by a checksum.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Protocol

from backstory.values.structs import FrozenStruct

# The value of a column.
RowValue = int | float | str | bytes | None
Row = tuple[RowValue, ...]

# The name of the state that says what was copied here.
COPIED = "copied"


class HistoryTable(FrozenStruct):
    """A table; rows are in the order of ``key``, the names of its first columns.

    A ``numbered`` one has a single number as its key, and many rows.
    """

    name: str
    columns: tuple[str, ...]
    keys: int = 1
    numbered: bool = False


def _table(
    name: str, columns: str, *, keys: int = 1, numbered: bool = False
) -> HistoryTable:
    return HistoryTable(name, tuple(columns.split()), keys, numbered)


# In an order in which each table refers only to those before it.
HISTORY_TABLES = (
    _table(
        "sources",
        "path unit host format signature file_id read_to lines_read prefix_hash memo "
        "excluded_by read_at",
        keys=2,
    ),
    _table("problems", "problem_id host path unit line reason seen_at"),
    _table(
        "sessions",
        "session_id host native_id kind title message_title opening project git_branch "
        "parent_id started_at started_offset_min last_active_at last_active_offset_min "
        "message_count preview read_from",
        numbered=True,
    ),
    _table(
        "messages",
        "message_id session_id native_id position role text tool_name call_id sent_at "
        "utc_offset_min full_bytes",
        numbered=True,
    ),
    _table("message_titles", "host native_id title", keys=2),
    _table("seen_notes", "key day text"),
    _table(
        "forgettings",
        "forgetting_id forgotten_at sessions messages hosts salt facts reason",
    ),
    _table("forgotten", "forgetting_id key before_at", keys=2),
    _table("due_logs", "session_id last_message_id cause tries not_before"),
    _table(
        "summaries",
        "summary_id session_id day first_message_id last_message_id marker highlights",
    ),
    _table(
        "set_aside_logs",
        "set_aside_id session_id first_message_id last_message_id reason",
    ),
    _table(
        "model_calls",
        "call_id called_at day purpose model input_tokens output_tokens took_ms "
        "outcome",
    ),
    _table("journal_state", "name value"),
    # How far each session is summarized; refers to messages, so it comes after them.
    _table("logged_sessions", "session_id last_logged_message_id"),
    _table(
        "changes",
        "change_id session_id first_message_id last_message_id tag",
        numbered=True,
    ),
)


class HistoryRows(Protocol):
    """Reads and writes the rows of one history. Raises ``StoreProblem``.

    Reads see one state of the history from the first use to ``close``, unless rows are
    written.
    """

    @property
    def identity(self) -> str: ...

    def is_empty(self) -> bool:
        """Whether nothing was ever recorded in it."""
        ...

    def iter_rows(self, table: HistoryTable, *, after: int | None) -> Iterator[Row]:
        """The rows of a table in the order of their keys.

        Of a numbered table, only those with a number higher than ``after``.
        """
        ...

    def count_rows(self, table: HistoryTable) -> int: ...

    def find_last(self, table: HistoryTable) -> int | None:
        """The highest number of a numbered table; None if it has no rows."""
        ...

    def get_state(self, name: str) -> str | None:
        """A value of ``journal_state``."""
        ...

    def begin(self, identity: str, state: str, *, last_change: str | None) -> bool:
        """Delete everything, and take an identity; keep ``state`` as ``COPYING``.

        From then on, nobody else can use it. Does nothing and returns False if the last
        change is no longer ``last_change``, unless that is None.
        """
        ...

    def insert_rows(self, table: HistoryTable, rows: Sequence[Row]) -> None:
        """Insert rows, all or none of them; rows that exist already are kept."""
        ...

    def finish(self, state: str) -> None:
        """Delete the state ``COPYING``, and keep ``state`` as ``COPIED``.

        Anything written later counts as new.
        """
        ...

    def find_last_change(self) -> str:
        """The number and the tag of the last change, which no other history has."""
        ...

    def close(self) -> None: ...


def checksum(rows: Iterator[Row]) -> tuple[int, str]:
    """How many rows there are, and a hash of all of them in their order."""
    digest = blake2b(digest_size=16)
    count = 0
    for row in rows:
        # ``repr`` is different for any two values, also of different types.
        digest.update(repr(row).encode("utf-8", errors="surrogatepass"))
        count += 1
    return count, digest.hexdigest()
