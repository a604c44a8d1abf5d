"""Check everything that must hold in the tables of a search index."""

from backstory.store.postgres import last_words, text_grams, word_rows
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.index_connection import TABLES, IndexCounters
from backstory.values.units import UnitKind


def read_tables(db: Connection, index_id: int) -> None:
    """Read a row of every table, which fails if one is damaged or missing."""
    for table in TABLES:
        db.execute(
            f"SELECT 1 FROM {table} WHERE index_id = %s LIMIT 1".encode(), (index_id,)
        )


def verify_index(db: Connection, counters: IndexCounters) -> list[str]:
    """One sentence for each thing that does not hold."""
    return [
        *_verify_counts(db, counters),
        *_verify_words(db, counters),
        *_verify_grams(db, counters.index_id),
        *_verify_vectors(db, counters.index_id),
    ]


def _verify_counts(db: Connection, counters: IndexCounters) -> list[str]:
    row = db.execute(
        """
        SELECT COUNT(*), COALESCE(SUM(word_count), 0)::bigint,
               COUNT(*) FILTER (WHERE kind <> ALL(%s::smallint[])),
               (SELECT COUNT(*) FROM vector_codes WHERE index_id = %s),
               (SELECT COUNT(DISTINCT unit_id) FROM last_words WHERE index_id = %s)
          FROM units WHERE index_id = %s
        """,
        (list(map(int, UnitKind)), *[counters.index_id] * 3),
    ).fetchone()
    assert row is not None
    unit_count, word_count, unknown_kinds, vector_count, tail_count = row
    found = []
    if unknown_kinds:
        found.append(f"{unknown_kinds} units have an unknown kind")
    for name, counted, there in (
        ("units", counters.unit_count, unit_count),
        ("words", counters.word_count, word_count),
        ("vectors", counters.vector_count, vector_count),
        ("units with words of their own rows", counters.tail_count, tail_count),
    ):
        if counted != there:
            found.append(f"{counted} {name} are counted, but there are {there}")
    return found


def _verify_words(db: Connection, counters: IndexCounters) -> list[str]:
    stored: dict[int, int] = dict(
        db.execute(
            "SELECT unit_id, word_count FROM units WHERE index_id = %s",
            (counters.index_id,),
        ).fetchall()
    )
    in_tail = last_words.sum_word_counts(db, counters.index_id)
    packed = word_rows.sum_word_counts(db, counters.index_id)
    found = []
    if twice := in_tail.keys() & packed.keys():
        found.append(f"the words of {len(twice)} units are stored twice")
    there = packed | in_tail
    if without_unit := there.keys() - stored.keys():
        found.append(f"there are words of {len(without_unit)} units that do not exist")
    wrong = [each for each, count in stored.items() if there.get(each, 0) != count]
    if wrong:
        found.append(f"{len(wrong)} units have not the words that they should have")
    return found


def _verify_grams(db: Connection, index_id: int) -> list[str]:
    wrong = text_grams.list_wrong(db, index_id)
    return [f"the grams of {len(wrong)} segments are not those of their texts"] * (
        len(wrong) > 0
    )


def _verify_vectors(db: Connection, index_id: int) -> list[str]:
    row = db.execute(
        """
        SELECT COUNT(*) FILTER (WHERE (units.meaning_hash IS NOT NULL)
                                      IS DISTINCT FROM (waiting.unit_id IS NOT NULL
                                                        OR codes.unit_id IS NOT NULL)),
               COUNT(*) FILTER (WHERE waiting.meaning_hash <> units.meaning_hash
                                   OR (waiting.unit_id IS NOT NULL
                                       AND codes.unit_id IS NOT NULL)),
               COUNT(*) FILTER (WHERE (codes.unit_id IS NULL)
                                      <> (vectors.unit_id IS NULL)
                                   OR (codes.kind, codes.source_id)
                                      <> (units.kind, units.source_id)
                                   OR codes.unit_id IS NOT NULL
                                      AND codes.said_at IS DISTINCT FROM units.said_at)
          FROM (SELECT * FROM units WHERE index_id = %(index)s) AS units
          FULL JOIN (SELECT * FROM units_to_embed WHERE index_id = %(index)s) AS waiting
         USING (unit_id)
          FULL JOIN (SELECT * FROM vector_codes WHERE index_id = %(index)s) AS codes
         USING (unit_id)
          FULL JOIN (SELECT unit_id FROM unit_vectors WHERE index_id = %(index)s)
               AS vectors USING (unit_id)
        """,
        {"index": index_id},
    ).fetchone()
    assert row is not None
    lost, doubtful, different = row
    found = []
    if lost:
        found.append(f"{lost} units neither have a vector nor wait for one")
    if doubtful:
        found.append(f"{doubtful} units wait for a vector that they do not need")
    if different:
        found.append(f"{different} vectors are not those of their units")
    return found
