"""The tables ``units``, ``words``, ``notes``, ``chunks``: what is found and shown."""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import apsw

from backstory.store.base.index import (
    Chunk,
    IndexCounts,
    Note,
    ToEmbed,
    Unit,
    UnitFilter,
    Words,
)
from backstory.store.sqlite.parameters import to_json
from backstory.values.moments import Moment
from backstory.values.units import NewChunk, NewUnit, UnitKind, first_note_id

# A word beside a message says less about it than one in it.
_TEXT_WEIGHT = 1.0
_AROUND_WEIGHT = 0.6
# The first and the last moment that Python knows, in microseconds.
_FIRST_TIME = Moment(datetime.min.replace(tzinfo=UTC)).to_microseconds()
_LAST_TIME = Moment(datetime.max.replace(tzinfo=UTC)).to_microseconds()
# Of so many units at most, a set is made before their words are looked at.
_FEW_UNITS = 20_000
_BM25 = f"bm25(words, {_TEXT_WEIGHT}, {_AROUND_WEIGHT})"


# A row of ``units``: unit_id, kind, source_id, position, said_at, text_at, text_bytes,
# meaning_hash.
UnitRow = tuple[int, int, int, int, int | None, int, int, bytes | None]


# Any: SQLite rows carry no types; the schema does.
def to_dict(rows: Iterable[Any]) -> dict[Any, Any]:
    """Rows of two columns as a dictionary."""
    return dict(rows)


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
    """Keep what units of Markdown files say."""
    db.executemany(
        "INSERT INTO notes (unit_id, heading, text) VALUES (?, ?, ?)",
        [
            (unit.unit_id, unit.heading, unit.text)
            for unit in units
            if unit.heading is not None
        ],
    )


def insert_words(db: apsw.Connection, rows: Sequence[tuple[int, str, str]]) -> None:
    """File the words of units: number, words of the text, words around it."""
    db.executemany("INSERT INTO words (rowid, text, around) VALUES (?, ?, ?)", rows)


def delete_words(db: apsw.Connection, unit_ids: Iterable[int]) -> None:
    db.executemany(
        "DELETE FROM words WHERE rowid = ?", [(unit_id,) for unit_id in unit_ids]
    )


def delete_units(db: apsw.Connection, unit_ids: Collection[int]) -> None:
    delete_words(db, unit_ids)
    db.execute(
        "DELETE FROM units WHERE unit_id IN (SELECT value FROM json_each(?))",
        (to_json(unit_ids),),
    )


def find_filed(
    db: apsw.Connection, unit_ids: Iterable[int]
) -> dict[int, tuple[Any, ...]]:
    """How units are filed now, by number: the columns below that follow it."""
    rows = db.execute(
        """
        SELECT unit_id, text_at, text_bytes, slot, meaning_hash, kind, source_id,
               position, said_at
          FROM units WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return {row[0]: row[1:] for row in rows}


def list_unit_ids(db: apsw.Connection, source_id: int) -> list[int]:
    rows = db.execute("SELECT unit_id FROM units WHERE source_id = ?", (source_id,))
    return [unit_id for (unit_id,) in rows]


def find_filed_notes(
    db: apsw.Connection, source_id: int
) -> dict[tuple[int, int | None, str | None, str], int]:
    """The units of a file, by position, time, heading and text."""
    rows = db.execute(
        """
        SELECT position, said_at, heading, text, unit_id
          FROM units JOIN notes USING (unit_id)
         WHERE source_id = ?
        """,
        (source_id,),
    )
    return {(*facts,): unit_id for *facts, unit_id in rows}


def list_message_units(
    db: apsw.Connection, source_id: int, first: int, last: int
) -> list[int]:
    """The units of messages from one position of a session to another."""
    rows = db.execute(
        """
        SELECT unit_id FROM units
         WHERE source_id = ? AND position BETWEEN ? AND ? AND unit_id < ?
        """,
        (source_id, first, last, first_note_id()),
    )
    return [unit_id for (unit_id,) in rows]


def list_chunks(db: apsw.Connection, source_id: int) -> list[tuple[int, int]]:
    rows = db.execute(
        """
        SELECT first_position, last_position FROM chunks
         WHERE source_id = ? ORDER BY first_position
        """,
        (source_id,),
    )
    return [(first, last) for first, last in rows]


def replace_chunks(
    db: apsw.Connection,
    source_type: str,
    source_id: int,
    chunks: Sequence[NewChunk],
    first: int,
    before: int | None,
) -> None:
    db.execute(
        """
        DELETE FROM chunks
         WHERE source_id = ?1 AND first_position >= ?2
           AND (?3 IS NULL OR first_position < ?3)
        """,
        (source_id, first, before),
    )
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


# -- reading --------------------------------------------------------------------------


def where_clause(where: UnitFilter) -> tuple[str, list[Any]]:
    """The condition on ``units`` that a filter stands for, and its values."""
    sql = f"units.kind IN ({', '.join(str(int(kind)) for kind in sorted(where.kinds))})"
    values: list[Any] = []
    if where.said_from is not None:
        sql += " AND units.said_at >= ?"
        values.append(where.said_from)
    if where.said_before is not None:
        sql += " AND units.said_at < ?"
        values.append(where.said_before)
    if where.sources is not None:
        sql += " AND units.source_id IN (SELECT value FROM json_each(?))"
        values.append(to_json(where.sources))
    if where.without_sources:
        sql += " AND units.source_id NOT IN (SELECT value FROM json_each(?))"
        values.append(to_json(where.without_sources))
    if where.without:
        sql += " AND units.unit_id NOT IN (SELECT value FROM json_each(?))"
        values.append(to_json(where.without))
    return sql, values


def match_words(
    db: apsw.Connection, words: Words, where: UnitFilter, limit: int
) -> list[tuple[int, float]]:
    condition, values = where_clause(where)
    expression = match_expression(words)
    if where.said_from is None and where.said_before is None and where.sources is None:
        # To read the unit of every match takes longer than to score it. Most of the
        # best fit; where too few do, all are read after all.
        tried = limit * (2 if UnitKind.OTHER in where.kinds else 6)
        # Any: SQLite rows carry no types; the schema does.
        best: list[Any] = db.execute(
            f"""
            SELECT rowid, {_BM25} AS cost FROM words
             WHERE words MATCH ? ORDER BY cost, rowid DESC LIMIT ?
            """,
            (expression, tried),
        ).fetchall()
        rows = db.execute(
            f"""
            SELECT unit_id FROM units
             WHERE unit_id IN (SELECT value FROM json_each(?)) AND {condition}
            """,
            (to_json(unit_id for unit_id, _ in best), *values),
        )
        fitting = {unit_id for (unit_id,) in rows}
        found = [(unit_id, -cost) for unit_id, cost in best if unit_id in fitting]
        if len(found) >= limit or len(best) < tried:
            return found[:limit]
    days, day_values = _days_clause(db, where)
    rows = db.execute(
        f"""
        SELECT words.rowid, {_BM25} AS cost
          FROM words JOIN units ON units.unit_id = words.rowid
         WHERE words MATCH ? {days} AND {condition}
         ORDER BY cost, words.rowid DESC
         LIMIT ?
        """,
        (expression, *day_values, *values, limit),
    )
    return [(unit_id, -cost) for unit_id, cost in rows]


def _days_clause(db: apsw.Connection, where: UnitFilter) -> tuple[str, list[Any]]:
    """A condition that spares reading the units of other days, if the days are few."""
    values = [where.said_from, where.said_before]
    if None in values:
        return "", []
    days = "SELECT unit_id FROM units WHERE said_at >= ? AND said_at < ?"
    count = db.execute(
        f"SELECT COUNT(*) FROM ({days} LIMIT ?)", (*values, _FEW_UNITS + 1)
    ).get
    if count > _FEW_UNITS:
        return "", []
    return f"AND +words.rowid IN ({days})", values


def find_all_words(
    db: apsw.Connection, words: Iterable[Sequence[str]], where: UnitFilter, limit: int
) -> list[int]:
    every = " AND ".join(f"({any_of([spellings])})" for spellings in words)
    condition, values = where_clause(where)
    rows = db.execute(
        f"""
        SELECT units.unit_id
          FROM words JOIN units ON units.unit_id = words.rowid
         WHERE words MATCH ? AND {condition}
         ORDER BY units.said_at DESC, units.unit_id DESC
         LIMIT ?
        """,
        (f"text : ({every})", *values, limit),
    )
    return [unit_id for (unit_id,) in rows]


def score_words(
    db: apsw.Connection, words: Words, unit_ids: Collection[int]
) -> dict[int, float]:
    # The plus sign: otherwise the whole query is prepared anew for each of the numbers.
    rows = db.execute(
        f"""
        SELECT rowid, {_BM25} FROM words
         WHERE words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))
        """,
        (any_of(words.needed + words.helpful), to_json(unit_ids)),
    )
    return {unit_id: -cost for unit_id, cost in rows}


def has_scores(db: apsw.Connection) -> bool:
    """Whether matches of some words have a score, as all should."""
    terms = [term for (term,) in db.execute("SELECT term FROM word_counts LIMIT 9")]
    if not terms:
        return True
    rows = db.execute(
        f"SELECT {_BM25} FROM words WHERE words MATCH ? LIMIT 9", (any_of([terms]),)
    )
    return all(isinstance(cost, float) for (cost,) in rows)


def match_expression(words: Words) -> str:
    """An expression that finds what has any needed word and rewards every other one.

    ``(a OR b) AND (a OR b OR c)``: units without a or b are not even looked at. The
    needed words count twice in the order, which is why scores are taken separately.
    """
    needed = any_of(words.needed)
    if not words.helpful:
        return needed
    return f"({needed}) AND ({needed} OR {any_of(words.helpful)})"


def any_of(words: Iterable[Sequence[str]]) -> str:
    """Quote every spelling, so that no character a user types is FTS5 syntax."""
    return " OR ".join(
        '"' + spelling.replace('"', '""') + '"'
        for spellings in words
        for spelling in spellings
    )


def count_word(db: apsw.Connection, word: str) -> int:
    """In how many units a word occurs that is spelt as the index spells it."""
    count: int | None = db.execute(
        "SELECT doc FROM word_counts WHERE term = ?", (word,)
    ).get
    return count or 0


def find_all_at(
    db: apsw.Connection, places: Iterable[int], condition: str, values: list[Any]
) -> list[Any]:
    """The units whose texts lie there, and when they were said, if they fit."""
    return db.execute(
        f"""
        SELECT DISTINCT units.unit_id, units.said_at
          FROM json_each(?) AS places
          JOIN units ON units.unit_id = (SELECT unit_id FROM units
                                          WHERE text_at <= places.value
                                          ORDER BY text_at DESC LIMIT 1)
         WHERE places.value < units.text_at + units.text_bytes AND {condition}
        """,
        (to_json(places), *values),
    ).fetchall()


def list_places(
    db: apsw.Connection, unit_ids: Collection[int]
) -> Iterable[tuple[int, int, int]]:
    """Number, place and length of given units."""
    # Any: SQLite rows carry no types; the schema does.
    rows: Any = db.execute(
        """
        SELECT unit_id, text_at, text_bytes FROM units
         WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return rows  # type: ignore[no-any-return]


def newest_places(
    db: apsw.Connection, condition: str, values: list[Any]
) -> Iterable[tuple[int, int, int]]:
    """Number, place and length of the units that fit, the newest first."""
    return db.execute(
        f"""
        SELECT unit_id, text_at, text_bytes FROM units
         WHERE {condition}
         ORDER BY said_at DESC, unit_id DESC
        """,
        values,
    )


def get_units(db: apsw.Connection, unit_ids: Collection[int]) -> dict[int, Unit]:
    rows = db.execute(
        """
        SELECT unit_id, kind, source_id, position, said_at, text_bytes FROM units
         WHERE unit_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(unit_ids),),
    )
    return {
        unit_id: Unit(
            unit_id, UnitKind(kind), source_id, position, _to_time(said_at), size
        )
        for unit_id, kind, source_id, position, said_at, size in rows
    }


# Any: SQLite rows carry no types; in a damaged row it is not what the schema says.
def _to_time(said_at: Any) -> int | None:
    """A time as it was filed. Raises ``ValueError`` for what can be none."""
    if said_at is None:
        return None
    if not isinstance(said_at, int) or not _FIRST_TIME <= said_at <= _LAST_TIME:
        raise ValueError(f"{said_at!r} is no time")
    return said_at


def read_notes_and_tables(db: apsw.Connection) -> None:
    """Read what is quickly read: all notes, a row of every table, the end of times.

    Raises what Python says of texts and times that are none.
    """
    for table in ("units", "words", "chunks", "index_state", "vector_pages"):
        db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall()
    for columns in ("heading, text FROM notes", "name, value FROM state"):
        for _ in db.execute(f"SELECT {columns}"):
            pass
    for end in ("MIN", "MAX"):
        _to_time(db.execute(f"SELECT {end}(said_at) FROM units").get)


def read_all_texts(db: apsw.Connection) -> None:
    """Read every text and time. Raises what Python says of those that are none."""
    read_notes_and_tables(db)
    for _ in db.execute("SELECT text FROM chunks"):
        pass
    for (said_at,) in db.execute("SELECT said_at FROM units"):
        _to_time(said_at)


def list_notes(
    db: apsw.Connection, condition: str, values: list[Any]
) -> dict[int, str]:
    """The texts of the parts of files that fit."""
    rows = db.execute(
        f"SELECT unit_id, text FROM notes JOIN units USING (unit_id) WHERE {condition}",
        values,
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


def find_chunk(db: apsw.Connection, source_id: int, position: int) -> Chunk | None:
    row = db.execute(
        """
        SELECT chunk_id, source_id, first_position, last_position, token_count, text
          FROM chunks
         WHERE source_id = ? AND first_position <= ?
         ORDER BY first_position DESC LIMIT 1
        """,
        (source_id, position),
    ).fetchone()
    return None if row is None else Chunk(*row)


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


def list_to_embed(db: apsw.Connection, limit: int, skip: int) -> list[ToEmbed]:
    rows = db.execute(
        """
        SELECT unit_id, meaning_hash FROM units
         WHERE meaning_hash IS NOT NULL AND embedding_id IS NULL
         ORDER BY said_at DESC LIMIT ? OFFSET ?
        """,
        (limit, skip),
    )
    return [ToEmbed(*row) for row in rows]


def list_wanting(db: apsw.Connection, unit_ids: Collection[int]) -> dict[int, bytes]:
    """Of what each of these units wants a vector, if it has none."""
    rows = db.execute(
        """
        SELECT unit_id, meaning_hash FROM units
         WHERE unit_id IN (SELECT value FROM json_each(?))
           AND meaning_hash IS NOT NULL AND embedding_id IS NULL
        """,
        (to_json(unit_ids),),
    )
    return to_dict(rows)


def count_units(db: apsw.Connection) -> IndexCounts:
    return IndexCounts(
        *db.execute(
            "SELECT COUNT(*), COUNT(meaning_hash), COUNT(embedding_id) FROM units"
        ).get
    )


def count_unknown_kinds(db: apsw.Connection) -> int:
    known = ", ".join(str(int(kind)) for kind in UnitKind)
    count: int = db.execute(
        f"SELECT COUNT(*) FROM units WHERE kind NOT IN ({known})"
    ).get
    return count


def list_orphans(db: apsw.Connection, hashes: Iterable[bytes]) -> list[bytes]:
    """The hashes that no unit has any more."""
    wanted = set(hashes)
    rows = db.execute(
        """
        SELECT DISTINCT meaning_hash FROM units
         WHERE meaning_hash IN (SELECT unhex(value) FROM json_each(?))
        """,
        (to_json(each.hex() for each in wanted),),
    )
    return sorted(wanted - {key for (key,) in rows})
