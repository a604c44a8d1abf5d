"""A full-text index in memory, for the passages of one run.

Adding a passage takes time in proportion to its length, however many there are: FTS5
writes it as a segment of its own and merges segments gradually.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import apsw
import orjson

from backstory.store.base.run_index import Match
from backstory.store.sqlite.match import any_of
from backstory.store.sqlite.rows import to_json
from backstory.system.fork_safety import block_forks
from backstory.text.words import index_words, phrase_words

# What a passage is about, such as a tool's name and arguments, counts less than its
# text.
_TEXT_WEIGHT = 1.0
_ABOUT_WEIGHT = 0.4


class SqliteRunIndex:
    """A ``RunIndex`` in a database in memory."""

    def __init__(self) -> None:
        with block_forks():
            self._db = apsw.Connection(":memory:")
            self._db.execute(
                """
                CREATE VIRTUAL TABLE passages USING fts5 (
                    text, about,
                    content = '', contentless_delete = 1,
                    tokenize = 'porter unicode61 remove_diacritics 2'
                )
                """
            )
            self._db.register_fts5_function("occurrences", _occurrences)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        with block_forks():
            self._db.close()

    def add(self, passages: Iterable[tuple[int, str]], count: int, about: str) -> None:
        words = index_words(about)
        # One by one, because all words of a long text at once would take more memory
        # than the index itself.
        rows = ((number, index_words(text), words) for number, text in passages)
        with block_forks(), self._db:
            self._db.executemany(
                "INSERT INTO passages (rowid, text, about) VALUES (?, ?, ?)", rows
            )
        self._count += count

    def remove(self, passage_ids: Sequence[int]) -> None:
        with block_forks(), self._db:
            self._db.executemany(
                "DELETE FROM passages WHERE rowid = ?",
                [(passage_id,) for passage_id in passage_ids],
            )
        self._count -= len(passage_ids)

    def rank(self, terms: Sequence[Sequence[str]], limit: int) -> list[int]:
        return self._rank(any_of(terms), limit)

    def rank_phrase(self, phrase: str, limit: int) -> list[int]:
        return self._rank(f"text : ({any_of([[phrase_words(phrase)]])})", limit)

    def _rank(self, wanted: str, limit: int) -> list[int]:
        rows = self._query(
            f"""
            SELECT rowid FROM passages WHERE passages MATCH ?
             ORDER BY bm25(passages, {_TEXT_WEIGHT}, {_ABOUT_WEIGHT}), rowid DESC
             LIMIT ?
            """,
            wanted,
            limit,
        )
        return [number for (number,) in rows]

    def match(
        self, terms: Sequence[Sequence[str]], passage_ids: Iterable[int]
    ) -> list[Match]:
        # In a separate query, because otherwise the function would run for every match.
        rows = self._query(
            """
            SELECT rowid, occurrences(passages) FROM passages
             WHERE passages MATCH ? AND +rowid IN (SELECT value FROM json_each(?))
            """,
            any_of(terms),
            to_json(passage_ids),
        )
        sizes = [len(spellings) for spellings in terms]
        return [_to_match(number, found, sizes) for number, found in rows]

    def count(self, spellings: Sequence[str]) -> int:
        rows = self._query(
            "SELECT count(*) FROM passages WHERE passages MATCH ?", any_of([spellings])
        )
        return int(rows[0][0])

    # Any: SQLite rows carry no types; the schema does.
    def _query(self, sql: str, *values: object) -> list[Any]:
        with block_forks():
            return self._db.execute(sql, values).fetchall()


def _occurrences(api: apsw.FTS5ExtensionApi, *_: object) -> bytes:
    """How often a row has each phrase of the query, and how long it is."""
    counts = []
    for phrase in range(api.phrase_count):
        text, about = api.phrase_locations(phrase)
        counts.append(len(text) * _TEXT_WEIGHT + len(about) * _ABOUT_WEIGHT)
    mean_length = api.column_total_size(0) / max(1, api.row_count)
    length = api.column_size(0) / mean_length if mean_length else 0.0
    return orjson.dumps([counts, length])


def _to_match(number: int, found: bytes, sizes: Sequence[int]) -> Match:
    """Count a term by its most frequent spelling."""
    counts, length = orjson.loads(found)
    each = iter(counts)
    by_term = [max(islice(each, size), default=0.0) for size in sizes]
    return Match(number, by_term, length)
