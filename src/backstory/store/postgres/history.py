"""Sessions and messages of one tenant, and how far each source has been read.

It is the only copy: hosts delete their transcripts.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from backstory.errors import StoreDamaged
from backstory.store.base.history import (
    Batch,
    Change,
    Counts,
    ForgottenPart,
    ReadFile,
    SessionFilter,
    SourceKey,
    SourceState,
    Written,
)
from backstory.store.postgres import (
    changes,
    erase,
    forgotten,
    messages,
    seen_notes,
    session_names,
    sessions,
    sources,
)
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import WAIT_S, Tenant
from backstory.store.postgres.write_batch import write_batch
from backstory.values.forgetting import ASKED_FOR, Erasure, Forgetting
from backstory.values.history import Message, Problem, Role, Session
from backstory.values.notes import SeenNote

_PAGE = 500
_BRIEF_WAIT_S = 0.2


class PostgresHistory:
    """A ``HistoryStore`` for one tenant of a database.

    The connections belong to the database, which others may use at the same time; who
    opened it closes it.
    """

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant

    def close(self) -> None:
        """Nothing is open between calls."""

    def check_complete(self) -> None:
        """Every transaction of the tenant sees to it, whatever it reads."""

    # -- writing ---

    def write(
        self,
        batch: Batch,
        *,
        now: datetime,
        is_durable: bool = True,
        is_patient: bool = True,
    ) -> Written:
        wait_s = WAIT_S if is_patient else _BRIEF_WAIT_S
        with self.tenant.writing(wait_s=wait_s, is_durable=is_durable) as db:
            return write_batch(db, batch, now=now)

    def make_durable(self) -> None:
        # A commit that waits for the disk makes all earlier ones durable, too. One that
        # has written nothing does not wait.
        with self.tenant.writing() as db:
            db.execute("UPDATE counters SET last_row_id = last_row_id")

    def replace_loose_problems(
        self, problems: Sequence[Problem], *, now: datetime
    ) -> None:
        with self.tenant.reading() as db:
            if sources.list_loose_problems(db) == list(problems):
                return
        with self.tenant.writing() as db:
            sources.replace_loose_problems(db, problems, now=now)

    def add_loose_problems(self, problems: Sequence[Problem], *, now: datetime) -> None:
        with self.tenant.writing() as db:
            known = sources.list_loose_problems(db)
            new = [problem for problem in problems if problem not in known]
            if new:
                sources.replace_loose_problems(db, [*known, *new], now=now)

    def change_seen_notes(
        self, change: Callable[[Mapping[str, SeenNote]], Sequence[SeenNote]]
    ) -> None:
        # Most often everything has been seen before.
        if not change(self.list_seen_notes()):
            return
        with self.tenant.writing() as db:
            changed = change(seen_notes.list_seen_notes(db))
            seen_notes.replace_seen_notes(db, changed)

    def forget(
        self,
        parts: Sequence[ForgottenPart],
        *,
        now: datetime,
        facts: int = 0,
        reason: str = ASKED_FOR,
    ) -> Forgetting:
        with self.tenant.writing() as db:
            erase.note_deletion(db)
            return forgotten.forget(db, parts, now=now, facts=facts, reason=reason)

    def undo_forgetting(self, forgetting_id: int) -> Forgetting | None:
        with self.tenant.writing() as db:
            for forgetting in forgotten.list_forgettings(db):
                if forgetting.forgetting_id == forgetting_id:
                    forgotten.undo(db, forgetting)
                    return forgetting
            return None

    def delete_lost_sources(self, is_there: Callable[[str], bool]) -> None:
        with self.tenant.reading() as db:
            found = sources.list_without_session(db)
        lost = [path for path in found if not is_there(path)]
        if lost:
            with self.tenant.writing() as db:
                # One of them may have been read in the meantime.
                still = set(sources.list_without_session(db))
                sources.delete_sources(db, [path for path in lost if path in still])

    def erase_deleted(self) -> Erasure:
        with self.tenant.reading() as db:
            deleted_by = erase.find_deletion(db)
        with self.tenant.database.connection() as db:
            outcome = erase.erase_deleted(
                db, erase.HISTORY_TABLES, deleted_by=deleted_by
            )
        if deleted_by is not None and outcome is not Erasure.BLOCKED:
            with self.tenant.writing_apart() as db:
                erase.forget_deletion(db, deleted_by)
        return outcome

    def finish_erasing(self) -> bool:
        with self.tenant.reading() as db:
            deleted_by = erase.find_deletion(db)
        return deleted_by is None or self.erase_deleted() is not Erasure.BLOCKED

    # -- reading ---

    def without_forgotten(self, batch: Batch) -> Batch:
        with self.tenant.reading() as db:
            return forgotten.leave_out_forgotten(db, batch)

    def list_said_before(
        self, at: datetime, *, role: Role | None = None
    ) -> list[ForgottenPart]:
        with self.tenant.reading() as db:
            return forgotten.list_said_before(db, at, role=role)

    def list_forgettings(self) -> list[Forgetting]:
        with self.tenant.reading() as db:
            return forgotten.list_forgettings(db)

    def list_seen_notes(self) -> dict[str, SeenNote]:
        with self.tenant.reading() as db:
            return seen_notes.list_seen_notes(db)

    def list_sources(self) -> dict[SourceKey, SourceState]:
        with self.tenant.reading() as db:
            return sources.list_sources(db)

    def list_read_files(self) -> list[ReadFile]:
        with self.tenant.reading() as db:
            return sources.list_read_files(db)

    def list_sessions(self, where: SessionFilter) -> list[Session]:
        with self.tenant.reading() as db:
            return sessions.list_sessions(db, where)

    def find_sessions(self, name: str) -> list[Session]:
        with self.tenant.reading() as db:
            return session_names.find_sessions(db, name)

    def short_ids(self, session_ids: Collection[int]) -> dict[int, str]:
        with self.tenant.reading() as db:
            return session_names.short_ids(db, session_ids)

    def iter_messages(
        self, session_id: int, *, first: int = 0, last: int | None = None
    ) -> Iterator[Message]:
        # Page by page, so that no transaction is open while the caller works on one.
        while True:
            with self.tenant.reading() as db:
                page = messages.list_messages(
                    db, session_id, first=first, last=last, limit=_PAGE
                )
            yield from page
            if len(page) < _PAGE:
                return
            first = page[-1].position + 1

    def find_message(self, session_id: int, name: str) -> Message | None:
        with self.tenant.reading() as db:
            return messages.find_message(db, session_id, name)

    def get_messages(self, message_ids: Collection[int]) -> dict[int, Message]:
        with self.tenant.reading() as db:
            return messages.get_messages(db, message_ids)

    def get_ranges(
        self, ranges: Collection[tuple[int, int, int]]
    ) -> dict[tuple[int, int, int], list[Message]]:
        with self.tenant.reading() as db:
            return messages.get_ranges(db, ranges)

    def find_positions(
        self, session_id: int, first_id: int, last_id: int
    ) -> tuple[int, int] | None:
        with self.tenant.reading() as db:
            return messages.find_positions(db, session_id, first_id, last_id)

    def find_neighbours(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[Message | None, Message | None]]:
        with self.tenant.reading() as db:
            return messages.find_neighbours(db, places)

    def find_replies(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], Message]:
        with self.tenant.reading() as db:
            return messages.find_replies(db, places)

    def find_tool_names(
        self, calls: Collection[tuple[int, str]]
    ) -> dict[tuple[int, str], str]:
        with self.tenant.reading() as db:
            return messages.find_tool_names(db, calls)

    def list_latest_turn(self, session_id: int) -> list[int]:
        with self.tenant.reading() as db:
            return messages.list_latest_turn(db, session_id)

    def find_text(
        self,
        folded: str,
        *,
        limit: int,
        where: Callable[[Message], bool],
        until: float | None = None,
    ) -> list[Message]:
        with self.tenant.reading() as db:
            newest_first = messages.list_newest_first(db)

        def iter_pages() -> Iterator[list[Message]]:
            for start in range(0, len(newest_first), _PAGE):
                numbers = newest_first[start : start + _PAGE]
                found = self.get_messages(numbers)
                yield [found[number] for number in numbers if number in found]

        found = messages.iter_with_text(iter_pages(), folded, where=where, until=until)
        return list(islice(found, limit))

    def get_sessions(self, session_ids: Collection[int]) -> dict[int, Session]:
        with self.tenant.reading() as db:
            return sessions.get_sessions(db, session_ids)

    def get_titles(self, session_ids: Collection[int]) -> dict[int, str]:
        with self.tenant.reading() as db:
            return sessions.get_titles(db, session_ids)

    def count_messages(self) -> int:
        with self.tenant.reading() as db:
            return sessions.count_messages(db)

    def has_messages(self) -> bool:
        with self.tenant.reading() as db:
            return sessions.has_messages(db)

    @property
    def identity(self) -> str:
        with self.tenant.reading() as db:
            return changes.find_identity(db)

    def last_change_id(self) -> int:
        with self.tenant.reading() as db:
            return changes.last_change_id(db)

    def find_tag(self, change_id: int) -> int | None:
        with self.tenant.reading() as db:
            return changes.find_tag(db, change_id)

    def list_changes(self, after: int, limit: int) -> list[Change]:
        with self.tenant.reading() as db:
            return changes.list_changes(db, after, limit)

    def count_by_host(self) -> list[Counts]:
        with self.tenant.reading() as db:
            return sessions.count_by_host(db)

    def count_by_quarter_hour(self, session_ids: Collection[int]) -> dict[int, int]:
        with self.tenant.reading() as db:
            return messages.count_by_quarter_hour(db, session_ids)

    def has_session(self, host: str, native_id: str) -> bool:
        with self.tenant.reading() as db:
            return bool(sessions.find_stored(db, host, [native_id]))

    def find_project(self, host: str, native_id: str) -> str | None:
        with self.tenant.reading() as db:
            return sessions.find_project(db, host, native_id)

    def list_projects(self) -> list[str]:
        with self.tenant.reading() as db:
            return sessions.list_projects(db)

    def list_problems(self) -> list[Problem]:
        with self.tenant.reading() as db:
            return sources.list_problems(db)

    def size_bytes(self) -> int:
        with self.tenant.reading() as db:
            # The size of the tables would tell how much other tenants have.
            row = db.execute(
                """
                SELECT COALESCE(SUM(pg_column_size(messages.*)), 0)::bigint
                  FROM messages
                """
            ).fetchone()
            return 0 if row is None else int(row[0])

    # -- verification ---

    def has_damage(self) -> bool:
        try:
            with self.tenant.reading() as db:
                db.execute("SELECT SUM(length(text)) FROM messages").fetchone()
        except StoreDamaged:
            return True
        return False

    def verify(self) -> list[str]:
        with self.tenant.reading() as db:
            return _verify(db)


def _verify(db: Connection) -> list[str]:
    # The server itself sees to keys and references.
    counts = db.execute(
        """
        SELECT session_id, message_count, COUNT(message_id), MAX(position)
          FROM sessions LEFT JOIN messages USING (tenant_id, session_id)
         GROUP BY session_id, message_count
        HAVING message_count <> COUNT(message_id)
            OR COALESCE(MAX(position) + 1, 0) <> COUNT(message_id)
         ORDER BY session_id
        """
    )
    found = [
        f"session {session_id}: {said} messages are counted, but it has {there}, "
        f"and the last position is {last}"
        for session_id, said, there, last in counts
    ]
    logged = db.execute(
        """
        SELECT session_id FROM sessions
         WHERE last_logged_message_id IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM messages
                            WHERE message_id = last_logged_message_id)
         ORDER BY session_id
        """
    )
    return found + [
        f"session {session_id}: the last message that was logged is missing"
        for (session_id,) in logged
    ]
