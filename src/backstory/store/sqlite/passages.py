"""The table ``passages``: which units are also embedded passage by passage."""

from collections.abc import Collection, Iterable

import apsw

from backstory.store.base.index import MadePassages, ToEmbed
from backstory.store.sqlite.index_state import get_state, set_state
from backstory.store.sqlite.rows import to_json
from backstory.values.units import UnitKind

# Set while passages are waiting. Passages of sessions without tools are never embedded,
# and looking through all of them in every search would be slow.
_WAITING = "passages_wait"


def insert_passages(db: apsw.Connection, rows: Collection[tuple[int, bytes]]) -> None:
    """Store units by number, with the hashes of their passages."""
    db.executemany("INSERT INTO passages (unit_id, passages_hash) VALUES (?, ?)", rows)


def list_hashes(db: apsw.Connection, unit_ids: Collection[int]) -> list[bytes]:
    """The hashes of the passages of these units."""
    rows = db.execute(
        """
        SELECT passages_hash FROM passages
         WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return [key for (key,) in rows]


def note_waiting(db: apsw.Connection, source_ids: Collection[int]) -> None:
    """Note that passages are waiting, if any in these sessions are."""
    if not source_ids or get_state(db, _WAITING):
        return
    # CROSS JOIN: the latest messages of these sessions come first.
    if db.execute(
        """
        SELECT 1 FROM json_each(?) AS sources
         CROSS JOIN units ON units.source_id = sources.value AND units.kind IN (?, ?)
         CROSS JOIN passages USING (unit_id)
         WHERE passages.embedding_id IS NULL
           AND EXISTS (SELECT 1 FROM units AS tools
                        WHERE tools.source_id = sources.value AND tools.kind = ?)
         LIMIT 1
        """,
        (to_json(source_ids), UnitKind.USER, UnitKind.ASSISTANT, UnitKind.OTHER),
    ).get:
        set_state(db, _WAITING, "yes")


def note_done(db: apsw.Connection) -> None:
    """Note that no passages are waiting, unless some are."""
    if get_state(db, _WAITING) and not _list_waiting(db, 1, ()):
        set_state(db, _WAITING, "")


def list_to_embed(
    db: apsw.Connection, limit: int, without: Collection[int]
) -> list[ToEmbed]:
    """Units in sessions with tools whose passages need vectors, the newest first."""
    if not get_state(db, _WAITING):
        return []
    return _list_waiting(db, limit, without)


def _list_waiting(
    db: apsw.Connection, limit: int, without: Collection[int]
) -> list[ToEmbed]:
    rows = db.execute(
        """
        SELECT unit_id, passages_hash
          FROM passages INDEXED BY passages_to_embed JOIN units USING (unit_id)
         WHERE passages.embedding_id IS NULL
           AND EXISTS (SELECT 1 FROM units AS tools
                        WHERE tools.source_id = units.source_id AND tools.kind = ?)
           AND unit_id NOT IN (SELECT value FROM json_each(?))
         ORDER BY passages.unit_id DESC LIMIT ?
        """,
        (UnitKind.OTHER, to_json(without), limit),
    )
    return [ToEmbed(*row) for row in rows]


def count_waiting(db: apsw.Connection) -> int:
    """How many units of sessions with tools still need vectors of their passages."""
    if not get_state(db, _WAITING):
        return 0
    count: int = db.execute(
        """
        SELECT COUNT(*)
          FROM passages INDEXED BY passages_to_embed JOIN units USING (unit_id)
         WHERE passages.embedding_id IS NULL
           AND EXISTS (SELECT 1 FROM units AS tools
                        WHERE tools.source_id = units.source_id AND tools.kind = ?)
        """,
        (UnitKind.OTHER,),
    ).get
    return count


def count_embedded(db: apsw.Connection) -> int:
    """How many units have vectors of their passages."""
    count: int = db.execute("SELECT COUNT(embedding_id) FROM passages").get
    return count


def set_embeddings(db: apsw.Connection, made: Iterable[MadePassages]) -> int:
    """Set the numbers of vectors; returns how many units still needed theirs."""
    count = 0
    for each in made:
        db.execute(
            """
            UPDATE passages SET embedding_id = ?
             WHERE unit_id = ? AND passages_hash = ? AND embedding_id IS NULL
            """,
            (each.embedding_id, each.unit_id, each.passages_hash),
        )
        count += db.changes()
    return count


def drop_embeddings(db: apsw.Connection) -> None:
    db.execute("UPDATE passages SET embedding_id = NULL WHERE embedding_id IS NOT NULL")
    if _list_waiting(db, 1, ()):
        set_state(db, _WAITING, "yes")
