"""The tables ``indexed_sessions`` and ``indexed_files``: what has been indexed."""

from collections.abc import Mapping
from datetime import datetime

from backstory.store.base.index import IndexedFile
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.rows import key_of, to_columns
from backstory.values.moments import Moment
from backstory.values.units import UnitKind


def replace_sessions(
    db: Connection, index_id: int, sessions: Mapping[int, tuple[int, datetime]]
) -> None:
    """Record up to which change each session was indexed, and when."""
    rows = [
        (session_id, change_id, Moment(now).to_microseconds())
        for session_id, (change_id, now) in sessions.items()
    ]
    if rows:
        db.execute(
            """
            INSERT INTO indexed_sessions (index_id, session_id, change_id, indexed_at)
            SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])
                ON CONFLICT (tenant_id, index_id, session_id) DO UPDATE
               SET change_id = excluded.change_id, indexed_at = excluded.indexed_at
            """,
            (index_id, *to_columns(rows, 3)),
        )


def delete_session(db: Connection, index_id: int, session_id: int) -> None:
    db.execute(
        "DELETE FROM indexed_sessions WHERE index_id = %s AND session_id = %s",
        (index_id, session_id),
    )


def replace_file(
    db: Connection, index_id: int, file: IndexedFile, now: datetime, *, new_id: int
) -> int:
    """Store a file; returns its number, which is ``new_id`` if it is new."""
    row = db.execute(
        """
        INSERT INTO indexed_files (index_id, file_id, file_key, kind, path, project,
                                   signature, hash, modified_at, indexed_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT (tenant_id, index_id, file_key) DO UPDATE
           SET project = excluded.project, signature = excluded.signature,
               hash = excluded.hash, modified_at = excluded.modified_at,
               indexed_at = excluded.indexed_at
        RETURNING file_id
        """,
        (
            index_id,
            new_id,
            key_of(str(int(file.kind)), file.path),
            int(file.kind),
            file.path,
            file.project,
            file.signature,
            file.hash,
            file.modified_at,
            Moment(now).to_microseconds(),
        ),
    ).fetchone()
    assert row is not None
    return int(row[0])


def set_signature(db: Connection, index_id: int, file_id: int, signature: str) -> None:
    db.execute(
        "UPDATE indexed_files SET signature = %s WHERE index_id = %s AND file_id = %s",
        (signature, index_id, file_id),
    )


def delete_file(db: Connection, index_id: int, file_id: int) -> None:
    db.execute(
        "DELETE FROM indexed_files WHERE index_id = %s AND file_id = %s",
        (index_id, file_id),
    )


def list_files(db: Connection, index_id: int) -> list[IndexedFile]:
    rows = db.execute(
        """
        SELECT file_id, kind, path, project, signature, hash, modified_at
          FROM indexed_files WHERE index_id = %s ORDER BY file_id
        """,
        (index_id,),
    )
    return [IndexedFile(row[0], UnitKind(row[1]), *row[2:]) for row in rows]
