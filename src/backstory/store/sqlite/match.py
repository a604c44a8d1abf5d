"""Statements of full-text search that hooks use as well; they import little."""

from collections.abc import Iterable, Sequence

import apsw

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A word around a message says less about it than a word in it.
_TEXT_WEIGHT = 1.0
_AROUND_WEIGHT = 0.6
BM25 = f"bm25(words, {_TEXT_WEIGHT}, {_AROUND_WEIGHT})"


def match_any(
    db: apsw.Connection, expression: str, *, limit: int
) -> list[tuple[int, float]]:
    """The best matches of any kind, with their scores."""
    # Any: SQLite rows carry no types; the schema does.
    rows: Any = db.execute(
        f"""
        SELECT rowid, {BM25} AS cost FROM words
         WHERE words MATCH ? ORDER BY cost, rowid DESC LIMIT ?
        """,
        (expression, limit),
    )
    return [(unit_id, -cost) for unit_id, cost in rows]


def keep_fitting(
    db: apsw.Connection,
    matches: Sequence[tuple[int, float]],
    fitting_sql: str,
    fitting_values: Sequence[object],
) -> list[tuple[int, float]]:
    """Those of some matches that fit a condition on ``units``, in the same order."""
    rows = db.execute(
        f"""
        SELECT unit_id FROM units
         WHERE unit_id IN (SELECT value FROM json_each(?)) AND {fitting_sql}
        """,
        (_to_json(unit_id for unit_id, _ in matches), *fitting_values),
    )
    fitting = {unit_id for (unit_id,) in rows}
    return [match for match in matches if match[0] in fitting]


def match_fitting(
    db: apsw.Connection,
    expression: str,
    fitting_sql: str,
    fitting_values: Sequence[object],
    *,
    limit: int,
) -> list[tuple[int, float]]:
    """The best matches that fit more conditions, however many do not."""
    rows: Any = db.execute(
        f"""
        SELECT words.rowid, {BM25} AS cost
          FROM words JOIN units ON units.unit_id = words.rowid
         WHERE words MATCH ? {fitting_sql}
         ORDER BY cost, words.rowid DESC
         LIMIT ?
        """,
        (expression, *fitting_values, limit),
    )
    return [(unit_id, -cost) for unit_id, cost in rows]


def score_matches(
    db: apsw.Connection, expression: str, unit_ids: Iterable[int]
) -> dict[int, float]:
    """The scores of those of these units that match."""
    # Without the plus sign, SQLite would run the whole query again for each number.
    rows: Any = db.execute(
        f"""
        SELECT rowid, {BM25} FROM words
         WHERE words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))
        """,
        (expression, _to_json(unit_ids)),
    )
    return {unit_id: -cost for unit_id, cost in rows}


def match_expression(
    needed: Sequence[tuple[str, ...]], helpful: Sequence[tuple[str, ...]]
) -> str:
    """An expression that matches any needed word, and ranks by all words.

    ``(a OR b) AND (a OR b OR c)``: units without a or b are not even scored. Needed
    words count twice in the ranking, so scores are computed separately.
    """
    any_needed = any_of(needed)
    if not helpful:
        return any_needed
    return f"({any_needed}) AND ({any_needed} OR {any_of(helpful)})"


def any_of(words: Iterable[Sequence[str]]) -> str:
    """An expression that matches any spelling of any of the words."""
    return " OR ".join(quote(each) for spellings in words for each in spellings)


def quote(spelling: str) -> str:
    """Quote a spelling, so that no character a user types is FTS5 syntax."""
    return '"' + spelling.replace('"', '""') + '"'


def _to_json(unit_ids: Iterable[int]) -> str:
    """A JSON list, made by hand because the module json is slow to import."""
    return f"[{','.join(map(str, unit_ids))}]"


def count_word(db: apsw.Connection, word: str) -> int:
    """In how many units a token occurs."""
    count: int | None = db.execute(
        "SELECT doc FROM word_counts WHERE term = ?", (word,)
    ).get
    return count or 0
