"""The tables ``vector_codes`` and ``unit_vectors``: which units are near in meaning.

A few hundred that are worth comparing are chosen; these are compared exactly, with the
vectors of the cache. Of a small index PostgreSQL compares all vectors, in half
precision. Of a large one, first the signs of their numbers are compared: by PostgreSQL
for the first search of a process, and for all others here, where they are kept. There
is no approximate index (HNSW): one over all tenants finds too few of a small tenant's
units, and one for each large tenant would have to be made by the owner of the tables.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, LiteralString

import numpy as np
from psycopg import sql

from backstory.errors import StoreProblem
from backstory.store.base.codes import (
    BY_CODES,
    choose_likely,
    count_compared,
    fit,
)
from backstory.store.base.cosines import find_best_passages, find_cosines
from backstory.store.base.index import (
    BestPassage,
    EmbeddingCache,
    MadeVector,
    ToEmbed,
    UnitFilter,
)
from backstory.store.postgres import passages
from backstory.store.postgres.code_segments import CodeSegments
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.index_connection import IndexCounters, IndexTransactions
from backstory.store.postgres.index_states import DIMENSIONS, set_state
from backstory.store.postgres.rows import (
    changed_by_place,
    in_places,
    looked_up,
    to_columns,
    to_dict,
)
from backstory.store.postgres.unit_filter import to_condition

if TYPE_CHECKING:
    from backstory.store.base.index import Vector

# This many are compared exactly, or twice as many as are wanted.
_COMPARED = 300
# The signs of more vectors than this, some 250 MB, are not kept in memory.
_MAX_KEPT = 3_000_000

_EXACT: LiteralString = """
    SELECT units.unit_id, units.embedding_id
      FROM vector_codes AS units
      JOIN unit_vectors USING (tenant_id, index_id, unit_id)
     WHERE units.index_id = %s AND {condition}
     ORDER BY unit_vectors.vector OPERATOR({schema}.<#>) %s::{schema}.halfvec LIMIT %s
"""
_BY_CODE: LiteralString = """
    WITH likely AS MATERIALIZED (
         SELECT units.unit_id, units.embedding_id FROM vector_codes AS units
          WHERE units.index_id = %s AND {condition}
          ORDER BY {schema}.hamming_distance(units.code, %s::bit varying) LIMIT %s)
    SELECT likely.unit_id, likely.embedding_id
      FROM likely
     CROSS JOIN LATERAL (
           SELECT vector FROM unit_vectors
            WHERE index_id = %s AND unit_id BETWEEN likely.unit_id AND likely.unit_id
            ORDER BY unit_id LIMIT 1) AS unit_vectors
     ORDER BY unit_vectors.vector OPERATOR({schema}.<#>) %s::{schema}.halfvec LIMIT %s
"""


class PostgresVectors:
    """Finds the units whose vectors are nearest."""

    # Of an index with more vectors than this, signs are compared first.
    few: int = 10_000
    # Signs are kept here after this many searches: reading them takes longer than one.
    searches_before_keeping: int = 1

    def __init__(
        self, transactions: IndexTransactions, embeddings: EmbeddingCache
    ) -> None:
        self._transactions = transactions
        self._embeddings = embeddings
        self._schema: sql.Identifier | None = None
        self._segments = CodeSegments()
        self._searches = 0

    def name_vectors(self, fingerprint: str) -> str:
        """A name for a model's vectors from this cache, whose numbers they have."""
        return f"{fingerprint} {self._embeddings.identity}"

    @staticmethod
    def parse_name(name: str) -> str:
        """The fingerprint of the model in such a name."""
        return name.rpartition(" ")[0]

    def find_nearest(
        self, vector: "Vector", where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        if not where.kinds or limit <= 0:
            return []
        with self._transactions.reading() as (db, counters):
            # A vector of another model has nothing to be compared with.
            states = self._transactions.list_states(db, counters)
            if states.get(DIMENSIONS) != str(len(vector)):
                return []
            compared = max(_COMPARED, 2 * limit)
            is_kept = self._searches >= self.searches_before_keeping
            self._searches += 1
            if counters.vector_count <= self.few:
                wanted = self._choose_exactly(db, counters, vector, where, compared)
            elif is_kept and counters.vector_count <= _MAX_KEPT:
                wanted = self._choose_here(db, counters, vector, where, limit)
            else:
                wanted = self._choose_by_code(db, counters, vector, where, compared)
        # The cache takes a connection of its own, so this one was given back.
        found = find_cosines(self._embeddings, vector, wanted)
        near = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return near[:limit]

    def _choose_exactly(
        self,
        db: Connection,
        counters: IndexCounters,
        vector: "Vector",
        where: UnitFilter,
        compared: int,
    ) -> dict[int, int]:
        """Numbers of units, and of their vectors, that are worth comparing."""
        condition = to_condition(where)
        # Of an index that is new to it, the planner expects one row, and would read all
        # vectors again for each.
        db.execute("SET LOCAL enable_nestloop TO off")
        rows = db.execute(
            self._compose(db, _EXACT, condition.sql),
            (counters.index_id, *condition.values, to_halfvec(vector), compared),
        )
        db.execute("SET LOCAL enable_nestloop TO on")
        return to_dict(rows)

    def _choose_by_code(
        self,
        db: Connection,
        counters: IndexCounters,
        vector: "Vector",
        where: UnitFilter,
        compared: int,
    ) -> dict[int, int]:
        condition = to_condition(where)
        index_id, halves = counters.index_id, to_halfvec(vector)
        first = (index_id, *condition.values, to_code(vector))
        rows = db.execute(
            self._compose(db, _BY_CODE, condition.sql),
            (*first, BY_CODES * compared, index_id, halves, compared),
        )
        return to_dict(rows)

    def _choose_here(
        self,
        db: Connection,
        counters: IndexCounters,
        vector: "Vector",
        where: UnitFilter,
        limit: int,
    ) -> dict[int, int]:
        kept = self._segments.read(db, counters)
        if kept is None:
            return {}
        slots = np.flatnonzero(
            fit(
                where,
                unit_ids=kept.unit_ids,
                kinds=kept.kinds,
                containers=kept.containers,
                said=kept.said,
            )
        )
        compared = count_compared(len(slots), limit)
        if len(slots) > BY_CODES * compared:
            slots = choose_likely(vector, kept.codes, slots, compared)
        return dict(
            zip(
                kept.unit_ids[slots].tolist(),
                kept.embedding_ids[slots].tolist(),
                strict=True,
            )
        )

    def _compose(
        self, db: Connection, statement: LiteralString, condition: str
    ) -> sql.Composed:
        return sql.SQL(statement).format(
            schema=self.find_schema(db),
            # Made of constants alone: see unit_filter.py.
            condition=sql.SQL(condition),
        )

    def find_schema(self, db: Connection) -> sql.Identifier:
        """Where pgvector is; whoever added it to the database has decided that."""
        if self._schema is None:
            row = db.execute(
                """
                SELECT nspname FROM pg_extension
                  JOIN pg_namespace ON pg_namespace.oid = extnamespace
                 WHERE extname = 'vector'
                """
            ).fetchone()
            if row is None:
                raise StoreProblem(
                    "pgvector is missing",
                    hint="a superuser has to run CREATE EXTENSION vector",
                )
            self._schema = sql.Identifier(row[0])
        return self._schema

    def find_cosines(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, float]:
        with self._transactions.reading() as (db, counters):
            source = looked_up("vector_codes", "unit_id, embedding_id")
            rows = db.execute(
                f"SELECT unit_id, embedding_id FROM {source}".encode(),
                (list(unit_ids), counters.index_id),
            )
            numbers = to_dict(rows)
        return find_cosines(self._embeddings, vector, numbers)

    def find_best_passages(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, BestPassage]:
        with self._transactions.reading() as (db, counters):
            numbers = passages.find_embedding_ids(db, counters.index_id, unit_ids)
        if not numbers:
            return {}
        return find_best_passages(self._embeddings, vector, numbers)

    # -- writing ---

    def insert(self, db: Connection, index_id: int, made: Sequence[MadeVector]) -> int:
        """Store vectors of units that still need one; returns how many did."""
        unit_ids = [each.unit_id for each in made]
        with changed_by_place(db):
            rows = db.execute(
                f"""
                DELETE FROM units_to_embed
                 USING unnest(%s::bigint[], %b::bytea[]) AS made (unit_id, meaning_hash)
                 WHERE units_to_embed.unit_id = made.unit_id
                   AND units_to_embed.meaning_hash = made.meaning_hash
                   AND {in_places("units_to_embed")}
                RETURNING units_to_embed.unit_id
                """.encode(),
                (unit_ids, [each.meaning_hash for each in made], unit_ids, index_id),
            )
        waited = {unit_id for (unit_id,) in rows}
        fitting = {each.unit_id: each for each in made if each.unit_id in waited}
        if not fitting:
            return 0
        vectors = [each.vector for each in fitting.values()]
        set_state(db, index_id, DIMENSIONS, str(len(vectors[0])))
        codes = [
            (each.unit_id, each.embedding_id, to_code(each.vector))
            for each in fitting.values()
        ]
        db.execute(
            """
            INSERT INTO vector_codes (index_id, unit_id, kind, source_id, said_at,
                                      embedding_id, code)
            SELECT index_id, unit_id, kind, source_id, said_at, embedding_id,
                   code::bit varying
              FROM unnest(%s::bigint[], %s::bigint[], %s::text[])
                   AS made (its_number, embedding_id, code)
             CROSS JOIN LATERAL (
                   SELECT index_id, unit_id, kind, source_id, said_at FROM units
                    WHERE index_id = %s AND unit_id BETWEEN its_number AND its_number
                    ORDER BY unit_id LIMIT 1) AS units
            """,
            (*to_columns(codes, 3), index_id),
        )
        db.execute(
            sql.SQL(
                """
                INSERT INTO unit_vectors (index_id, unit_id, vector)
                SELECT %s, unit_id, vector::{}.halfvec
                  FROM unnest(%s::bigint[], %s::text[]) AS made (unit_id, vector)
                """
            ).format(self.find_schema(db)),
            (index_id, list(fitting), [to_halfvec(each) for each in vectors]),
        )
        return len(fitting)


def drop_vectors(db: Connection, index_id: int) -> None:
    """Delete all vectors; the units wait for new ones."""
    for table in ("vector_codes", "unit_vectors"):
        db.execute(f"DELETE FROM {table} WHERE index_id = %s".encode(), (index_id,))
    db.execute(
        """
        INSERT INTO units_to_embed (index_id, unit_id, said_at, meaning_hash)
        SELECT index_id, unit_id, said_at, meaning_hash FROM units
         WHERE index_id = %s AND meaning_hash IS NOT NULL
            ON CONFLICT (tenant_id, index_id, unit_id) DO NOTHING
        """,
        (index_id,),
    )
    passages.drop_embeddings(db, index_id)
    set_state(db, index_id, DIMENSIONS, "")


def list_to_embed(
    db: Connection, index_id: int, limit: int, without: Collection[int]
) -> list[ToEmbed]:
    rows = db.execute(
        """
        SELECT unit_id, meaning_hash FROM units_to_embed
         WHERE index_id = %s AND unit_id <> ALL(%s::bigint[])
         ORDER BY said_at DESC NULLS LAST, unit_id DESC LIMIT %s
        """,
        (index_id, list(without), limit),
    )
    return [ToEmbed(*row) for row in rows]


def count_to_embed(db: Connection, index_id: int, where: UnitFilter) -> tuple[int, int]:
    """How many matching units wait for a vector, and how many have a meaning."""
    condition = to_condition(where)
    row = db.execute(
        f"""
        SELECT COUNT(*)
          FROM units_to_embed AS waiting
         CROSS JOIN LATERAL (
               SELECT unit_id, kind, source_id, said_at FROM units
                WHERE index_id = %s
                  AND unit_id BETWEEN waiting.unit_id AND waiting.unit_id
                ORDER BY unit_id LIMIT 1) AS units
         WHERE waiting.index_id = %s AND {condition.sql}
        """.encode(),
        (index_id, index_id, *condition.values),
    ).fetchone()
    waiting: int = row[0] if row else 0
    if not waiting:
        return 0, 0
    row = db.execute(
        f"""
        SELECT COUNT(*) FROM units
         WHERE index_id = %s AND meaning_hash IS NOT NULL AND {condition.sql}
        """.encode(),
        (index_id, *condition.values),
    ).fetchone()
    return waiting, row[0] if row else 0


def to_halfvec(vector: "Vector") -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def to_code(vector: "Vector") -> str:
    """The sign of each number, as a text of zeros and ones."""
    return ((vector > 0).astype(np.uint8) + ord("0")).tobytes().decode()
