"""The table ``index_state``: the sessions and files that have been indexed."""

from datetime import datetime

import apsw

from backstory.store.base.index import IndexedFile
from backstory.values.moments import Moment
from backstory.values.units import UnitKind

_FILE_KINDS = {
    "memory": UnitKind.MEMORY,
    "daily_log": UnitKind.DAILY_LOG,
    "file": UnitKind.GUIDANCE,
}
_FILE_TYPES = {kind: name for name, kind in _FILE_KINDS.items()}


def replace_session(
    db: apsw.Connection, session_id: int, change_id: int, now: datetime
) -> None:
    db.execute(
        """
        INSERT INTO index_state (source_type, source_id, signature, hash, indexed_at)
        VALUES ('conversation', ?1, ?2, ?2, ?3)
            ON CONFLICT (source_type, source_id) DO UPDATE
           SET signature = ?2, hash = ?2, indexed_at = ?3
        """,
        (str(session_id), f"change:{change_id}", Moment(now).to_microseconds()),
    )


def delete_session(db: apsw.Connection, session_id: int) -> None:
    db.execute(
        """
        DELETE FROM index_state
         WHERE source_type = 'conversation' AND source_id = ?
        """,
        (str(session_id),),
    )


def replace_file(db: apsw.Connection, file: IndexedFile, now: datetime) -> int:
    db.execute(
        """
        INSERT INTO index_state (source_type, source_id, project, signature, hash,
                                 modified_at, indexed_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (source_type, source_id) DO UPDATE
           SET project = ?3, signature = ?4, hash = ?5, modified_at = ?6,
               indexed_at = ?7
        """,
        (
            _FILE_TYPES[file.kind],
            file.path,
            file.project,
            file.signature,
            file.hash,
            file.modified_at,
            Moment(now).to_microseconds(),
        ),
    )
    file_id: int = db.execute(
        "SELECT state_id FROM index_state WHERE source_type = ? AND source_id = ?",
        (_FILE_TYPES[file.kind], file.path),
    ).get
    return file_id


def set_signature(db: apsw.Connection, file_id: int, signature: str) -> None:
    db.execute(
        "UPDATE index_state SET signature = ? WHERE state_id = ?", (signature, file_id)
    )


def delete_file(db: apsw.Connection, file_id: int) -> None:
    db.execute("DELETE FROM index_state WHERE state_id = ?", (file_id,))


def list_files(db: apsw.Connection) -> list[IndexedFile]:
    rows = db.execute(
        """
        SELECT state_id, source_type, source_id, project, signature, hash, modified_at
          FROM index_state WHERE source_type != 'conversation' ORDER BY state_id
        """
    )
    return [
        IndexedFile(
            state_id, _FILE_KINDS[kind], path, project, signature, key, modified
        )
        for state_id, kind, path, project, signature, key, modified in rows
    ]
