"""The tables about summaries in history.db: what is due, what waits, and model calls.

This store has connections of its own, because threads and processes that wait for a
model must not hold up the history.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

import apsw

from backstory.store.base.copies import check_complete
from backstory.store.base.summaries import Due, SetAside, Summary
from backstory.store.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    transaction,
    translated,
)
from backstory.store.sqlite.history import open_history
from backstory.store.sqlite.opening import Connections
from backstory.store.sqlite.read_only import is_copying
from backstory.store.sqlite.rows import read_day
from backstory.values.moments import Moment, from_microseconds
from backstory.values.reports import ModelCall

_RUNNING = "running"
# Nothing is postponed for this long; if something seems to be, the clock was set back.
_IMPOSSIBLE_WAIT = 2 * 24 * 3600 * 1_000_000
_SPOKEN = "('user', 'assistant')"


def _next_position(session_id: str) -> str:
    """A query for the first position of a session that is not summarized yet."""
    return f"""
        SELECT COALESCE(MAX(position) + 1, 0) FROM messages
         WHERE message_id IN (
               SELECT last_logged_message_id FROM sessions
                WHERE session_id = {session_id}
                UNION ALL
               SELECT last_message_id FROM summaries WHERE session_id = {session_id}
                UNION ALL
               SELECT last_message_id FROM set_aside_logs
                WHERE session_id = {session_id})
    """


_NEXT_POSITION = _next_position("?1")

# Conversations that ended before one time; those that were read from a file must have
# been active since another.
_QUIET = """
    SELECT session_id FROM sessions AS session
     WHERE kind = 'conversation' AND last_active_at <= ?1
       AND (read_from IS NULL OR last_active_at >= ?2)
       AND session_id NOT IN (SELECT session_id FROM due_logs)
"""
# Something was said in a session that has an opening. So if none of it was summarized,
# its messages need not be read; there may be thousands of such sessions.
_WITH_UNLOGGED = f"""
       AND (opening <> '' AND last_logged_message_id IS NULL
            AND session_id NOT IN (SELECT session_id FROM summaries)
            AND session_id NOT IN (SELECT session_id FROM set_aside_logs)
         OR EXISTS (
            SELECT 1 FROM messages
             WHERE messages.session_id = session.session_id AND role IN {_SPOKEN}
               AND position >= ({_next_position("session.session_id")})))
"""
_BY_TIME = " ORDER BY last_active_at, session_id"


class SqliteSummaryStore:
    """A ``SummaryStore`` in the file of the history."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = Connections(path, lambda: _open(path))

    @property
    def _db(self) -> apsw.Connection:
        return self._connections.current()

    # -- what is due ---

    def mark_due(
        self,
        session_id: int,
        cause: str,
        *,
        now: datetime,
        timeout_s: float = BUSY_TIMEOUT_MS / 1000,
    ) -> bool:
        with translated(self.path):
            db = self._db
            db.set_busy_timeout(round(timeout_s * 1000))
            try:
                with transaction(db):
                    return _mark_due(db, session_id, cause, now)
            finally:
                db.set_busy_timeout(BUSY_TIMEOUT_MS)

    def list_due(self, *, now: datetime | None) -> list[Due]:
        with translated(self.path):
            rows = self._db.execute(
                """
                SELECT session_id, last_message_id, cause, tries FROM due_logs
                 WHERE ?1 IS NULL OR not_before <= ?1 OR not_before > ?1 + ?2
                 ORDER BY not_before, session_id
                """,
                (None if now is None else _to_number(now), _IMPOSSIBLE_WAIT),
            )
            return [Due(*row) for row in rows]

    def count_due(self) -> int:
        with translated(self.path):
            count: int = self._db.execute("SELECT COUNT(*) FROM due_logs").get
            return count

    def postpone(self, due: Due, *, until: datetime) -> None:
        with translated(self.path), transaction(self._db):
            self._db.execute(
                """
                UPDATE due_logs SET tries = tries + 1, not_before = ?
                 WHERE session_id = ?
                """,
                (_to_number(until), due.session_id),
            )

    def delete_due(self, due: Due) -> None:
        with translated(self.path), transaction(self._db):
            self._db.execute(
                "DELETE FROM due_logs WHERE session_id = ? AND last_message_id <= ?",
                (due.session_id, due.last_message_id),
            )

    def list_quiet(self, *, before: datetime, read_since: datetime | None) -> list[int]:
        times = (
            _to_number(before),
            None if read_since is None else _to_number(read_since),
        )
        with translated(self.path):
            try:
                rows = self._db.execute(_QUIET + _WITH_UNLOGGED + _BY_TIME, times)
                return [session_id for (session_id,) in rows]
            except apsw.CorruptError:
                # One by one, so that a damaged page hides only its own sessions.
                rows = self._db.execute(_QUIET + _BY_TIME, times)
                quiet = [session_id for (session_id,) in rows]
                return [each for each in quiet if self._has_unlogged(each)]

    def _has_unlogged(self, session_id: int) -> bool:
        query = (
            f"SELECT 1 FROM sessions AS session WHERE session_id = ? {_WITH_UNLOGGED}"
        )
        with suppress(apsw.CorruptError):
            return self._db.execute(query, (session_id,)).get is not None
        return False

    def next_position(self, session_id: int) -> int:
        with translated(self.path):
            position: int = self._db.execute(_NEXT_POSITION, (session_id,)).get
            return position

    # -- what a model made of it ---

    def add_summary(self, summary: Summary, *, of: SetAside | None = None) -> None:
        with translated(self.path), transaction(self._db):
            if of is not None:
                self._delete_set_aside(of)
            self._db.execute(
                """
                INSERT INTO summaries (session_id, day, first_message_id,
                                       last_message_id, marker, highlights)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
                (
                    summary.session_id,
                    summary.day.isoformat(),
                    summary.first_message_id,
                    summary.last_message_id,
                    summary.marker,
                    summary.lists,
                ),
            )

    def list_summaries(self, session_id: int) -> list[Summary]:
        with translated(self.path):
            rows = self._db.execute(
                """
                SELECT session_id, day, first_message_id, last_message_id, marker,
                       highlights
                  FROM summaries WHERE session_id = ? ORDER BY summary_id
                """,
                (session_id,),
            )
            return [
                Summary(session, on_day, *rest)
                for session, day, *rest in rows
                if (on_day := read_day(day)) is not None
            ]

    def list_waiting_sessions(self) -> list[int]:
        with translated(self.path):
            rows = self._db.execute(
                "SELECT DISTINCT session_id FROM summaries ORDER BY session_id"
            )
            return [session_id for (session_id,) in rows]

    def finish(self, summaries: Sequence[Summary]) -> None:
        with translated(self.path), transaction(self._db):
            for each in summaries:
                self._db.execute(
                    """
                    UPDATE sessions SET last_logged_message_id = ?2
                     WHERE session_id = ?1
                       AND (SELECT position FROM messages WHERE message_id = ?2)
                         > COALESCE((SELECT position FROM messages
                                      WHERE message_id = last_logged_message_id), -1)
                    """,
                    (each.session_id, each.last_message_id),
                )
                self._db.execute(
                    "DELETE FROM summaries WHERE marker = ?", (each.marker,)
                )

    # -- what it could not summarize ---

    def set_aside(self, messages: SetAside) -> None:
        with translated(self.path), transaction(self._db):
            self._db.execute(
                """
                INSERT INTO set_aside_logs (session_id, first_message_id,
                                            last_message_id, reason)
                VALUES (?, ?, ?, ?)
                """,
                (
                    messages.session_id,
                    messages.first_message_id,
                    messages.last_message_id,
                    messages.reason,
                ),
            )

    def list_set_aside(self) -> list[SetAside]:
        with translated(self.path):
            rows = self._db.execute(
                """
                SELECT session_id, first_message_id, last_message_id, reason
                  FROM set_aside_logs ORDER BY set_aside_id
                """
            )
            return [SetAside(*row) for row in rows]

    def take_back(self, messages: SetAside) -> None:
        with translated(self.path), transaction(self._db):
            self._delete_set_aside(messages)

    def _delete_set_aside(self, messages: SetAside) -> None:
        self._db.execute(
            """
            DELETE FROM set_aside_logs
             WHERE session_id = ? AND first_message_id = ? AND last_message_id = ?
            """,
            (
                messages.session_id,
                messages.first_message_id,
                messages.last_message_id,
            ),
        )

    # -- what it cost ---

    def reserve_call(
        self,
        *,
        purpose: str,
        model: str,
        input_tokens: int,
        output_tokens: int,
        daily_tokens: int,
        now: datetime,
    ) -> int | None:
        day = _local_day(now).isoformat()
        with translated(self.path), transaction(self._db):
            used: int = self._db.execute(
                """
                SELECT COALESCE(SUM(input_tokens + output_tokens), 0) FROM model_calls
                 WHERE day = ?
                """,
                (day,),
            ).get
            if used + input_tokens + output_tokens > daily_tokens:
                return None
            self._db.execute(
                """
                INSERT INTO model_calls (called_at, day, purpose, model, input_tokens,
                                         output_tokens, outcome)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
                (
                    _to_number(now),
                    day,
                    purpose,
                    model,
                    input_tokens,
                    output_tokens,
                    _RUNNING,
                ),
            )
            return self._db.last_insert_rowid()

    def settle_call(
        self,
        call_id: int,
        *,
        input_tokens: int,
        output_tokens: int,
        took_ms: int,
        outcome: str,
    ) -> None:
        with translated(self.path), transaction(self._db):
            self._db.execute(
                """
                UPDATE model_calls
                   SET input_tokens = ?, output_tokens = ?, took_ms = ?, outcome = ?
                 WHERE call_id = ?
                """,
                (input_tokens, output_tokens, took_ms, outcome, call_id),
            )

    def list_calls(self, day: date) -> list[ModelCall]:
        with translated(self.path):
            rows = self._db.execute(
                """
                SELECT called_at, purpose, model, input_tokens, output_tokens, took_ms,
                       outcome
                  FROM model_calls WHERE day = ? ORDER BY call_id
                """,
                (day.isoformat(),),
            )
            return [
                ModelCall(from_microseconds(called_at).at, *rest)
                for called_at, *rest in rows
            ]

    # -- the rest ---

    def get_state(self, name: str) -> str | None:
        with translated(self.path):
            value: str | None = self._db.execute(
                "SELECT value FROM journal_state WHERE name = ?", (name,)
            ).get
            return value

    def set_state(self, name: str, value: str) -> None:
        with translated(self.path), transaction(self._db):
            self._db.execute(
                """
                INSERT INTO journal_state (name, value) VALUES (?1, ?2)
                    ON CONFLICT (name) DO UPDATE SET value = ?2
                """,
                (name, value),
            )

    def close(self) -> None:
        self._connections.close()


def _open(path: Path) -> apsw.Connection:
    db = open_history(path)
    check_complete(is_copying(db), str(path))
    return db


def _mark_due(db: apsw.Connection, session_id: int, cause: str, now: datetime) -> bool:
    last: int | None = db.execute(
        f"""
        SELECT MAX(message_id) FROM messages
         WHERE session_id = ?1 AND role IN {_SPOKEN} AND position >= ({_NEXT_POSITION})
        """,
        (session_id,),
    ).get
    if last is None:
        return False
    db.execute(
        """
        INSERT INTO due_logs (session_id, last_message_id, cause, not_before)
        VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (session_id) DO UPDATE
           SET last_message_id = MAX(last_message_id, ?2), cause = ?3,
               not_before = MIN(not_before, ?4)
        """,
        (session_id, last, cause, _to_number(now)),
    )
    return True


def _to_number(moment: datetime) -> int:
    return Moment(moment).to_microseconds()


def _local_day(now: datetime) -> date:
    return now.astimezone().date()
