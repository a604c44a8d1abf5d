"""The table ``last_words``: the words of the units that were written last.

Each word of a unit has a row, so a unit is found as soon as it is committed, and can be
replaced at little cost. Too many rows would be slow to read: see word_writer.py.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping

import numpy as np

from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.postings import (
    Postings,
    UnitWords,
    from_positions,
    number_positions,
)
from backstory.store.postgres.rows import changed_by_place, to_columns, to_dict

_POSITIONS = "<u4"
# The columns of ``find_postings``.
_SENT_AS = (">i8", ">i4", ">i4", ">i4", _POSITIONS)
# Rows with some terms: see looked_up.
_WITH_TERMS = """
    unnest(%b::text[]) AS wanted (its_term)
    CROSS JOIN LATERAL (
          SELECT term, unit_id, word_count, text_count, around_count, positions
            FROM last_words
           WHERE index_id = %s AND term BETWEEN wanted.its_term AND wanted.its_term
           ORDER BY term, unit_id OFFSET 0) AS last_words
"""


def insert_words(db: Connection, index_id: int, words: Mapping[int, UnitWords]) -> None:
    rows = []
    for unit_id, unit in words.items():
        positions: dict[str, list[int]] = {}
        for position, term in number_positions(unit):
            positions.setdefault(term, []).append(position)
        text_size, word_count = len(unit.text), unit.word_count
        for term, places in positions.items():
            in_text = bisect_left(places, text_size)
            packed = np.asarray(places, _POSITIONS).tobytes()
            around = len(places) - in_text
            rows.append((term, unit_id, word_count, in_text, around, packed))
    if rows:
        db.execute(
            """
            INSERT INTO last_words (index_id, term, unit_id, word_count, text_count,
                                   around_count, positions)
            SELECT %s, * FROM unnest(%b::text[], %s::bigint[], %s::integer[],
                                     %s::integer[], %s::integer[], %b::bytea[])
            """,
            (index_id, *to_columns(rows, 6)),
        )


def delete_words(db: Connection, index_id: int, unit_ids: Collection[int]) -> set[int]:
    """Delete the words of units; returns those that had some here."""
    with changed_by_place(db):
        rows = db.execute(
            """
            WITH deleted AS (
                 DELETE FROM last_words WHERE ctid = ANY(ARRAY(
                        SELECT place FROM unnest(%s::bigint[]) AS wanted (number)
                         CROSS JOIN LATERAL (
                               SELECT ctid AS place FROM last_words
                                WHERE index_id = %s
                                  AND unit_id BETWEEN number AND number
                                ORDER BY unit_id OFFSET 0) AS of_unit))
                 RETURNING unit_id)
            SELECT DISTINCT unit_id FROM deleted
            """,
            (list({*unit_ids}), index_id),
        )
    return {unit_id for (unit_id,) in rows}


def take_words(db: Connection, index_id: int) -> dict[int, UnitWords]:
    """Delete all words and return them."""
    rows = db.execute(
        """
        DELETE FROM last_words WHERE index_id = %s
        RETURNING unit_id, term, positions
        """,
        (index_id,),
        binary=True,
    )
    terms: dict[int, dict[int, str]] = {}
    for unit_id, term, packed in rows:
        by_position = terms.setdefault(unit_id, {})
        for position in np.frombuffer(packed, _POSITIONS).tolist():
            by_position[position] = term
    return {unit_id: from_positions(each) for unit_id, each in terms.items()}


def find_postings(
    db: Connection, index_id: int, terms: Collection[str]
) -> dict[str, Postings]:
    """The units that have these terms; a term that none has is left out."""
    # A row for each term: to read one for each unit would take longer than all else.
    rows = db.execute(
        f"""
        SELECT term,
               string_agg(int8send(unit_id), ''::bytea ORDER BY unit_id),
               string_agg(int4send(word_count), ''::bytea ORDER BY unit_id),
               string_agg(int4send(text_count), ''::bytea ORDER BY unit_id),
               string_agg(int4send(around_count), ''::bytea ORDER BY unit_id),
               string_agg(positions, ''::bytea ORDER BY unit_id)
          FROM {_WITH_TERMS}
         GROUP BY term
        """.encode(),
        (list({*terms}), index_id),
        binary=True,
    )
    return {
        row[0]: Postings(
            *(
                np.frombuffer(packed, kind).astype(np.int64)
                for packed, kind in zip(row[1:], _SENT_AS, strict=True)
            )
        )
        for row in rows
    }


def count_units(
    db: Connection, index_id: int, terms: Collection[str]
) -> dict[str, int]:
    rows = db.execute(
        f"SELECT term, COUNT(*) FROM {_WITH_TERMS} GROUP BY term".encode(),
        (list({*terms}), index_id),
    )
    return to_dict(rows)


def sum_word_counts(db: Connection, index_id: int) -> dict[int, int]:
    """How many words each unit has here."""
    rows = db.execute(
        """
        SELECT unit_id, SUM(text_count + around_count)::bigint FROM last_words
         WHERE index_id = %s GROUP BY unit_id
        """,
        (index_id,),
    )
    return to_dict(rows)
