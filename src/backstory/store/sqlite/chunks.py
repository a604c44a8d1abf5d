"""The table ``chunks``: the parts of sessions and files that are shown around hits."""

from collections.abc import Collection, Sequence

import apsw

from backstory.store.base.containers import from_number, to_number
from backstory.store.base.index import Chunk
from backstory.store.sqlite.rows import to_json
from backstory.values.units import Container, NewChunk, SessionRef


def list_chunks(db: apsw.Connection, container: Container) -> list[tuple[int, int]]:
    rows = db.execute(
        """
        SELECT first_position, last_position FROM chunks
         WHERE source_id = ? ORDER BY first_position
        """,
        (to_number(container),),
    )
    return [(first, last) for first, last in rows]


def delete_chunks(
    db: apsw.Connection,
    container: Container,
    *,
    first: int = 0,
    before: int | None = None,
) -> None:
    """Delete chunks that begin at or after ``first`` and before ``before``."""
    db.execute(
        """
        DELETE FROM chunks
         WHERE source_id = ?1 AND first_position >= ?2
           AND (?3 IS NULL OR first_position < ?3)
        """,
        (to_number(container), first, before),
    )


def insert_chunks(
    db: apsw.Connection, container: Container, chunks: Sequence[NewChunk]
) -> None:
    source_type = "conversation" if isinstance(container, SessionRef) else "file"
    source_id = to_number(container)
    db.executemany(
        """
        INSERT INTO chunks (source_type, source_id, first_position, last_position,
                            token_count, text)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        [
            (
                source_type,
                source_id,
                chunk.first_position,
                chunk.last_position,
                chunk.token_count,
                chunk.text,
            )
            for chunk in chunks
        ],
    )


def find_chunks(
    db: apsw.Connection, places: Collection[tuple[Container, int]]
) -> dict[tuple[Container, int], Chunk]:
    rows = db.execute(
        """
        WITH places AS (
            SELECT value ->> 0 AS of_source, value ->> 1 AS at_position
              FROM json_each(?)),
        found AS (
            SELECT of_source, at_position,
                   (SELECT chunk_id FROM chunks
                     WHERE source_id = of_source AND first_position <= at_position
                     ORDER BY first_position DESC LIMIT 1) AS found_id
              FROM places)
        SELECT of_source, at_position, chunk_id, first_position, last_position,
               token_count, text
          FROM found JOIN chunks ON chunk_id = found_id
        """,
        (to_json((to_number(container), at) for container, at in places),),
    )
    return {
        (from_number(number), at): Chunk(chunk_id, from_number(number), *rest)
        for number, at, chunk_id, *rest in rows
    }
