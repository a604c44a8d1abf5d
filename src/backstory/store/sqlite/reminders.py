"""What a hook reads to remind an agent: by words, read-only, with few imports.

It reads the same tables as ``SqliteIndex`` and ``SqliteHistory``.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from backstory.store.base.tokens import make_tokenizer, tokenize
from backstory.store.sqlite.match import (
    any_of,
    count_word,
    keep_fitting,
    match_any,
    match_expression,
    match_fitting,
    score_matches,
)
from backstory.store.sqlite.read_only import (
    open_history_read_only,
    open_read_only,
    read_identity,
)

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The numbers of ``UnitKind`` for what somebody said or noted.
_MEMORY, _DAILY_LOG = 6, 7
_REMEMBERED = "units.kind IN (1, 2, 3, 6, 7)"
_TOOLS = 4
# Read this many times as many matches as wanted, because some are tool output.
_TRIED = 6

# A session with more messages is no warm-up.
_WARM_UP_MESSAGES = 2
_REPLY_STEPS = 100
_SAID = 100


class Reminder:
    """A text that may become a memory, and where it comes from.

    ``at`` is in microseconds; for a note, which only has a day, it is noon in UTC.
    ``title`` and ``opening`` name the session.
    """

    __slots__ = (
        "at",
        "is_agentic",
        "is_log",
        "is_memory",
        "opening",
        "position",
        "role",
        "session_id",
        "text",
        "title",
        "unit_id",
    )

    def __init__(self, unit_id: int, kind: int, at: int | None) -> None:
        self.unit_id = unit_id
        self.is_memory = kind == _MEMORY
        self.is_log = kind == _DAILY_LOG
        self.at = at
        self.is_agentic = False
        self.session_id = 0
        self.position = 0
        self.role = ""
        self.text = ""
        self.title = ""
        self.opening = ""


class SqliteReminders:
    """A ``WordsReader`` of one home, for a session of a host.

    ``is_ours`` says whether a folder belongs to the project. Raises ``apsw.Error``,
    OSError or LookupError if a database cannot be read as it is.
    """

    def __init__(
        self,
        home: str,
        *,
        host: str,
        native_id: str,
        is_ours: Callable[[str | None], bool],
    ) -> None:
        self._history = open_history_read_only(home)
        self._index = open_read_only(home, "index.db")
        self._is_ours = is_ours
        self._host = host
        self._native_id = native_id
        # The session that the reminder is for, if the history has it.
        self.session_id: int | None = self._history.execute(
            "SELECT session_id FROM sessions WHERE native_id = ? AND host = ?",
            (native_id, host),
        ).get
        self.loaded: dict[int, Reminder] = {}
        self._tokenizer = make_tokenizer(self._index)

    def close(self) -> None:
        self._index.close()
        self._history.close()

    @property
    def identity(self) -> str:
        """The text that is unique to this history."""
        return read_identity(self._history)

    def count_units(self) -> int:
        found = self._index.execute("SELECT value FROM state WHERE name = 'units'").get
        return int(found or 0)

    def count_documents(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        return [sum(map(self._count_spelling, spellings)) for spellings in words]

    def _count_spelling(self, spelling: str) -> int:
        tokens = tokenize(self._tokenizer, spelling)
        return min((count_word(self._index, token) for token in tokens), default=0)

    def match(
        self,
        words: tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]],
        limit: int,
        *,
        least: float = 0.0,
    ) -> list[tuple[int, float]]:
        fitting = f"{_REMEMBERED} AND units.source_id IS NOT ?"
        own = (self.session_id,)
        expression = match_expression(*words)
        tried = limit * _TRIED
        best = match_any(self._index, expression, limit=tried)
        # Few score high enough, and only those are read.
        enough = self._at_least(least, best, words)
        found = keep_fitting(self._index, enough, fitting, own)
        may_be_more = len(best) == tried and best[-1][1] >= least
        if len(found) < limit and may_be_more:
            found = match_fitting(
                self._index, expression, f"AND {fitting}", own, limit=limit
            )
            found = self._at_least(least, found, words)
        return found[:limit]

    def _at_least(
        self,
        least: float,
        matches: list[tuple[int, float]],
        words: tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]],
    ) -> list[tuple[int, float]]:
        """The matches that score high enough if words count once, the best first."""
        needed, helpful = words
        enough = [match for match in matches if match[1] >= least]
        if not helpful or not enough:
            return enough
        # In the expression, needed words occur twice, so they count twice.
        again = score_matches(
            self._index, any_of(needed), [unit_id for unit_id, _ in enough]
        )
        once = [(unit_id, score - again[unit_id]) for unit_id, score in enough]
        once = [match for match in once if match[1] >= least]
        return sorted(once, key=lambda match: (-match[1], -match[0]))

    def load(self, unit_ids: Sequence[int]) -> Mapping[int, Reminder]:
        """Load units of the project that are not of the session or its subagents."""
        # Any: SQLite rows carry no types; the schema does.
        units: list[Any] = self._index.execute(
            """
            SELECT units.unit_id, kind, source_id, said_at, notes.text,
                   (SELECT project FROM index_state
                     WHERE state_id = -source_id AND source_type != 'conversation'),
                   EXISTS (SELECT 1 FROM units AS tools
                            WHERE tools.source_id = units.source_id AND tools.kind = ?)
              FROM units LEFT JOIN notes USING (unit_id)
             WHERE units.unit_id IN (SELECT value FROM json_each(?))
            """,
            (_TOOLS, json.dumps(list(unit_ids))),
        ).fetchall()
        found: dict[int, Reminder] = {}
        for unit_id, kind, source_id, said_at, text, project, has_tools in units:
            reminder = Reminder(unit_id, kind, said_at)
            if source_id > 0:
                reminder.is_agentic = bool(has_tools)
            elif text is None or not self._is_ours(project):
                continue
            else:
                reminder.text = text
            found[unit_id] = reminder
        self._load_messages(found)
        found = {unit_id: each for unit_id, each in found.items() if each.text}
        self.loaded |= found
        return found

    def _load_messages(self, found: Mapping[int, Reminder]) -> None:
        wanted = [unit_id for unit_id, each in found.items() if not each.text]
        if not wanted:
            return
        rows: Any = self._history.execute(
            """
            SELECT message_id, messages.session_id, position, role, text, sent_at,
                   COALESCE(title, message_title), opening, project, host, parent_id,
                   message_count
              FROM messages JOIN sessions USING (session_id)
             WHERE message_id IN (SELECT value FROM json_each(?))
            """,
            (json.dumps(wanted),),
        )
        for message_id, session_id, position, role, text, sent_at, *about in rows:
            title, opening, project, host, parent_id, message_count = about
            is_subagent = (host, parent_id) == (self._host, self._native_id)
            if is_subagent or not self._is_ours(project):
                continue
            if message_count <= _WARM_UP_MESSAGES and self._is_warm_up(
                session_id, host, title or opening, is_subagent=parent_id is not None
            ):
                continue
            each = found[message_id]
            each.session_id, each.position = session_id, position
            each.role, each.text = role, text
            if sent_at is not None and not (each.is_memory or each.is_log):
                each.at = sent_at
            each.title, each.opening = title or "", opening

    def _is_warm_up(
        self, session_id: int, host: str, title: str, *, is_subagent: bool
    ) -> bool:
        # Few sessions are so short.
        from backstory.text.warm_ups import is_warm_up, may_be_warm_up

        # Any: SQLite rows carry no types; the schema does.
        said: Any = self._history.execute(
            "SELECT role, text FROM messages WHERE session_id = ?", (session_id,)
        ).fetchall()
        may_be = may_be_warm_up(host, title, len(said), is_subagent=is_subagent)
        return may_be and is_warm_up(said, is_subagent=is_subagent)

    def find_reply(self, reminder: Reminder) -> tuple[int, str, str] | None:
        """The agent's last message of a message's turn: its number, role and text."""
        row = self._history.execute(
            f"""
            SELECT message_id, role, text FROM messages
             WHERE message_id =
                   (SELECT message_id
                      FROM (SELECT message_id, position,
                                   COUNT(*) FILTER (WHERE role = 'user')
                                   OVER (ORDER BY position) AS user_messages
                              FROM (SELECT message_id, position, role FROM messages
                                     WHERE session_id = ? AND position > ?
                                       AND role IN ('user', 'assistant')
                                     ORDER BY position LIMIT {_REPLY_STEPS}))
                     WHERE user_messages = 0
                     ORDER BY position DESC LIMIT 1)
            """,
            (reminder.session_id, reminder.position),
        ).get
        return None if row is None else (row[0], row[1], row[2])

    def is_step(self, message_id: int) -> bool:
        """Whether a tool was called right after a message."""
        found = self._history.execute(
            """
            SELECT following.role IN ('tool_call', 'tool_result')
              FROM messages AS step JOIN messages AS following
                ON following.session_id = step.session_id
               AND following.position = step.position + 1
             WHERE step.message_id = ?
            """,
            (message_id,),
        ).get
        return bool(found)

    def list_said(self) -> list[str]:
        """What was said last in the session that the reminder is for."""
        rows: Any = self._history.execute(
            """
            SELECT text FROM messages
             WHERE session_id = ?1 AND role IN ('user', 'assistant')
               AND position >= (SELECT message_count - ?2 FROM sessions
                                 WHERE session_id = ?1)
             ORDER BY position
            """,
            (self.session_id, _SAID),
        )
        return [text for (text,) in rows] if self.session_id is not None else []
