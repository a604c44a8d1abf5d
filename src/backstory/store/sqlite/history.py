"""history.db: sessions and messages, and how far each source has been read.

It is the only copy, because hosts delete their transcripts.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import apsw

from backstory.errors import StoreDamaged
from backstory.store.base.copies import check_complete
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
from backstory.store.sqlite import (
    around_damage,
    changes,
    messages,
    seen_notes,
    session_names,
    sessions,
    sources,
)
from backstory.store.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    empty_log,
    open_database,
    set_durability,
    transaction,
    translated,
)
from backstory.store.sqlite.opening import Connections
from backstory.store.sqlite.read_only import is_copying
from backstory.store.sqlite.readable_text import read_invalid_text
from backstory.system.fork_safety import reset_in_child
from backstory.values.forgetting import ASKED_FOR, Erasure, Forgetting
from backstory.values.history import Message, Problem, Role, Session
from backstory.values.notes import SeenNote
from backstory.values.proof import ProveMessages, prove_nothing

HISTORY_NAME = "history.db"
MIGRATIONS = "history_migrations"
_PAGE = 500
_BRIEF_WAIT_MS = 200


class SqliteHistory:
    """A ``HistoryStore`` in one SQLite file; threads take turns."""

    def __init__(
        self,
        path: Path,
        *,
        prove: ProveMessages = prove_nothing,
        on_damage: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """``prove`` is asked about messages in damaged pages.

        ``on_damage`` is called with what is wrong whenever such a page was read, or if
        the end of the log was lost.
        """
        self.path = path
        self._prove = prove
        self._on_damage = on_damage
        self._connections = Connections(path, lambda: open_history(path, on_damage))
        self.reset_after_fork()
        reset_in_child(self)
        self._connections.current()

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._lock = threading.RLock()

    @property
    def _db(self) -> apsw.Connection:
        return self._connections.current()

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Let threads take turns, translate SQLite's errors, and note damage.

        Raises ``StoreIncomplete`` for a copy that is not complete.
        """
        try:
            with translated(self.path), self._lock:
                # If the state is damaged, the rest can still be read.
                with suppress(apsw.CorruptError):
                    check_complete(is_copying(self._db), str(self.path))
                yield
        except StoreDamaged as exc:
            self._on_damage(str(exc.__cause__ or exc))
            raise

    def _find_proven(self, reasons: Mapping[int, str]) -> dict[int, Message]:
        """Those of the messages in damaged pages that are proven to be intact."""
        self._on_damage(next(iter(reasons.values())))
        # Imported here because damage is rare.
        from backstory.store.sqlite.doubtful_messages import find_proven

        return find_proven(self._db, reasons, self._prove)

    def _sound_after(self, damage: apsw.CorruptError) -> around_damage.ListSound:
        self._on_damage(str(damage))
        return around_damage.sound_messages(self._db, self._find_proven)

    def check_complete(self) -> None:
        with self._using():
            pass  # using it checks this

    # -- writing ---

    def write(
        self,
        batch: Batch,
        *,
        now: datetime,
        is_durable: bool = True,
        is_patient: bool = True,
    ) -> Written:
        # Imported here because searches write nothing.
        from backstory.store.sqlite.write_batch import write_batch

        with self._using():
            set_durability(self._db, is_durable=is_durable)
            self._db.set_busy_timeout(BUSY_TIMEOUT_MS if is_patient else _BRIEF_WAIT_MS)
            try:
                with transaction(self._db):
                    # Another process may have begun to copy while this waited.
                    check_complete(is_copying(self._db), str(self.path))
                    written = write_batch(self._db, batch, now=now)
            finally:
                self._db.set_busy_timeout(BUSY_TIMEOUT_MS)
            if batch.emptied or batch.hidden:
                empty_log(self._db)
            return written

    def make_durable(self) -> None:
        with self._using():
            # SQLite syncs the log to the disk before it copies any of it into the
            # database.
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def replace_loose_problems(
        self, problems: Sequence[Problem], *, now: datetime
    ) -> None:
        with self._using():
            if sources.list_loose_problems(self._db) == list(problems):
                return
            with transaction(self._db):
                sources.replace_loose_problems(self._db, problems, now=now)

    def add_loose_problems(self, problems: Sequence[Problem], *, now: datetime) -> None:
        with self._using():
            known = sources.list_loose_problems(self._db)
            new = [problem for problem in problems if problem not in known]
            if new:
                with transaction(self._db):
                    sources.replace_loose_problems(self._db, [*known, *new], now=now)

    def change_seen_notes(
        self, change: Callable[[Mapping[str, SeenNote]], Sequence[SeenNote]]
    ) -> None:
        with self._using():
            # Usually everything has been seen before, and nothing needs to be written.
            if not change(seen_notes.list_seen_notes(self._db)):
                return
            with transaction(self._db):
                changed = change(seen_notes.list_seen_notes(self._db))
                seen_notes.replace_seen_notes(self._db, changed)
            if any(note.text is None for note in changed):
                empty_log(self._db)

    def forget(
        self,
        parts: Sequence[ForgottenPart],
        *,
        now: datetime,
        facts: int = 0,
        reason: str = ASKED_FOR,
    ) -> Forgetting:
        # Imported here because its keys are slow to import, and searches need none.
        from backstory.store.sqlite import forgotten

        with self._using():
            set_durability(self._db, is_durable=True)
            with transaction(self._db):
                check_complete(is_copying(self._db), str(self.path))
                return forgotten.forget(
                    self._db, parts, now=now, facts=facts, reason=reason
                )

    def undo_forgetting(self, forgetting_id: int) -> Forgetting | None:
        # Slow to import, and searches need none of it.
        from backstory.store.sqlite import forgotten

        with self._using(), transaction(self._db):
            for forgetting in forgotten.list_forgettings(self._db):
                if forgetting.forgetting_id == forgetting_id:
                    forgotten.undo(self._db, forgetting)
                    return forgetting
            return None

    def delete_lost_sources(self, is_there: Callable[[str], bool]) -> None:
        with self._using():
            found = sources.list_without_session(self._db)
            lost = [path for path in found if not is_there(path)]
            if lost:
                with transaction(self._db):
                    sources.delete_sources(self._db, lost)
                empty_log(self._db)

    def erase_deleted(self) -> Erasure:
        with self._using():
            return Erasure.DONE if empty_log(self._db) else Erasure.BLOCKED

    def finish_erasing(self) -> bool:
        """Always True: the log is emptied by whoever closes the file last."""
        return True

    # -- reading ---

    def without_forgotten(self, batch: Batch) -> Batch:
        # Slow to import, and searches need none of it.
        from backstory.store.sqlite import forgotten

        with self._using():
            return forgotten.leave_out_forgotten(self._db, batch)

    def list_said_before(
        self, at: datetime, *, role: Role | None = None
    ) -> list[ForgottenPart]:
        # Slow to import, and searches need none of it.
        from backstory.store.sqlite import forgotten

        with self._using():
            return forgotten.list_said_before(self._db, at, role=role)

    def list_forgettings(self) -> list[Forgetting]:
        # Slow to import, and searches need none of it.
        from backstory.store.sqlite import forgotten

        with self._using():
            return forgotten.list_forgettings(self._db)

    def list_seen_notes(self) -> dict[str, SeenNote]:
        with self._using():
            return seen_notes.list_seen_notes(self._db)

    def list_sources(self) -> dict[SourceKey, SourceState]:
        with self._using():
            return sources.list_sources(self._db)

    def list_read_files(self) -> list[ReadFile]:
        with self._using():
            return sources.list_read_files(self._db)

    def list_sessions(self, where: SessionFilter) -> list[Session]:
        with self._using():
            return sessions.list_sessions(self._db, where)

    def find_sessions(self, name: str) -> list[Session]:
        with self._using():
            return session_names.find_sessions(self._db, name)

    def short_ids(self, session_ids: Collection[int]) -> dict[int, str]:
        with self._using():
            return session_names.short_ids(self._db, session_ids)

    def iter_messages(
        self, session_id: int, *, first: int = 0, last: int | None = None
    ) -> Iterator[Message]:
        # Page by page, so that a long session is not held in memory and does not block
        # other threads while the caller works on it.
        while True:
            with self._using():
                page = messages.list_messages(
                    self._db,
                    session_id,
                    first=first,
                    last=last,
                    limit=_PAGE,
                    find_proven=self._find_proven,
                )
            yield from page
            if len(page) < _PAGE:
                return
            first = page[-1].position + 1

    def find_message(self, session_id: int, name: str) -> Message | None:
        with self._using():
            try:
                return messages.find_message(self._db, session_id, name)
            except apsw.CorruptError as exc:
                self._on_damage(str(exc))
                return around_damage.find_message(
                    self._db, session_id, name, find_proven=self._find_proven
                )

    def get_messages(self, message_ids: Collection[int]) -> dict[int, Message]:
        with self._using():
            return messages.get_messages(
                self._db, message_ids, find_proven=self._find_proven
            )

    def get_ranges(
        self, ranges: Collection[tuple[int, int, int]]
    ) -> dict[tuple[int, int, int], list[Message]]:
        with self._using():
            return messages.get_ranges(self._db, ranges, find_proven=self._find_proven)

    def find_positions(
        self, session_id: int, first_id: int, last_id: int
    ) -> tuple[int, int] | None:
        with self._using():
            return messages.find_positions(self._db, session_id, first_id, last_id)

    def find_neighbours(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[Message | None, Message | None]]:
        with self._using():
            try:
                return messages.find_neighbours(self._db, places)
            except apsw.CorruptError as exc:
                return around_damage.find_neighbours(self._sound_after(exc), places)

    def find_replies(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], Message]:
        with self._using():
            try:
                return messages.find_replies(self._db, places)
            except apsw.CorruptError as exc:
                return around_damage.find_replies(self._sound_after(exc), places)

    def find_tool_names(
        self, calls: Collection[tuple[int, str]]
    ) -> dict[tuple[int, str], str]:
        with self._using():
            try:
                return messages.find_tool_names(self._db, calls)
            except apsw.CorruptError as exc:
                return around_damage.find_tool_names(self._sound_after(exc), calls)

    def list_latest_turn(self, session_id: int) -> list[int]:
        with self._using():
            try:
                return messages.list_latest_turn(self._db, session_id)
            except apsw.CorruptError as exc:
                return around_damage.list_latest_turn(
                    self._sound_after(exc), session_id
                )

    def find_text(
        self,
        folded: str,
        *,
        limit: int,
        where: Callable[[Message], bool],
        until: float | None = None,
    ) -> list[Message]:
        with self._using():
            return messages.find_text(
                self._db, folded, limit=limit, where=where, until=until
            )

    def get_sessions(self, session_ids: Collection[int]) -> dict[int, Session]:
        with self._using():
            return sessions.get_sessions(self._db, session_ids)

    def get_titles(self, session_ids: Collection[int]) -> dict[int, str]:
        with self._using():
            return sessions.get_titles(self._db, session_ids)

    def count_messages(self) -> int:
        with self._using():
            return sessions.count_messages(self._db)

    def has_messages(self) -> bool:
        with self._using():
            return sessions.has_messages(self._db)

    @property
    def identity(self) -> str:
        with self._using():
            return changes.identity(self._db)

    def last_change_id(self) -> int:
        with self._using():
            return changes.last_change_id(self._db)

    def find_tag(self, change_id: int) -> int | None:
        with self._using():
            return changes.find_tag(self._db, change_id)

    def list_changes(self, after: int, limit: int) -> list[Change]:
        with self._using():
            return changes.list_changes(self._db, after, limit)

    def count_by_host(self) -> list[Counts]:
        with self._using():
            return sessions.count_by_host(self._db)

    def count_by_quarter_hour(self, session_ids: Collection[int]) -> dict[int, int]:
        with self._using():
            return messages.count_by_quarter_hour(self._db, session_ids)

    def has_session(self, host: str, native_id: str) -> bool:
        with self._using():
            return sessions.find_session_id(self._db, host, native_id) is not None

    def find_project(self, host: str, native_id: str) -> str | None:
        with self._using():
            return sessions.find_project(self._db, host, native_id)

    def list_projects(self) -> list[str]:
        with self._using():
            return sessions.list_projects(self._db)

    def list_problems(self) -> list[Problem]:
        with self._using():
            return sources.list_problems(self._db)

    def size_bytes(self) -> int:
        names = (self.path.name, f"{self.path.name}-wal")
        files = [self.path.with_name(name) for name in names]
        return sum(file.stat().st_size for file in files if file.exists())

    # -- verification ---

    def has_damage(self) -> bool:
        # Imported here because damage is rare.
        from backstory.store.sqlite.salvage import list_damaged_pages

        return any(not page.is_known for page in list_damaged_pages(self.path))

    def verify(self) -> list[str]:
        with self._using():
            return _verify(self._db)


def open_history(
    path: Path, on_damage: Callable[[str], None] = lambda reason: None
) -> apsw.Connection:
    """A connection that returns every row, even one whose text is not UTF-8."""

    def note_invalid(
        db: apsw.Connection, row: Mapping[str, object], column: str
    ) -> None:
        # Imported here because damage is rare.
        from backstory.store.sqlite.invalid_text import describe_invalid_text

        on_damage(describe_invalid_text(db, row, column))

    db = open_database(path, MIGRATIONS, on_damage=on_damage)
    read_invalid_text(db, note_invalid)
    with translated(path):
        # Checking a page takes longer than reading it, so many are cached.
        db.execute("PRAGMA cache_size = -8000")
    return db


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
        f"session {session_id}: {said} messages are counted, but it has {there}"
        for session_id, said, there in counts
    ]
    # Imported here because only a check needs it.
    from backstory.store.sqlite.invalid_text import list_invalid_texts

    return found + list_invalid_texts(db)
