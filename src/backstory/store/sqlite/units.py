"""The tables ``units`` and ``notes``: what can be found, and the texts of files."""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import apsw

from backstory.store.base.containers import from_number, to_number
from backstory.store.base.index import (
    ActiveSession,
    Note,
    ToEmbed,
    TurnPart,
    Unit,
    UnitFilter,
)
from backstory.store.sqlite.rows import to_dict, to_json
from backstory.store.sqlite.unit_filter import to_clause
from backstory.store.sqlite.words import delete_words
from backstory.values.moments import Moment
from backstory.values.structs import replace
from backstory.values.units import (
    MESSAGES,
    Container,
    FileRef,
    NewUnit,
    SessionRef,
    UnitKind,
    first_note_id,
)

# The first and last moment that ``datetime`` can hold, in microseconds.
_FIRST_TIME = Moment(datetime.min.replace(tzinfo=UTC)).to_microseconds()
_LAST_TIME = Moment(datetime.max.replace(tzinfo=UTC)).to_microseconds()


# Faster than calling ``UnitKind``.
_KINDS = {int(kind): kind for kind in UnitKind}

# A row of ``units``: unit_id, kind, source_id, position, said_at, text_at, text_bytes,
# meaning_hash.
UnitRow = tuple[int, int, int, int, int | None, int, int, bytes | None]


# -- writing --------------------------------------------------------------------------


def insert_units(db: apsw.Connection, rows: Sequence[UnitRow]) -> None:
    db.executemany(
        """
        INSERT INTO units (unit_id, kind, source_id, position, said_at, text_at,
                           text_bytes, meaning_hash)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        rows,
    )


def insert_notes(db: apsw.Connection, units: Iterable[NewUnit]) -> None:
    """Store the texts of units of Markdown files."""
    db.executemany(
        "INSERT INTO notes (unit_id, heading, text) VALUES (?, ?, ?)",
        [
            (unit.unit_id, unit.heading, unit.text)
            for unit in units
            if unit.heading is not None
        ],
    )


def delete_units(db: apsw.Connection, unit_ids: Collection[int]) -> None:
    delete_words(db, unit_ids)
    db.execute(
        "DELETE FROM units WHERE unit_id IN (SELECT value FROM json_each(?))",
        (to_json(unit_ids),),
    )


def find_stored(
    db: apsw.Connection, unit_ids: Iterable[int]
) -> dict[int, tuple[Any, ...]]:
    """The stored columns of these units, by number."""
    rows = db.execute(
        """
        SELECT unit_id, text_at, text_bytes, slot, meaning_hash, kind, source_id,
               position, said_at
          FROM units WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return {row[0]: row[1:] for row in rows}


def list_unit_ids(db: apsw.Connection, container: Container) -> list[int]:
    rows = db.execute(
        "SELECT unit_id FROM units WHERE source_id = ?", (to_number(container),)
    )
    return [unit_id for (unit_id,) in rows]


def find_stored_notes(
    db: apsw.Connection, file: FileRef
) -> dict[tuple[int, int | None, str | None, str], int]:
    """The numbers of a file's units, by position, time, heading and text."""
    rows = db.execute(
        """
        SELECT position, said_at, heading, text, unit_id
          FROM units JOIN notes USING (unit_id)
         WHERE source_id = ?
        """,
        (to_number(file),),
    )
    return {(*facts,): unit_id for *facts, unit_id in rows}


def find_new_sessions(db: apsw.Connection, session_ids: Iterable[int]) -> set[int]:
    """Those of these sessions that have neither units nor chunks."""
    rows = db.execute(
        """
        SELECT value FROM json_each(?)
         WHERE NOT EXISTS (SELECT 1 FROM units WHERE source_id = value)
           AND NOT EXISTS (SELECT 1 FROM chunks WHERE source_id = value)
        """,
        (to_json(session_ids),),
    )
    return {session_id for (session_id,) in rows}


def list_message_units(
    db: apsw.Connection, session_id: int, first: int, last: int
) -> list[int]:
    """The units of messages from one position of a session to another."""
    rows = db.execute(
        """
        SELECT unit_id FROM units
         WHERE source_id = ? AND kind IN (SELECT value FROM json_each(?))
           AND position BETWEEN ? AND ? AND unit_id < ?
        """,
        (session_id, to_json(UnitKind), first, last, first_note_id()),
    )
    return [unit_id for (unit_id,) in rows]


# -- reading --------------------------------------------------------------------------


def find_all_at(
    db: apsw.Connection, places: Iterable[int], where: UnitFilter
) -> list[Any]:
    """Matching units whose texts contain these places, with their times."""
    clause = to_clause(where)
    return db.execute(
        f"""
        SELECT DISTINCT units.unit_id, units.said_at
          FROM json_each(?) AS places
          JOIN units ON units.unit_id = (SELECT unit_id FROM units
                                          WHERE text_at <= places.value
                                          ORDER BY text_at DESC LIMIT 1)
         WHERE places.value < units.text_at + units.text_bytes AND {clause.sql}
        """,
        (to_json(places), *clause.values),
    ).fetchall()


def list_places(
    db: apsw.Connection, unit_ids: Collection[int]
) -> Iterable[tuple[int, int, int]]:
    """The numbers of these units, and where their texts are: place and length."""
    # Any: SQLite rows carry no types; the schema does.
    rows: Any = db.execute(
        """
        SELECT unit_id, text_at, text_bytes FROM units
         WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return rows  # type: ignore[no-any-return]


def list_all_places(db: apsw.Connection) -> Iterable[tuple[int, int, int]]:
    """Like ``list_places``, for all units."""
    return db.execute("SELECT unit_id, text_at, text_bytes FROM units")


def newest_places(
    db: apsw.Connection, where: UnitFilter
) -> Iterable[tuple[int, int, int]]:
    """Like ``list_places``, for matching units, the newest first."""
    clause = to_clause(where)
    return db.execute(
        f"""
        SELECT unit_id, text_at, text_bytes FROM units
         WHERE {clause.sql}
         ORDER BY said_at DESC, unit_id DESC
        """,
        clause.values,
    )


def get_units(db: apsw.Connection, unit_ids: Collection[int]) -> dict[int, Unit]:
    rows = db.execute(
        """
        SELECT unit_id, kind, source_id, position, said_at, text_bytes FROM units
         WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return {row[0]: _to_unit(row) for row in rows}


def find_sessions_with_tools(
    db: apsw.Connection, sessions: Collection[SessionRef]
) -> frozenset[SessionRef]:
    rows = db.execute(
        """
        SELECT value FROM json_each(?) AS sessions
         WHERE EXISTS (SELECT 1 FROM units
                        WHERE source_id = sessions.value AND kind = ?)
        """,
        (to_json(each.session_id for each in sessions), UnitKind.OTHER),
    )
    return frozenset(map(SessionRef, (session_id for (session_id,) in rows)))


def find_turn_parts(
    db: apsw.Connection, unit_ids: Collection[int]
) -> dict[int, TurnPart]:
    rows = db.execute(
        """
        SELECT unit_id,
               (SELECT unit_id FROM units AS requests
                 WHERE requests.source_id = units.source_id
                   AND requests.kind IN (?, ?)
                   AND requests.position < units.position
                 ORDER BY position DESC LIMIT 1),
               EXISTS (SELECT 1 FROM units AS following
                        WHERE following.source_id = units.source_id
                          AND following.kind = ?
                          AND following.position = units.position + 1)
          FROM units WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (UnitKind.USER, UnitKind.TASK, UnitKind.OTHER, to_json(unit_ids)),
    )
    return {
        unit_id: TurnPart(request_id, bool(is_step))
        for unit_id, request_id, is_step in rows
    }


def list_last_messages(
    db: apsw.Connection, limit: int
) -> list[tuple[Unit, bytes | None]]:
    rows = db.execute(
        """
        SELECT unit_id, kind, source_id, position, said_at, text_bytes, meaning_hash
          FROM units WHERE unit_id < ? ORDER BY unit_id DESC LIMIT ?
        """,
        (first_note_id(), limit),
    )
    return [(_to_unit(row[:-1]), row[-1]) for row in rows]


def list_all_of_sessions(db: apsw.Connection) -> Iterable[tuple[Unit, int]]:
    """The units of all sessions, each with the place of its text."""
    rows = db.execute(
        """
        SELECT unit_id, kind, source_id, position, said_at, text_bytes, text_at
          FROM units WHERE source_id > 0 ORDER BY source_id, position, unit_id
        """
    )
    return ((_to_unit(row[:-1]), row[-1]) for row in rows)


def list_hashed(
    db: apsw.Connection, unit_ids: Collection[int]
) -> Iterable[tuple[Unit, int, bytes | None]]:
    """These units of sessions, where their texts are, and hashes of their meanings."""
    rows = db.execute(
        """
        SELECT unit_id, kind, source_id, position, said_at, text_bytes, text_at,
               meaning_hash
          FROM units
         WHERE source_id > 0 AND unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return ((_to_unit(row[:-2]), row[-2], row[-1]) for row in rows)


# Any: SQLite rows carry no types; the schema does.
def _to_unit(row: tuple[Any, ...]) -> Unit:
    unit_id, kind, number, position, said_at, size = row
    said_at = None if said_at is None else _to_time(said_at)
    return Unit(unit_id, _KINDS[kind], from_number(number), position, said_at, size)


# Any: SQLite rows carry no types, and a damaged row ignores the schema.
def _to_time(said_at: Any) -> int | None:
    """A stored time. Raises ``ValueError`` for an impossible one."""
    if said_at is None:
        return None
    if not isinstance(said_at, int) or not _FIRST_TIME <= said_at <= _LAST_TIME:
        raise ValueError(f"{said_at!r} is not a time")
    return said_at


def read_notes_and_tables(db: apsw.Connection) -> None:
    """Read what is quick to read: all notes, a row of every table, two times.

    Raises whatever Python raises for invalid texts and times.
    """
    for table in (
        "units",
        "passages",
        "words",
        "chunks",
        "index_state",
        "vector_pages",
    ):
        db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall()
    for columns in ("heading, text FROM notes", "name, value FROM state"):
        for _ in db.execute(f"SELECT {columns}"):
            pass
    for end in ("MIN", "MAX"):
        _to_time(db.execute(f"SELECT {end}(said_at) FROM units").get)


def read_all_texts(db: apsw.Connection) -> None:
    """Read all texts and times. Raises whatever Python raises for invalid ones."""
    read_notes_and_tables(db)
    for _ in db.execute("SELECT source_type, text FROM chunks"):
        pass
    for (said_at,) in db.execute("SELECT said_at FROM units"):
        _to_time(said_at)


def count_by_session(
    db: apsw.Connection, spans: Sequence[tuple[int, int]], where: UnitFilter
) -> list[ActiveSession]:
    clause = to_clause(replace(where, kinds=where.kinds & MESSAGES))
    # CROSS JOIN: one short stretch of the index by time for each span.
    rows = db.execute(
        f"""
        SELECT spans.key, source_id, COUNT(*), MIN(said_at), MAX(said_at)
          FROM json_each(?) AS spans
         CROSS JOIN units INDEXED BY units_by_time
            ON said_at >= spans.value ->> 0 AND said_at < spans.value ->> 1
         WHERE {clause.sql}
         GROUP BY spans.key, source_id
         ORDER BY spans.key, source_id
        """,
        [to_json(spans), *clause.values],
    )
    return [ActiveSession(*row) for row in rows]


def list_notes(db: apsw.Connection, where: UnitFilter) -> dict[int, str]:
    """The texts of matching units of files."""
    clause = to_clause(where)
    rows = db.execute(
        f"""
        SELECT unit_id, text FROM notes JOIN units USING (unit_id)
         WHERE {clause.sql}
        """,
        clause.values,
    )
    return to_dict(rows)


def get_notes(db: apsw.Connection, unit_ids: Collection[int]) -> dict[int, Note]:
    rows = db.execute(
        """
        SELECT unit_id, heading, text FROM notes
         WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return {unit_id: Note(heading, text) for unit_id, heading, text in rows}


def list_to_embed(
    db: apsw.Connection, limit: int, without: Collection[int]
) -> list[ToEmbed]:
    rows = db.execute(
        """
        SELECT unit_id, meaning_hash FROM units
         WHERE meaning_hash IS NOT NULL AND embedding_id IS NULL
           AND unit_id NOT IN (SELECT value FROM json_each(?))
         ORDER BY said_at DESC LIMIT ?
        """,
        (to_json(without), limit),
    )
    return [ToEmbed(*row) for row in rows]


def count_to_embed(db: apsw.Connection, where: UnitFilter) -> tuple[int, int]:
    """How many matching units wait for a vector, and how many have a meaning."""
    clause = to_clause(where)
    waiting: int = db.execute(
        f"""
        SELECT COUNT(*) FROM units
         WHERE meaning_hash IS NOT NULL AND embedding_id IS NULL AND {clause.sql}
        """,
        clause.values,
    ).get
    # Usually none needs one, which a database index tells at once.
    if not waiting:
        return 0, 0
    meaningful: int = db.execute(
        f"SELECT COUNT(*) FROM units WHERE meaning_hash IS NOT NULL AND {clause.sql}",
        clause.values,
    ).get
    return waiting, meaningful


def find_embedding_ids(
    db: apsw.Connection, unit_ids: Collection[int], *, table: str = "units"
) -> dict[int, int]:
    """The numbers of these units' vectors; units without one are left out."""
    rows = db.execute(
        f"""
        SELECT unit_id, embedding_id FROM {table}
         WHERE unit_id IN (SELECT value FROM json_each(?))
           AND embedding_id IS NOT NULL
        """,
        (to_json(unit_ids),),
    )
    return to_dict(rows)


def list_wanting(db: apsw.Connection, unit_ids: Collection[int]) -> dict[int, bytes]:
    """The hashes of those of these units that still need a vector."""
    rows = db.execute(
        """
        SELECT unit_id, meaning_hash FROM units
         WHERE unit_id IN (SELECT value FROM json_each(?))
           AND meaning_hash IS NOT NULL AND embedding_id IS NULL
        """,
        (to_json(unit_ids),),
    )
    return to_dict(rows)


def count_unknown_kinds(db: apsw.Connection) -> int:
    known = ", ".join(str(int(kind)) for kind in UnitKind)
    count: int = db.execute(
        f"SELECT COUNT(*) FROM units WHERE kind NOT IN ({known})"
    ).get
    return count


def count_with_meaning(db: apsw.Connection) -> int:
    count: int = db.execute("SELECT COUNT(meaning_hash) FROM units").get
    return count


def list_unused_hashes(db: apsw.Connection, hashes: Iterable[bytes]) -> list[bytes]:
    """Those of the hashes that neither a unit nor its passages have any more."""
    wanted = set(hashes)
    rows = db.execute(
        """
        SELECT meaning_hash FROM units
         WHERE meaning_hash IN (SELECT unhex(value) FROM json_each(?1))
         UNION
        SELECT passages_hash FROM passages
         WHERE passages_hash IN (SELECT unhex(value) FROM json_each(?1))
        """,
        (to_json(each.hex() for each in wanted),),
    )
    return sorted(wanted - {key for (key,) in rows})
