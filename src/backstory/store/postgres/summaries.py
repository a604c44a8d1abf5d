"""The tables about summaries: what is due, what waits, and model calls."""

from collections.abc import Sequence
from datetime import date, datetime

from backstory.store.base.summaries import Due, SetAside, Summary
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import WAIT_S, Tenant, take_numbers
from backstory.values.moments import Moment, from_microseconds
from backstory.values.reports import ModelCall

_RUNNING = "running"
# Nothing is postponed for this long: if it seems so, the clock was set back.
_IMPOSSIBLE_WAIT = 2 * 24 * 3600 * 1_000_000
_SPOKEN = "('user', 'assistant')"


def _next_position(session_id: str) -> str:
    """A query for the first position of a session that is not summarized yet."""
    return f"""
        SELECT COALESCE(MAX(logged.position) + 1, 0)
          FROM (SELECT last_logged_message_id FROM sessions
                 WHERE session_id = {session_id}
                 UNION ALL
                SELECT last_message_id FROM summaries WHERE session_id = {session_id}
                 UNION ALL
                SELECT last_message_id FROM set_aside_logs
                 WHERE session_id = {session_id}) AS last (number)
         CROSS JOIN LATERAL (
               SELECT position FROM messages
                WHERE message_id BETWEEN last.number AND last.number
                ORDER BY message_id LIMIT 1) AS logged
    """


class PostgresSummaryStore:
    """A ``SummaryStore`` for one tenant of a database."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant

    def close(self) -> None:
        """Nothing is open between calls."""

    # -- what is due ---

    def mark_due(
        self, session_id: int, cause: str, *, now: datetime, timeout_s: float = WAIT_S
    ) -> bool:
        with self.tenant.writing(wait_s=timeout_s) as db:
            row = db.execute(
                f"""
                SELECT MAX(message_id) FROM messages
                 WHERE session_id = %(session)s AND role IN {_SPOKEN}
                   AND position >= ({_next_position("%(session)s")})
                """,
                {"session": session_id},
            ).fetchone()
            if row is None or row[0] is None:
                return False
            db.execute(
                """
                INSERT INTO due_logs (session_id, last_message_id, cause, not_before)
                VALUES (%s, %s, %s, %s)
                    ON CONFLICT (tenant_id, session_id) DO UPDATE
                   SET last_message_id = GREATEST(due_logs.last_message_id,
                                                  excluded.last_message_id),
                       cause = excluded.cause,
                       not_before = LEAST(due_logs.not_before, excluded.not_before)
                """,
                (session_id, row[0], cause, _to_number(now)),
            )
            return True

    def list_due(self, *, now: datetime | None) -> list[Due]:
        with self.tenant.reading() as db:
            rows = db.execute(
                """
                SELECT session_id, last_message_id, cause, tries FROM due_logs
                 WHERE %(now)s::bigint IS NULL OR not_before <= %(now)s
                    OR not_before > %(now)s + %(wait)s
                 ORDER BY not_before, session_id
                """,
                {
                    "now": None if now is None else _to_number(now),
                    "wait": _IMPOSSIBLE_WAIT,
                },
            )
            return [Due(*row) for row in rows]

    def count_due(self) -> int:
        with self.tenant.reading() as db:
            row = db.execute("SELECT COUNT(*) FROM due_logs").fetchone()
            return 0 if row is None else int(row[0])

    def postpone(self, due: Due, *, until: datetime) -> None:
        with self.tenant.writing() as db:
            db.execute(
                """
                UPDATE due_logs SET tries = tries + 1, not_before = %s
                 WHERE session_id = %s
                """,
                (_to_number(until), due.session_id),
            )

    def delete_due(self, due: Due) -> None:
        with self.tenant.writing() as db:
            db.execute(
                "DELETE FROM due_logs WHERE session_id = %s AND last_message_id <= %s",
                (due.session_id, due.last_message_id),
            )

    def list_quiet(self, *, before: datetime, read_since: datetime | None) -> list[int]:
        with self.tenant.reading() as db:
            rows = db.execute(
                f"""
                SELECT session_id FROM sessions AS quiet
                 CROSS JOIN LATERAL (
                       SELECT 1 FROM messages
                        WHERE messages.session_id = quiet.session_id
                          AND role IN {_SPOKEN}
                          AND position >= ({_next_position("quiet.session_id")})
                        ORDER BY position LIMIT 1) AS spoken
                 WHERE kind = 'conversation' AND last_active_at <= %s
                   AND (read_from IS NULL OR last_active_at >= %s::bigint)
                   AND NOT EXISTS (SELECT 1 FROM due_logs
                                    WHERE due_logs.session_id = quiet.session_id)
                 ORDER BY last_active_at, session_id
                """,
                (
                    _to_number(before),
                    None if read_since is None else _to_number(read_since),
                ),
            )
            return [session_id for (session_id,) in rows]

    def next_position(self, session_id: int) -> int:
        with self.tenant.reading() as db:
            row = db.execute(
                _next_position("%(session)s"), {"session": session_id}
            ).fetchone()
            return 0 if row is None else int(row[0])

    # -- what a model made of it ---

    def add_summary(self, summary: Summary, *, of: SetAside | None = None) -> None:
        with self.tenant.writing() as db:
            if of is not None:
                _delete_set_aside(db, of)
            db.execute(
                """
                INSERT INTO summaries (summary_id, session_id, day, first_message_id,
                                       last_message_id, marker, highlights)
                VALUES (%s, %s, %s, %s, %s, %s, %s)
                """,
                (
                    take_numbers(db, "last_row_id", 1),
                    summary.session_id,
                    summary.day,
                    summary.first_message_id,
                    summary.last_message_id,
                    summary.marker,
                    summary.lists,
                ),
            )

    def list_summaries(self, session_id: int) -> list[Summary]:
        with self.tenant.reading() as db:
            rows = db.execute(
                """
                SELECT session_id, day, first_message_id, last_message_id, marker,
                       highlights
                  FROM summaries WHERE session_id = %s ORDER BY summary_id
                """,
                (session_id,),
            )
            return [Summary(*row) for row in rows]

    def list_waiting_sessions(self) -> list[int]:
        with self.tenant.reading() as db:
            rows = db.execute(
                "SELECT DISTINCT session_id FROM summaries ORDER BY session_id"
            )
            return [session_id for (session_id,) in rows]

    def finish(self, summaries: Sequence[Summary]) -> None:
        with self.tenant.writing() as db:
            for each in summaries:
                db.execute(
                    """
                    UPDATE sessions SET last_logged_message_id = %(last)s
                     WHERE session_id = %(session)s
                       AND (SELECT position FROM messages WHERE message_id = %(last)s)
                         > COALESCE((SELECT position FROM messages
                                      WHERE message_id = last_logged_message_id), -1)
                    """,
                    {"session": each.session_id, "last": each.last_message_id},
                )
            db.execute(
                "DELETE FROM summaries WHERE marker = ANY(%s::text[])",
                ([each.marker for each in summaries],),
            )

    # -- what it could not make anything of ---

    def set_aside(self, messages: SetAside) -> None:
        with self.tenant.writing() as db:
            db.execute(
                """
                INSERT INTO set_aside_logs (set_aside_id, session_id, first_message_id,
                                            last_message_id, reason)
                VALUES (%s, %s, %s, %s, %s)
                """,
                (
                    take_numbers(db, "last_row_id", 1),
                    messages.session_id,
                    messages.first_message_id,
                    messages.last_message_id,
                    messages.reason,
                ),
            )

    def list_set_aside(self) -> list[SetAside]:
        with self.tenant.reading() as db:
            rows = db.execute(
                """
                SELECT session_id, first_message_id, last_message_id, reason
                  FROM set_aside_logs ORDER BY set_aside_id
                """
            )
            return [SetAside(*row) for row in rows]

    def take_back(self, messages: SetAside) -> None:
        with self.tenant.writing() as db:
            _delete_set_aside(db, messages)

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
        day = now.astimezone().date()
        with self.tenant.writing() as db:
            row = db.execute(
                """
                SELECT COALESCE(SUM(input_tokens + output_tokens), 0)::bigint
                  FROM model_calls WHERE day = %s
                """,
                (day,),
            ).fetchone()
            used = 0 if row is None else row[0]
            if used + input_tokens + output_tokens > daily_tokens:
                return None
            call_id = take_numbers(db, "last_call_id", 1)
            db.execute(
                """
                INSERT INTO model_calls (call_id, called_at, day, purpose, model,
                                         input_tokens, output_tokens, outcome)
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
                """,
                (
                    call_id,
                    _to_number(now),
                    day,
                    purpose,
                    model,
                    input_tokens,
                    output_tokens,
                    _RUNNING,
                ),
            )
            return call_id

    def settle_call(
        self,
        call_id: int,
        *,
        input_tokens: int,
        output_tokens: int,
        took_ms: int,
        outcome: str,
    ) -> None:
        with self.tenant.writing() as db:
            db.execute(
                """
                UPDATE model_calls
                   SET input_tokens = %s, output_tokens = %s, took_ms = %s, outcome = %s
                 WHERE call_id = %s
                """,
                (input_tokens, output_tokens, took_ms, outcome, call_id),
            )

    def list_calls(self, day: date) -> list[ModelCall]:
        with self.tenant.reading() as db:
            rows = db.execute(
                """
                SELECT called_at, purpose, model, input_tokens, output_tokens, took_ms,
                       outcome
                  FROM model_calls WHERE day = %s ORDER BY call_id
                """,
                (day,),
            )
            return [
                ModelCall(from_microseconds(called_at).at, *rest)
                for called_at, *rest in rows
            ]

    # -- the rest ---

    def get_state(self, name: str) -> str | None:
        with self.tenant.reading() as db:
            row = db.execute(
                "SELECT value FROM journal_state WHERE name = %s", (name,)
            ).fetchone()
            return None if row is None else str(row[0])

    def set_state(self, name: str, value: str) -> None:
        with self.tenant.writing() as db:
            db.execute(
                """
                INSERT INTO journal_state (name, value) VALUES (%s, %s)
                    ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value
                """,
                (name, value),
            )


def _delete_set_aside(db: Connection, messages: SetAside) -> None:
    db.execute(
        """
        DELETE FROM set_aside_logs
         WHERE session_id = %s AND first_message_id = %s AND last_message_id = %s
        """,
        (messages.session_id, messages.first_message_id, messages.last_message_id),
    )


def _to_number(moment: datetime) -> int:
    return Moment(moment).to_microseconds()
