"""The table ``index_chunks``: the parts of sessions and files shown around hits."""

from collections.abc import Collection, Sequence

from backstory.store.base.containers import from_number, to_number
from backstory.store.base.index import Chunk
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.rows import to_columns
from backstory.values.units import Container, NewChunk

# source_id, chunk_id, first_position, last_position, token_count, text.
ChunkRow = tuple[int, int, int, int, int, str | None]


def list_chunks(
    db: Connection, index_id: int, container: Container
) -> list[tuple[int, int]]:
    rows = db.execute(
        """
        SELECT first_position, last_position FROM index_chunks
         WHERE index_id = %s AND source_id = %s ORDER BY first_position
        """,
        (index_id, to_number(container)),
    )
    return [(first, last) for first, last in rows]


def delete_chunks(
    db: Connection,
    index_id: int,
    container: Container,
    *,
    first: int = 0,
    before: int | None = None,
) -> None:
    """Delete chunks that begin at or after ``first`` and before ``before``."""
    db.execute(
        """
        DELETE FROM index_chunks
         WHERE index_id = %s AND source_id = %s AND first_position >= %s
           AND (%s::bigint IS NULL OR first_position < %s::bigint)
        """,
        (index_id, to_number(container), first, before, before),
    )


def to_rows(
    container: Container, chunks: Sequence[NewChunk], *, first_id: int
) -> list[ChunkRow]:
    return [
        (
            to_number(container),
            chunk_id,
            chunk.first_position,
            chunk.last_position,
            chunk.token_count,
            chunk.text,
        )
        for chunk_id, chunk in enumerate(chunks, start=first_id)
    ]


def insert_chunks(db: Connection, index_id: int, rows: Sequence[ChunkRow]) -> None:
    if rows:
        db.execute(
            """
            INSERT INTO index_chunks (index_id, source_id, chunk_id, first_position,
                                      last_position, token_count, text)
            SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[],
                                     %s::bigint[], %s::bigint[], %s::text[])
            """,
            (index_id, *to_columns(rows, 6)),
        )


def find_chunks(
    db: Connection, index_id: int, places: Collection[tuple[Container, int]]
) -> dict[tuple[Container, int], Chunk]:
    numbers = [(to_number(container), at) for container, at in places]
    rows = db.execute(
        """
        SELECT of_source, at_position, chunk_id, first_position, last_position,
               token_count, text
          FROM unnest(%s::bigint[], %s::bigint[]) AS places (of_source, at_position)
         CROSS JOIN LATERAL (
               SELECT chunk_id, first_position, last_position, token_count, text
                 FROM index_chunks
                WHERE index_id = %s AND source_id = of_source
                  AND first_position <= at_position
                ORDER BY first_position DESC LIMIT 1) AS found
        """,
        (*to_columns(numbers, 2), index_id),
    )
    return {
        (from_number(row[0]), row[1]): Chunk(row[2], from_number(row[0]), *row[3:])
        for row in rows
    }
