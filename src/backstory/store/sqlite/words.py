"""The table ``words``: full-text search over the words of units and around them."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import apsw

from backstory.store.base.index import UnitFilter, Words
from backstory.store.base.word_tokenizer import WordTokenizer
from backstory.store.sqlite.index_connection import IndexConnection
from backstory.store.sqlite.match import (
    BM25,
    any_of,
    keep_fitting,
    match_any,
    match_expression,
    match_fitting,
    quote,
    score_matches,
)
from backstory.store.sqlite.rows import to_dict, to_json
from backstory.store.sqlite.unit_counts import UNITS, get_count
from backstory.store.sqlite.unit_filter import Clause, to_clause
from backstory.values.units import UnitKind, is_note

# If the wanted days have at most this many units, these are listed before words are
# matched.
_FEW_UNITS = 20_000
# Counts of rarer words are not cached: they are quick to make and soon outdated.
_FREQUENT = 2_000
_MAX_REMEMBERED = 10_000


class WordSearch:
    """Finds units by their words."""

    def __init__(self, connection: IndexConnection) -> None:
        self._connection = connection
        self._counted: tuple[int, dict[str, int]] = (0, {})
        self._tokenizer = WordTokenizer()

    def match(
        self, words: Words, where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        if not words.needed or not where.kinds:
            return []
        with self._connection.reading() as db:
            return match_words(db, words, where, limit)

    def find_all(
        self, words: Sequence[tuple[str, ...]], where: UnitFilter, limit: int
    ) -> list[int]:
        if not words or not where.kinds:
            return []
        with self._connection.reading() as db:
            return find_all_words(db, words, where, limit)

    def having(
        self, words: Sequence[tuple[str, ...]], unit_ids: Collection[int]
    ) -> list[int]:
        if not words or not unit_ids:
            return []
        with self._connection.reading() as db:
            return list_having_words(db, words, unit_ids)

    def score(self, words: Words, unit_ids: Collection[int]) -> dict[int, float]:
        if not words.needed or not unit_ids:
            return {}
        with self._connection.reading() as db:
            return score_words(db, words, unit_ids)

    def count_units(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        with self._connection.reading() as db:
            counts = self._count_spellings(db, set(chain.from_iterable(words)))
        return [sum(counts[each] for each in spellings) for spellings in words]

    def _count_spellings(
        self, db: apsw.Connection, spellings: Collection[str]
    ) -> dict[str, int]:
        """The largest number of units that can have each spelling's words in a row."""
        # Counts of frequent words are slow to make and change little.
        size = get_count(db, UNITS).bit_length()
        if self._counted[0] != size or len(self._counted[1]) > _MAX_REMEMBERED:
            self._counted = (size, {})
        counted = self._counted[1]
        tokens = {
            each: self.tokenize(each) for each in spellings if each not in counted
        }
        found = count_words(db, set(chain.from_iterable(tokens.values())))
        counts = {
            spelling: min((found.get(each, 0) for each in some), default=0)
            for spelling, some in tokens.items()
        }
        counted |= {each: count for each, count in counts.items() if count >= _FREQUENT}
        return {each: counts.get(each) or counted.get(each, 0) for each in spellings}

    def tokenize(self, text: str) -> list[str]:
        return self._tokenizer.tokenize(text)


# -- writing --------------------------------------------------------------------------


def insert_words(db: apsw.Connection, rows: Sequence[tuple[int, str, str]]) -> None:
    """Store the words of units: number, words of the text, words around it."""
    db.executemany("INSERT INTO words (rowid, text, around) VALUES (?, ?, ?)", rows)


def delete_words(db: apsw.Connection, unit_ids: Iterable[int]) -> None:
    db.executemany(
        "DELETE FROM words WHERE rowid = ?", [(unit_id,) for unit_id in unit_ids]
    )


def merge_words(db: apsw.Connection) -> None:
    """Rewrite all words, without those of deleted units."""
    db.execute("INSERT INTO words (words) VALUES ('optimize')")


# -- reading --------------------------------------------------------------------------


def match_words(
    db: apsw.Connection, words: Words, where: UnitFilter, limit: int
) -> list[tuple[int, float]]:
    expression = match_expression(words.needed, words.helpful)
    if not where.has_conditions:
        best = match_any(db, expression, limit=limit + len(where.without))
        return [match for match in best if match[0] not in where.without][:limit]
    fitting_only = to_clause(where)
    is_any_time = where.said_from is None and where.said_before is None
    if is_any_time and where.containers is None:
        # If too few of the best matches fit, all of them are read after all.
        tried = limit * (2 if UnitKind.OTHER in where.kinds else 6)
        best = match_any(db, expression, limit=tried)
        found = _drop_unwanted(db, best, where, fitting_only)
        if len(found) >= limit or len(best) < tried:
            return found[:limit]
    days = _days_clause(db, where)
    return match_fitting(
        db,
        expression,
        f"{days.sql} AND {fitting_only.sql}",
        (*days.values, *fitting_only.values),
        limit=limit,
    )


def _drop_unwanted(
    db: apsw.Connection,
    matches: Sequence[tuple[int, float]],
    where: UnitFilter,
    clause: Clause,
) -> list[tuple[int, float]]:
    """The matches that fit a filter.

    If it leaves out only notes, the numbers of units tell which are notes.
    """
    if where.leaves_out_only_notes:
        notes = [match for match in matches if is_note(match[0])]
        fitting = keep_fitting(db, notes, clause.sql, clause.values) if notes else []
        left_out = {unit_id for unit_id, _ in notes} - {each for each, _ in fitting}
        left_out |= where.without
        return [match for match in matches if match[0] not in left_out]
    return keep_fitting(db, matches, clause.sql, clause.values)


def _days_clause(db: apsw.Connection, where: UnitFilter) -> Clause:
    """A condition that avoids reading units of other days, if these have few."""
    values = list(where.widest_bounds())
    if None in values:
        return Clause("", [])
    days = "SELECT unit_id FROM units WHERE said_at >= ? AND said_at < ?"
    count = db.execute(
        f"SELECT COUNT(*) FROM ({days} LIMIT ?)", (*values, _FEW_UNITS + 1)
    ).get
    if count > _FEW_UNITS:
        return Clause("", [])
    return Clause(f"AND +words.rowid IN ({days})", values)


def find_all_words(
    db: apsw.Connection, words: Iterable[Sequence[str]], where: UnitFilter, limit: int
) -> list[int]:
    every = " AND ".join(f"({any_of([spellings])})" for spellings in words)
    clause = to_clause(where)
    rows = db.execute(
        f"""
        SELECT units.unit_id
          FROM words JOIN units ON units.unit_id = words.rowid
         WHERE words MATCH ? AND {clause.sql}
         ORDER BY units.said_at DESC, units.unit_id DESC
         LIMIT ?
        """,
        (f"text : ({every})", *clause.values, limit),
    )
    return [unit_id for (unit_id,) in rows]


def find_with_words(db: apsw.Connection, words: Iterable[str], limit: int) -> list[int]:
    """Some units whose own text has all of the words."""
    rows = db.execute(
        "SELECT rowid FROM words WHERE words MATCH ? LIMIT ?",
        (f"text : ({' AND '.join(map(quote, words))})", limit),
    )
    return [unit_id for (unit_id,) in rows]


def list_having_words(
    db: apsw.Connection, words: Iterable[Sequence[str]], unit_ids: Collection[int]
) -> list[int]:
    every = " AND ".join(
        "(" + " OR ".join(f"({_all_of(each)})" for each in spellings) + ")"
        for spellings in words
    )
    # As in ``score_words``, the plus sign makes the query run only once.
    rows = db.execute(
        """
        SELECT rowid FROM words
         WHERE words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))
        """,
        (f"text : ({every})", to_json(unit_ids)),
    )
    return [unit_id for (unit_id,) in rows]


def _all_of(spelling: str) -> str:
    return " AND ".join(map(quote, spelling.split() or [""]))


def score_words(
    db: apsw.Connection, words: Words, unit_ids: Collection[int]
) -> dict[int, float]:
    return score_matches(db, any_of(words.needed + words.helpful), unit_ids)


def count_units_and_words(db: apsw.Connection) -> tuple[int, int, int]:
    """How many units there are, how many without words, and how many have words."""
    units, without_words, with_words = db.execute(
        """
        SELECT (SELECT COUNT(*) FROM units),
               (SELECT COUNT(*) FROM units
                 WHERE unit_id NOT IN (SELECT id FROM words_docsize)),
               (SELECT COUNT(*) FROM words_docsize)
        """
    ).get
    return units, without_words, with_words


def count_words(db: apsw.Connection, tokens: Collection[str]) -> dict[str, int]:
    """In how many units each token occurs; those that no unit has are left out."""
    rows = db.execute(
        """
        SELECT term, doc FROM word_counts
         WHERE term IN (SELECT value FROM json_each(?))
        """,
        (to_json(tokens),),
    )
    return to_dict(rows)


def has_scores(db: apsw.Connection) -> bool:
    """Whether matches have scores, as they all should; checks only a few words."""
    terms = [term for (term,) in db.execute("SELECT term FROM word_counts LIMIT 9")]
    if not terms:
        return True
    rows = db.execute(
        f"SELECT {BM25} FROM words WHERE words MATCH ? LIMIT 9", (any_of([terms]),)
    )
    return all(isinstance(cost, float) for (cost,) in rows)
