"""history.db: the truth. Sessions and messages, and how far each source was read."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import apsw

from backstory.store.base.history import (
    Batch,
    Change,
    Counts,
    KeptMessage,
    SessionFilter,
    SourceKey,
    SourceState,
    Written,
)
from backstory.store.sqlite import changes, messages, session_names, sessions, sources
from backstory.store.sqlite.connection import (
    empty_log,
    open_database,
    set_durability,
    transaction,
    translated,
)
from backstory.store.sqlite.opening import Connections
from backstory.system.fork_safety import reset_in_child
from backstory.values.history import Message, Problem, Session

HISTORY_NAME = "history.db"
MIGRATIONS = "backstory.store.sqlite.history_migrations"
_PAGE = 500
# So many say enough about one batch.
_MAX_GIVEN_TWICE = 100


class SqliteHistory:
    """A ``HistoryStore`` in one SQLite file, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = Connections(path, lambda: open_database(path, MIGRATIONS))
        self.reset_after_fork()
        reset_in_child(self)
        self._connections.current()

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.RLock()

    @property
    def _db(self) -> apsw.Connection:
        return self._connections.current()

    def close(self) -> None:
        self._connections.close()

    # -- writing ---

    def write(self, batch: Batch, *, now: datetime, is_durable: bool = True) -> Written:
        with translated(self.path), self._lock:
            set_durability(self._db, is_durable=is_durable)
            with transaction(self._db):
                written = _write_batch(self._db, batch, now)
            if batch.emptied:
                empty_log(self._db)
            return written

    def replace_loose_problems(
        self, problems: Sequence[Problem], *, now: datetime
    ) -> None:
        with translated(self.path), self._lock:
            if sources.list_loose_problems(self._db) == list(problems):
                return
            with transaction(self._db):
                sources.replace_loose_problems(self._db, problems, now=now)

    # -- reading ---

    def list_sources(self) -> dict[SourceKey, SourceState]:
        with translated(self.path), self._lock:
            return sources.list_sources(self._db)

    def list_sessions(self, where: SessionFilter) -> list[Session]:
        with translated(self.path), self._lock:
            return sessions.list_sessions(self._db, where)

    def find_sessions(self, name: str) -> list[Session]:
        with translated(self.path), self._lock:
            return session_names.find_sessions(self._db, name)

    def short_ids(self, session_ids: Collection[int]) -> dict[int, str]:
        with translated(self.path), self._lock:
            return session_names.short_ids(self._db, session_ids)

    def iter_messages(
        self, session_id: int, *, first: int = 0, last: int | None = None
    ) -> Iterator[Message]:
        # Page by page, so that a long session is neither held in memory nor keeps the
        # connection from other threads while the caller works on it.
        while True:
            with translated(self.path), self._lock:
                page = messages.list_messages(self._db, session_id, first, last, _PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            first = page[-1].position + 1

    def find_message(self, session_id: int, name: str) -> Message | None:
        with translated(self.path), self._lock:
            return messages.find_message(self._db, session_id, name)

    def get_messages(self, message_ids: Collection[int]) -> dict[int, Message]:
        with translated(self.path), self._lock:
            return messages.get_messages(self._db, message_ids)

    def find_positions(
        self, session_id: int, first_id: int, last_id: int
    ) -> tuple[int, int] | None:
        with translated(self.path), self._lock:
            return messages.find_positions(self._db, session_id, first_id, last_id)

    def find_beside(
        self, session_id: int, position: int
    ) -> tuple[Message | None, Message | None]:
        with translated(self.path), self._lock:
            return (
                messages.find_beside(self._db, session_id, position, is_after=False),
                messages.find_beside(self._db, session_id, position, is_after=True),
            )

    def find_tool_name(self, session_id: int, call_id: str) -> str | None:
        with translated(self.path), self._lock:
            return messages.find_tool_name(self._db, session_id, call_id)

    def find_neighbours(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[Message | None, Message | None]]:
        with translated(self.path), self._lock:
            return messages.find_neighbours(self._db, places)

    def find_replies(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], Message]:
        with translated(self.path), self._lock:
            return messages.find_replies(self._db, places)

    def find_tool_names(
        self, calls: Collection[tuple[int, str]]
    ) -> dict[tuple[int, str], str]:
        with translated(self.path), self._lock:
            return messages.find_tool_names(self._db, calls)

    def list_latest_turn(self, session_id: int) -> list[int]:
        with translated(self.path), self._lock:
            return messages.list_latest_turn(self._db, session_id)

    def find_text(
        self,
        folded: str,
        *,
        limit: int,
        where: Callable[[Message], bool],
        until: float | None = None,
    ) -> list[Message]:
        with translated(self.path), self._lock:
            return messages.find_text(self._db, folded, limit, where, until)

    def get_sessions(self, session_ids: Collection[int]) -> dict[int, Session]:
        with translated(self.path), self._lock:
            return sessions.get_sessions(self._db, session_ids)

    def count_messages(self) -> int:
        with translated(self.path), self._lock:
            return sessions.count_messages(self._db)

    @property
    def identity(self) -> str:
        with translated(self.path), self._lock:
            return changes.identity(self._db)

    def last_change_id(self) -> int:
        with translated(self.path), self._lock:
            return changes.last_change_id(self._db)

    def list_changes(self, after: int, limit: int) -> list[Change]:
        with translated(self.path), self._lock:
            return changes.list_changes(self._db, after, limit)

    def count_by_host(self) -> list[Counts]:
        with translated(self.path), self._lock:
            return sessions.count_by_host(self._db)

    def has_session(self, host: str, native_id: str) -> bool:
        with translated(self.path), self._lock:
            return sessions.find_session_id(self._db, host, native_id) is not None

    def find_project(self, host: str, native_id: str) -> str | None:
        with translated(self.path), self._lock:
            return sessions.find_project(self._db, host, native_id)

    def list_projects(self) -> list[str]:
        with translated(self.path), self._lock:
            return sessions.list_projects(self._db)

    def list_problems(self) -> list[Problem]:
        with translated(self.path), self._lock:
            return sources.list_problems(self._db)

    def size_bytes(self) -> int:
        names = (self.path.name, f"{self.path.name}-wal")
        files = [self.path.with_name(name) for name in names]
        return sum(file.stat().st_size for file in files if file.exists())

    # -- verification ---

    def verify(self) -> list[str]:
        with translated(self.path), self._lock:
            return _verify(self._db)


def _write_batch(db: apsw.Connection, batch: Batch, now: datetime) -> Written:
    session_ids: dict[str, int] = {}
    created: set[str] = set()

    def session_id_of(native_id: str) -> int:
        if native_id not in session_ids:
            found = sessions.find_session_id(db, batch.host, native_id)
            if found is None:
                created.add(native_id)
                found = sessions.insert_session(
                    db, batch.host, native_id, batch.read_from
                )
            session_ids[native_id] = found
        return session_ids[native_id]

    def is_known(native_id: str) -> bool:
        return sessions.find_session_id(db, batch.host, native_id) is not None

    if batch.moved_from is not None:
        sources.delete_source(db, batch.moved_from)
        sources.delete_problems(db, batch.moved_from)
    if batch.progress is not None and batch.after_line is not None:
        sources.delete_problems(db, batch.progress.key, batch.after_line)

    progress = batch.progress
    for facts in batch.facts:
        if batch.is_companion and not is_known(facts.native_id):
            progress = progress and replace(progress, signature="")
            continue
        session_id = session_id_of(facts.native_id)
        before = sessions.find_filing_facts(db, session_id)
        sessions.update_facts(db, session_id, facts)
        after = sessions.find_filing_facts(db, session_id)
        if after.of_messages != before.of_messages:
            changes.insert_whole_session(db, session_id)
        if after != before:
            changes.insert_session_change(db, session_id)

    for native_id in batch.emptied:
        sessions.empty_session(db, session_id_of(native_id))
        changes.insert_emptying(db, session_id_of(native_id))

    by_session: dict[str, list[KeptMessage]] = {}
    for kept in batch.messages:
        by_session.setdefault(kept.message.session_id, []).append(kept)
    new_messages = changed_messages = 0
    problems: list[Problem] = []
    last_message_id: int | None = None
    for native_id, kept_messages in by_session.items():
        session_id = session_id_of(native_id)
        before = sessions.find_filing_facts(db, session_id)
        done = messages.write_messages(
            db,
            session_id,
            kept_messages,
            is_new_session=native_id in created,
            replaces=batch.replaces,
            reread=batch.reread,
        )
        sessions.widen_activity(
            db, session_id, [k.message.sent for k in kept_messages if k.message.sent]
        )
        if sessions.find_filing_facts(db, session_id) != before:
            # What was said at no known time counts as said when the session began.
            changes.insert_whole_session(db, session_id, is_timeless_only=True)
        if done.written:
            sessions.refresh_excerpts(db, session_id, done.inserted, batch.read_from)
            changes.insert_changes(db, session_id, done.written)
        new_messages += done.inserted
        changed_messages += done.updated
        problems.extend(
            Problem(
                f"the id {kept.message.native_id!r} is given twice, with different "
                "contents; both are kept",
                kept.line,
                batch.read_from or "",
            )
            for kept in done.given_twice[:_MAX_GIVEN_TWICE]
        )
        last_message_id = done.last_message_id or last_message_id

    if progress is not None:
        sources.insert_problems(
            db,
            [*batch.problems, *problems],
            batch.host,
            unit=progress.key.part,
            now=now,
        )
        sources.replace_source(db, progress, now=now)
    return Written(
        made_sessions=tuple(sorted(created)),
        new_messages=new_messages,
        changed_messages=changed_messages,
        problems=tuple(problems),
        last_message_id=last_message_id,
        is_waiting=progress is not batch.progress,
    )


def _verify(db: apsw.Connection) -> list[str]:
    found = [
        f"integrity check: {row[0]}"
        for row in db.execute("PRAGMA integrity_check")
        if row[0] != "ok"
    ]
    found += [
        f"table {table}, row {rowid}: refers to a missing row of {parent}"
        for table, rowid, parent, _ in db.execute("PRAGMA foreign_key_check")
    ]
    counts = db.execute(
        """
        SELECT sessions.session_id, message_count, COUNT(message_id)
          FROM sessions LEFT JOIN messages USING (session_id)
         GROUP BY sessions.session_id
        HAVING message_count != COUNT(message_id)
        """
    )
    found += [
        f"session {session_id}: {said} messages are counted, {there} are there"
        for session_id, said, there in counts
    ]
    return found
