"""The tables ``units`` and ``unit_notes``: what is found, and the texts of files."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from backstory.store.base.containers import from_number, to_number
from backstory.store.base.index import (
    ActiveSession,
    IndexedText,
    Note,
    TurnPart,
    Unit,
    UnitFilter,
)
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.folded_texts import from_stored, to_stored
from backstory.store.postgres.rows import (
    changed_by_place,
    in_places,
    looked_up,
    to_columns,
    to_dict,
)
from backstory.store.postgres.unit_filter import to_condition
from backstory.values.structs import replace
from backstory.values.units import (
    MESSAGES,
    Container,
    FileRef,
    NewUnit,
    SessionRef,
    UnitKind,
    first_note_id,
    first_session_unit_id,
)

_KINDS = {int(kind): kind for kind in UnitKind}

# What a filter and the order of time ask for.
_FILTERED = "unit_id, kind, source_id, said_at"

# A row of ``units``: unit_id, kind, source_id, position, said_at, text_bytes,
# word_count, meaning_hash, folded.
UnitRow = tuple[int, int, int, int, int | None, int, int, bytes | None, str]


# -- writing --------------------------------------------------------------------------


def insert_units(db: Connection, index_id: int, rows: Sequence[UnitRow]) -> None:
    if not rows:
        return
    db.execute(
        """
        INSERT INTO units (index_id, unit_id, kind, source_id, position, said_at,
                           text_bytes, word_count, meaning_hash, folded)
        SELECT %s, * FROM unnest(%s::bigint[], %s::smallint[], %s::bigint[],
                                 %s::bigint[], %s::bigint[], %s::bigint[],
                                 %s::bigint[], %b::bytea[], %b::text[])
        """,
        (index_id, *to_columns(rows, 9)),
    )
    waiting = [(row[0], row[4], row[7]) for row in rows if row[7] is not None]
    if waiting:
        db.execute(
            """
            INSERT INTO units_to_embed (index_id, unit_id, said_at, meaning_hash)
            SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %b::bytea[])
            """,
            (index_id, *to_columns(waiting, 3)),
        )


def insert_notes(db: Connection, index_id: int, units: Iterable[NewUnit]) -> None:
    """Store the texts of units of Markdown files."""
    rows = [(unit.unit_id, unit.heading, unit.text) for unit in units]
    if rows:
        db.execute(
            """
            INSERT INTO unit_notes (index_id, unit_id, heading, text)
            SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::text[])
            """,
            (index_id, *to_columns(rows, 3)),
        )


def set_word_counts(db: Connection, index_id: int, counts: dict[int, int]) -> None:
    if not counts:
        return
    with changed_by_place(db):
        db.execute(
            f"""
            UPDATE units SET word_count = counts.word_count
              FROM unnest(%s::bigint[], %s::bigint[]) AS counts (unit_id, word_count)
             WHERE units.unit_id = counts.unit_id AND {in_places("units")}
            """.encode(),
            (list(counts), list(counts.values()), list(counts), index_id),
        )


def delete_units(
    db: Connection, index_id: int, unit_ids: Collection[int]
) -> tuple[int, set[bytes]]:
    """Delete all but the words of units.

    Returns how many had vectors, and the hashes of what they meant.
    """
    values = list({*unit_ids}), index_id
    hashes: set[bytes] = set()
    vectors = 0
    with changed_by_place(db):
        for table in ("units", "unit_passages"):
            column = "meaning_hash" if table == "units" else "passages_hash"
            rows = db.execute(
                f"""
                DELETE FROM {table} WHERE {in_places(table)} RETURNING {column}
                """.encode(),
                values,
            )
            hashes.update(key for (key,) in rows if key is not None)
        for table in ("unit_notes", "units_to_embed", "unit_vectors", "vector_codes"):
            vectors = db.execute(
                f"DELETE FROM {table} WHERE {in_places(table)}".encode(), values
            ).rowcount
    return vectors, hashes


def find_stored(
    db: Connection, index_id: int, unit_ids: Iterable[int]
) -> dict[int, tuple[Any, ...]]:
    """The stored columns below of these units, by number."""
    columns = (
        "unit_id, word_count, folded, meaning_hash, kind, source_id, position, said_at"
    )
    rows = _find_units(db, index_id, unit_ids, columns)
    return {row[0]: row[1:] for row in rows}


# Any: rows carry no types; the schema does.
def _find_units(
    db: Connection, index_id: int, unit_ids: Iterable[int], columns: str
) -> list[Any]:
    rows: list[Any] = db.execute(
        f"SELECT {columns} FROM {looked_up('units', columns)}".encode(),
        (list(unit_ids), index_id),
    ).fetchall()
    return rows


def find_word_counts(
    db: Connection, index_id: int, unit_ids: Collection[int]
) -> dict[int, int]:
    """How many words these units have; those that do not exist are left out."""
    return to_dict(_find_units(db, index_id, unit_ids, "unit_id, word_count"))


def list_unit_ids(db: Connection, index_id: int, container: Container) -> list[int]:
    rows = db.execute(
        """
        SELECT unit_id FROM units
         WHERE index_id = %s AND kind >= 0 AND source_id = %s
        """,
        (index_id, to_number(container)),
    )
    return [unit_id for (unit_id,) in rows]


def find_stored_notes(
    db: Connection, index_id: int, file: FileRef
) -> dict[tuple[int, int | None, str | None, str], int]:
    """The numbers of a file's units, by position, time, heading and text."""
    rows = db.execute(
        """
        SELECT position, said_at, heading, text, unit_id
          FROM units
         CROSS JOIN LATERAL (
               SELECT heading, text FROM unit_notes
                WHERE unit_notes.index_id = %s
                  AND unit_notes.unit_id BETWEEN units.unit_id AND units.unit_id
                ORDER BY unit_notes.unit_id LIMIT 1) AS unit_notes
         WHERE index_id = %s AND kind >= 0 AND source_id = %s
        """,
        (index_id, index_id, to_number(file)),
    )
    return {(row[0], row[1], row[2], row[3]): row[4] for row in rows}


def find_new_sessions(
    db: Connection, index_id: int, session_ids: Collection[int]
) -> set[int]:
    """Those of these sessions that have neither units nor chunks."""
    rows = db.execute(
        """
        SELECT session_id FROM unnest(%s::bigint[]) AS session_id
          LEFT JOIN LATERAL (
               SELECT unit_id FROM units
                WHERE index_id = %s AND kind >= 0
                  AND source_id BETWEEN session_id AND session_id
                ORDER BY source_id LIMIT 1) AS found_units ON true
          LEFT JOIN LATERAL (
               SELECT chunk_id FROM index_chunks
                WHERE index_id = %s AND source_id = session_id
                ORDER BY first_position LIMIT 1) AS found_chunks ON true
         WHERE unit_id IS NULL AND chunk_id IS NULL
        """,
        (list(session_ids), index_id, index_id),
    )
    return {session_id for (session_id,) in rows}


def list_message_units(
    db: Connection, index_id: int, session_id: int, first: int, last: int
) -> list[int]:
    """The units of messages from one position of a session to another."""
    rows = db.execute(
        """
        SELECT unit_id FROM unnest(%s::smallint[]) AS of_kind
         CROSS JOIN LATERAL (
               SELECT unit_id FROM units
                WHERE index_id = %s AND source_id = %s AND kind >= 0 AND kind = of_kind
                  AND position BETWEEN %s AND %s
                ORDER BY position OFFSET 0) AS units
         WHERE unit_id < %s
        """,
        (list(map(int, UnitKind)), index_id, session_id, first, last, first_note_id()),
    )
    return [unit_id for (unit_id,) in rows]


def last_note_id(db: Connection, index_id: int) -> int:
    """The last number of a unit of a file, or of a message if there is none."""
    row = db.execute(
        """
        SELECT unit_id FROM units WHERE index_id = %s AND unit_id < %s
         ORDER BY unit_id DESC LIMIT 1
        """,
        (index_id, first_session_unit_id()),
    ).fetchone()
    return 0 if row is None else int(row[0])


# -- reading --------------------------------------------------------------------------


def keep_fitting(
    db: Connection, index_id: int, unit_ids: Collection[int], where: UnitFilter
) -> set[int]:
    """Those of these units that match."""
    condition = to_condition(where)
    rows = db.execute(
        f"""
        SELECT unit_id FROM {looked_up("units", _FILTERED)}
         WHERE {condition.sql}
        """.encode(),
        (list(unit_ids), index_id, *condition.values),
    )
    return {unit_id for (unit_id,) in rows}


def list_fitting(
    db: Connection, index_id: int, where: UnitFilter, limit: int
) -> list[int]:
    """Some units that match, in no order."""
    condition = to_condition(where)
    rows = db.execute(
        f"""
        SELECT unit_id FROM units WHERE index_id = %s AND {condition.sql} LIMIT %s
        """.encode(),
        (index_id, *condition.values, limit),
    )
    return [unit_id for (unit_id,) in rows]


def list_newest(
    db: Connection,
    index_id: int,
    where: UnitFilter,
    limit: int,
    *,
    among: Collection[int] | None = None,
    folded: str = "",
) -> list[int]:
    """The newest units that match, and contain a folded text.

    ``among`` limits this to some units.
    """
    condition = to_condition(where)
    wanted, values = condition.sql, list(condition.values)
    if among is None:
        source = "units"
        wanted = f"units.index_id = %s AND {wanted}"
        values.insert(0, index_id)
    else:
        source = looked_up("units", f"{_FILTERED}, folded")
        values[:0] = [list({*among}), index_id]
    if folded:
        wanted += " AND strpos(units.folded, %s) > 0"
        values.append(to_stored(folded))
    if where.containers is not None:
        # Reading and sorting a few sessions is faster than searching by time.
        db.execute("SET LOCAL enable_sort TO on")
    rows = db.execute(
        f"""
        SELECT unit_id FROM {source} WHERE {wanted}
         ORDER BY said_at DESC NULLS LAST, unit_id DESC LIMIT %s
        """.encode(),
        (*values, limit),
    ).fetchall()
    if where.containers is not None:
        db.execute("SET LOCAL enable_sort TO off")
    return [unit_id for (unit_id,) in rows]


def list_newest_in(
    db: Connection,
    index_id: int,
    where: UnitFilter,
    limit: int,
    ranges: Sequence[tuple[int, int]],
    needle: str,
) -> list[tuple[int, int | None]]:
    """The newest units that match and contain a text as it is stored, and their times.

    Each range of unit numbers is read by itself, from its first one to before its end.
    """
    condition = to_condition(where)
    rows = db.execute(
        f"""
        SELECT units.unit_id, units.said_at
          FROM unnest(%s::bigint[], %s::bigint[]) AS range (first_id, end_id)
         CROSS JOIN LATERAL (
               SELECT unit_id, kind, source_id, said_at FROM units
                WHERE index_id = %s AND unit_id >= first_id AND unit_id < end_id
                  AND strpos(folded, %s) > 0
               OFFSET 0) AS units
         WHERE {condition.sql}
         ORDER BY said_at DESC NULLS LAST, unit_id DESC LIMIT %s
        """.encode(),
        (*to_columns(ranges, 2), index_id, needle, *condition.values, limit),
    )
    return rows.fetchall()


def list_having_text(
    db: Connection, index_id: int, folded: str, unit_ids: Collection[int]
) -> list[int]:
    rows = db.execute(
        f"""
        SELECT unit_id FROM {looked_up("units", "unit_id, folded")}
         WHERE strpos(folded, %s) > 0
        """.encode(),
        (list({*unit_ids}), index_id, to_stored(folded)),
    )
    return [unit_id for (unit_id,) in rows]


def get_units(
    db: Connection, index_id: int, unit_ids: Collection[int]
) -> dict[int, Unit]:
    columns = "unit_id, kind, source_id, position, said_at, text_bytes"
    rows = _find_units(db, index_id, unit_ids, columns)
    return {row[0]: _to_unit(row) for row in rows}


def find_sessions_with_tools(
    db: Connection, index_id: int, sessions: Collection[SessionRef]
) -> frozenset[SessionRef]:
    rows = db.execute(
        """
        SELECT session_id FROM unnest(%s::bigint[]) AS session_id
         CROSS JOIN LATERAL (
               SELECT 1 FROM units
                WHERE index_id = %s AND source_id = session_id
                  AND kind >= 0 AND kind = %s
                ORDER BY position LIMIT 1) AS of_tools
        """,
        ([each.session_id for each in sessions], index_id, UnitKind.OTHER),
    )
    return frozenset(SessionRef(session_id) for (session_id,) in rows)


def find_turn_parts(
    db: Connection, index_id: int, unit_ids: Collection[int]
) -> dict[int, TurnPart]:
    # The order has the index by kind used: see looked_up.
    rows = db.execute(
        f"""
        SELECT units.unit_id, request.unit_id, step.unit_id IS NOT NULL
          FROM {looked_up("units", "unit_id, source_id, position")}
          LEFT JOIN LATERAL (
               (SELECT unit_id, position FROM units AS requests
                 WHERE index_id = %s AND requests.source_id = units.source_id
                   AND kind >= 0 AND kind = %s
                   AND requests.position < units.position
                 ORDER BY position DESC LIMIT 1)
               UNION ALL
               (SELECT unit_id, position FROM units AS tasks
                 WHERE index_id = %s AND tasks.source_id = units.source_id
                   AND kind >= 0 AND kind = %s
                   AND tasks.position < units.position
                 ORDER BY position DESC LIMIT 1)
                ORDER BY position DESC LIMIT 1) AS request ON true
          LEFT JOIN LATERAL (
               SELECT unit_id FROM units AS following
                WHERE index_id = %s AND following.source_id = units.source_id
                  AND kind >= 0 AND kind = %s
                  AND following.position BETWEEN units.position + 1
                                             AND units.position + 1
                ORDER BY position LIMIT 1) AS step ON true
        """.encode(),
        (
            list({*unit_ids}),
            *(index_id, index_id, UnitKind.USER),
            *(index_id, UnitKind.TASK),
            *(index_id, UnitKind.OTHER),
        ),
    )
    return {
        unit_id: TurnPart(request_id, is_step) for unit_id, request_id, is_step in rows
    }


def list_last_messages(
    db: Connection, index_id: int, limit: int
) -> list[tuple[Unit, bytes | None]]:
    rows = db.execute(
        """
        SELECT unit_id, kind, source_id, position, said_at, text_bytes, meaning_hash
          FROM units WHERE index_id = %s AND unit_id < %s
         ORDER BY unit_id DESC LIMIT %s
        """,
        (index_id, first_note_id(), limit),
    )
    return [(_to_unit(row[:-1]), row[-1]) for row in rows]


def list_texts(
    db: Connection, index_id: int, unit_ids: Collection[int] | None = None
) -> list[IndexedText]:
    """These units of sessions, or all of them, by session and position."""
    columns = (
        "unit_id, kind, source_id, position, said_at, text_bytes, folded, meaning_hash"
    )
    values: list[Any]
    if unit_ids is None:
        source, values = "units WHERE index_id = %s AND kind >= 0 AND", [index_id]
    else:
        source = f"{looked_up('units', columns)} WHERE"
        values = [list(unit_ids), index_id]
    rows = db.execute(
        f"""
        SELECT {columns} FROM {source} source_id > 0
         ORDER BY source_id, position, unit_id
        """.encode(),
        values,
    )
    return [
        IndexedText(_to_unit(row[:-2]), from_stored(row[-2]), row[-1]) for row in rows
    ]


# Any: rows carry no types; the schema does.
def _to_unit(row: tuple[Any, ...]) -> Unit:
    unit_id, kind, number, position, said_at, size = row
    return Unit(unit_id, _KINDS[kind], from_number(number), position, said_at, size)


def count_by_session(
    db: Connection, index_id: int, spans: Sequence[tuple[int, int]], where: UnitFilter
) -> list[ActiveSession]:
    condition = to_condition(replace(where, kinds=where.kinds & MESSAGES))
    rows = db.execute(
        f"""
        SELECT spans.number - 1, source_id, COUNT(*), MIN(said_at), MAX(said_at)
          FROM unnest(%s::bigint[], %s::bigint[])
               WITH ORDINALITY AS spans (first_at, end_at, number)
         CROSS JOIN LATERAL (
               SELECT source_id, said_at FROM units
                WHERE index_id = %s AND {condition.sql}
                  AND said_at >= spans.first_at AND said_at < spans.end_at
                ORDER BY said_at DESC NULLS LAST, unit_id DESC OFFSET 0) AS units
         GROUP BY spans.number, source_id
         ORDER BY spans.number, source_id
        """.encode(),
        (*to_columns(spans, 2), index_id, *condition.values),
    )
    return [ActiveSession(*row) for row in rows]


def list_notes(db: Connection, index_id: int, where: UnitFilter) -> dict[int, str]:
    """The texts of matching units of files."""
    condition = to_condition(where)
    rows = db.execute(
        f"""
        SELECT unit_notes.unit_id, text
          FROM unit_notes
         CROSS JOIN LATERAL (
               SELECT {_FILTERED} FROM units
                WHERE index_id = %s
                  AND unit_id BETWEEN unit_notes.unit_id AND unit_notes.unit_id
                ORDER BY unit_id LIMIT 1) AS units
         WHERE unit_notes.index_id = %s AND {condition.sql}
        """.encode(),
        (index_id, index_id, *condition.values),
    )
    return to_dict(rows)


def get_notes(
    db: Connection, index_id: int, unit_ids: Collection[int]
) -> dict[int, Note]:
    columns = "unit_id, heading, text"
    rows = db.execute(
        f"SELECT {columns} FROM {looked_up('unit_notes', columns)}".encode(),
        (list({*unit_ids}), index_id),
    )
    return {unit_id: Note(heading, text) for unit_id, heading, text in rows}


def count_kinds(db: Connection, index_id: int) -> tuple[int, int, int]:
    """How many units there are, how many with a meaning, how many of messages."""
    row = db.execute(
        """
        SELECT COUNT(*), COUNT(meaning_hash), COUNT(*) FILTER (WHERE unit_id < %s)
          FROM units WHERE index_id = %s
        """,
        (first_note_id(), index_id),
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def sum_text_bytes(db: Connection, index_id: int) -> int:
    row = db.execute(
        """
        SELECT COALESCE(SUM(text_bytes), 0)::bigint FROM units WHERE index_id = %s
        """,
        (index_id,),
    ).fetchone()
    assert row is not None
    return int(row[0])


def list_unused_hashes(db: Connection, hashes: Iterable[bytes]) -> list[bytes]:
    """The hashes that no unit of any index of the tenant, nor its passages, have."""
    wanted = set(hashes)
    rows = db.execute(
        """
        SELECT meaning_hash FROM units WHERE meaning_hash = ANY(%(hashes)b::bytea[])
         UNION
        SELECT passages_hash FROM unit_passages
         WHERE passages_hash = ANY(%(hashes)b::bytea[])
        """,
        {"hashes": list(wanted)},
    )
    return sorted(wanted - {key for (key,) in rows})
