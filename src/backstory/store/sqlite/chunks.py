"""The table ``chunks``: the stretches of a source that are shown around a hit."""

from collections.abc import Collection, Sequence

import apsw

from backstory.store.base.index import Chunk
from backstory.store.sqlite.rows import to_json
from backstory.values.units import NewChunk


def list_chunks(db: apsw.Connection, source_id: int) -> list[tuple[int, int]]:
    rows = db.execute(
        """
        SELECT first_position, last_position FROM chunks
         WHERE source_id = ? ORDER BY first_position
        """,
        (source_id,),
    )
    return [(first, last) for first, last in rows]


def delete_chunks(
    db: apsw.Connection, source_id: int, *, first: int = 0, before: int | None = None
) -> None:
    """Delete chunks that begin at or after ``first`` and before ``before``."""
    db.execute(
        """
        DELETE FROM chunks
         WHERE source_id = ?1 AND first_position >= ?2
           AND (?3 IS NULL OR first_position < ?3)
        """,
        (source_id, first, before),
    )


def insert_chunks(
    db: apsw.Connection, source_type: str, source_id: int, chunks: Sequence[NewChunk]
) -> None:
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
    db: apsw.Connection, places: Collection[tuple[int, int]]
) -> dict[tuple[int, int], Chunk]:
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
        SELECT of_source, at_position, chunk_id, source_id, first_position,
               last_position, token_count, text
          FROM found JOIN chunks ON chunk_id = found_id
        """,
        (to_json(places),),
    )
    return {(source_id, at): Chunk(*chunk) for source_id, at, *chunk in rows}
