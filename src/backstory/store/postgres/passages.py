"""The table ``unit_passages``: which units are also embedded passage by passage."""

from collections.abc import Collection, Sequence

from backstory.store.base.index import MadePassages, ToEmbed
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.rows import (
    changed_by_place,
    in_places,
    looked_up,
    to_columns,
    to_dict,
)
from backstory.values.units import UnitKind

# Those of chats, in which no tools are used, are never embedded. The order has the
# index by kind asked for each of them: see looked_up.
_WAITING = """
      FROM unit_passages AS waiting
     CROSS JOIN LATERAL (
           SELECT 1 FROM units
            WHERE units.index_id = %s AND units.kind >= 0
              AND units.source_id = waiting.source_id AND units.kind = %s
            ORDER BY units.position LIMIT 1) AS of_tools
     WHERE waiting.index_id = %s AND waiting.embedding_id IS NULL
"""


def insert_passages(
    db: Connection, index_id: int, rows: Sequence[tuple[int, int, bytes]]
) -> None:
    """Store units by number, with their containers and the hashes of their passages."""
    if rows:
        db.execute(
            """
            INSERT INTO unit_passages (index_id, unit_id, source_id, passages_hash)
            SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %b::bytea[])
            """,
            (index_id, *to_columns(rows, 3)),
        )


def list_to_embed(
    db: Connection, index_id: int, limit: int, without: Collection[int]
) -> list[ToEmbed]:
    """Units of sessions with tools whose passages need vectors, the latest first."""
    rows = db.execute(
        f"""
        SELECT unit_id, passages_hash {_WAITING}
           AND unit_id <> ALL(%s::bigint[])
         ORDER BY unit_id DESC LIMIT %s
        """.encode(),
        (index_id, UnitKind.OTHER, index_id, list(without), limit),
    )
    return [ToEmbed(*row) for row in rows]


def count_waiting(db: Connection, index_id: int) -> int:
    """How many units of sessions with tools still need vectors of their passages."""
    row = db.execute(
        f"SELECT COUNT(*) {_WAITING}".encode(), (index_id, UnitKind.OTHER, index_id)
    ).fetchone()
    assert row is not None
    return int(row[0])


def count_embedded(db: Connection, index_id: int) -> int:
    """How many units have vectors of their passages."""
    row = db.execute(
        "SELECT COUNT(embedding_id) FROM unit_passages WHERE index_id = %s", (index_id,)
    ).fetchone()
    assert row is not None
    return int(row[0])


def set_embeddings(
    db: Connection, index_id: int, made: Collection[MadePassages]
) -> int:
    """Set the numbers of vectors; returns how many units still needed theirs."""
    if not made:
        return 0
    rows = [(each.unit_id, each.passages_hash, each.embedding_id) for each in made]
    with changed_by_place(db):
        return db.execute(
            f"""
            UPDATE unit_passages SET embedding_id = made.embedding_id
              FROM unnest(%s::bigint[], %b::bytea[], %s::bigint[])
                   AS made (unit_id, passages_hash, embedding_id)
             WHERE unit_passages.unit_id = made.unit_id
               AND unit_passages.passages_hash = made.passages_hash
               AND unit_passages.embedding_id IS NULL AND {in_places("unit_passages")}
            """.encode(),
            (*to_columns(rows, 3), [each.unit_id for each in made], index_id),
        ).rowcount


def find_embedding_ids(
    db: Connection, index_id: int, unit_ids: Collection[int]
) -> dict[int, int]:
    columns = "unit_id, embedding_id"
    rows = db.execute(
        f"""
        SELECT {columns} FROM {looked_up("unit_passages", columns)}
         WHERE embedding_id IS NOT NULL
        """.encode(),
        (list({*unit_ids}), index_id),
    )
    return to_dict(rows)


def drop_embeddings(db: Connection, index_id: int) -> None:
    db.execute(
        """
        UPDATE unit_passages SET embedding_id = NULL
         WHERE index_id = %s AND embedding_id IS NOT NULL
        """,
        (index_id,),
    )
