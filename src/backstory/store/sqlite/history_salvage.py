"""Replace a damaged history with a sound one, and keep the damaged one."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apsw

from backstory.store.sqlite import forgotten
from backstory.store.sqlite.connection import (
    close_database,
    from_os_error,
    open_database,
    transaction,
    translated,
)
from backstory.store.sqlite.database_file import copy_to
from backstory.store.sqlite.doubtful_messages import find_number, parse_row
from backstory.store.sqlite.history import MIGRATIONS, open_history
from backstory.store.sqlite.invalid_text import mend_invalid_texts
from backstory.store.sqlite.page_checksums import VERIFIED
from backstory.store.sqlite.raw_tables import RawRow
from backstory.store.sqlite.salvage import remove_database, salvage_database
from backstory.values.history import Message
from backstory.values.proof import Proof, ProveMessages
from backstory.values.reports import SalvagedFile, SalvagedHistory
from backstory.values.structs import Struct

_NEW_NAME = "salvaged-history.db"
# What the new history does not take from the old one. Without the state of the sources,
# they are read again, and give back the messages that they still have.
_NOT_TAKEN = frozenset({"identity", "changes", "sources", "problems"})

_FORGOTTEN = {
    "forgettings": forgotten.is_forgetting,
    "forgotten": forgotten.is_key,
}


def salvage_history(path: Path, *, prove: ProveMessages) -> SalvagedHistory:
    """Repair a history, or make a new one from everything that can be read in it.

    Messages in damaged pages are taken unless ``prove`` refutes them; those that it
    cannot fully prove are counted.
    """
    new = path.with_name(_NEW_NAME)
    doubtful = _DoubtfulRows(prove)
    try:
        with translated(path):
            salvaged = salvage_database(
                path,
                MIGRATIONS,
                new,
                without=_NOT_TAKEN,
                choose_doubtful=doubtful.choose,
            )
            lost = {} if salvaged.is_complete else _complete(new)
            mended = _mend_texts(new)
        kept_as = _put_in_place(path, new)
    except OSError as exc:
        raise from_os_error(path, exc) from exc
    finally:
        remove_database(new)
    return SalvagedHistory(
        kept_as,
        salvaged.damaged,
        salvaged.is_complete,
        lost_messages=lost,
        may_lack_forgotten=_may_lack_forgotten(salvaged),
        unproven_messages=doubtful.unproven,
        mended_texts=tuple(mended),
    )


def _may_lack_forgotten(salvaged: SalvagedFile) -> bool:
    """Whether keys of forgotten ids are lost, as far as the damaged pages show."""
    return not salvaged.is_complete and any(
        page.table in _FORGOTTEN for page in salvaged.damaged
    )


class _DoubtfulRows(Struct):
    """Chooses rows from damaged pages, and counts what cannot be proven."""

    prove: ProveMessages
    unproven: int = 0

    def choose(
        self, path: Path, rows: Mapping[str, list[RawRow]]
    ) -> dict[str, list[RawRow]]:
        found = [
            (row, message)
            for row in rows.get("messages", ())
            if (message := parse_row((row.rowid, *row.values[1:]))) is not None
        ]
        proofs = self.prove([message for _, message in found])
        with _opened(path) as db:
            chosen = [
                (row, proof)
                for (row, message), proof in zip(found, proofs, strict=True)
                if proof is not Proof.REFUTED and not _has_other_id(db, message)
            ]
        self.unproven = sum(proof is not Proof.PROVEN for _, proof in chosen)
        return {
            "messages": [row for row, _ in chosen],
            # A wrong key matches nothing and does no harm, but without a right one,
            # something that a person had forgotten would be read again.
            **{
                table: [row for row in rows.get(table, ()) if is_row(row.values)]
                for table, is_row in _FORGOTTEN.items()
            },
        }


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection | None]:
    """The damaged database, with its checksums; None if it cannot be opened."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=VERIFIED)
    except apsw.Error:
        yield None
        return
    try:
        yield db
    finally:
        close_database(db)


def _has_other_id(db: apsw.Connection | None, message: Message) -> bool:
    """Whether a sound index knows the message under another id."""
    if db is None:
        return False
    try:
        return find_number(db, message) != message.message_id
    except apsw.Error:
        return False


def _complete(path: Path) -> dict[str, int]:
    """Make rows agree with each other; returns how many messages each session lost."""
    db = open_database(path, MIGRATIONS)
    try:
        with transaction(db):
            db.execute(
                """
                INSERT INTO sessions (session_id, host, native_id)
                SELECT DISTINCT session_id, 'salvaged', 'session-' || session_id
                  FROM messages
                 WHERE session_id NOT IN (SELECT session_id FROM sessions)
                """
            )
            lost = _count_lost(db)
            _make_consistent(db)
            forgotten.complete_salvaged(db)
        return lost
    finally:
        close_database(db)


def _mend_texts(path: Path) -> list[str]:
    """Replace texts that are not UTF-8 with what is shown of them; returns which."""
    db = open_history(path)
    try:
        with transaction(db):
            return mend_invalid_texts(db)
    finally:
        close_database(db)


def _count_lost(db: apsw.Connection) -> dict[str, int]:
    rows = db.execute(
        """
        SELECT host || '/' || sessions.native_id, message_count - COUNT(message_id)
          FROM sessions LEFT JOIN messages USING (session_id)
         GROUP BY sessions.session_id HAVING message_count > COUNT(message_id)
        """
    )
    return {str(name): int(count) for name, count in rows}


def _make_consistent(db: apsw.Connection) -> None:
    for statement in (
        """
        UPDATE sessions
           SET message_count = (SELECT COUNT(*) FROM messages
                                 WHERE messages.session_id = sessions.session_id)
        """,
        """
        UPDATE sessions SET last_logged_message_id = NULL
         WHERE last_logged_message_id NOT IN (SELECT message_id FROM messages)
        """,
        """
        DELETE FROM due_logs
         WHERE session_id NOT IN (SELECT session_id FROM sessions)
        """,
        """
        DELETE FROM summaries
         WHERE session_id NOT IN (SELECT session_id FROM sessions)
        """,
        """
        INSERT INTO changes (session_id, first_message_id, last_message_id, tag)
        SELECT session_id, MIN(message_id), MAX(message_id), random()
          FROM messages GROUP BY session_id
        """,
    ):
        db.execute(statement)


def _put_in_place(path: Path, new: Path) -> Path:
    """Swap the files; returns where the damaged one is now."""
    kept_as = _free_name(path)
    try:
        copy_to(path, kept_as)
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            copy_to(log, kept_as.with_name(f"{kept_as.name}-wal"))
    except OSError:
        # Half a copy is useless, and takes up space that is needed.
        remove_database(kept_as)
        raise
    for ending in ("-wal", "-shm"):
        # SQLite would take these for files of the new database.
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    new.replace(path)
    return kept_as


def _free_name(path: Path) -> Path:
    number = 1
    while (kept_as := path.with_name(_damaged_name(path, number))).exists():
        number += 1
    return kept_as


def _damaged_name(path: Path, number: int | str) -> str:
    return f"{path.stem}-damaged-{number}.db"


def list_damaged_copies(path: Path) -> list[Path]:
    """The damaged files that were kept when a history was repaired."""
    return sorted(path.parent.glob(_damaged_name(path, "*")))
