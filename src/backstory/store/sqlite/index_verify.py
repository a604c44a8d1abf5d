"""Check everything that must hold in the tables of index.db."""

import apsw

from backstory.store.sqlite import units, words
from backstory.store.sqlite.indexed_containers import list_files
from backstory.store.sqlite.unit_counts import UNITS, UNITS_WITH_MEANING, get_count


def verify_tables(db: apsw.Connection) -> list[str]:
    """Check all tables. Raises whatever Python raises for a bad row."""
    # Reading every row is a check in itself.
    list_files(db)
    units.read_all_texts(db)
    return [
        *_verify_sqlite(db),
        *_verify_kinds(db),
        *_verify_words(db),
        *_verify_meanings(db),
    ]


def _verify_sqlite(db: apsw.Connection) -> list[str]:
    found = [
        f"integrity check: {row[0]}"
        for row in db.execute("PRAGMA integrity_check")
        if row[0] != "ok"
    ]
    try:
        # SQLite treats this check as a write; the caller's savepoint undoes it.
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    except apsw.CorruptError as exc:
        found.append(f"the table of words is damaged: {exc}")
    return found


def _verify_kinds(db: apsw.Connection) -> list[str]:
    unknown = units.count_unknown_kinds(db)
    return [f"{unknown} units have an unknown kind"] if unknown else []


def _verify_words(db: apsw.Connection) -> list[str]:
    found = []
    if not words.has_scores(db):
        found.append("words cannot be scored: the sizes of texts are damaged")
    stored, without_words, with_words = words.count_units_and_words(db)
    if without_words:
        found.append(f"{without_words} units have no words")
    if with_words != stored - without_words:
        found.append(f"there are words of {with_words} units, but {stored} units")
    counted = get_count(db, UNITS)
    if counted != stored:
        found.append(f"{counted} units are counted, but there are {stored}")
    return found


def _verify_meanings(db: apsw.Connection) -> list[str]:
    counted, stored = get_count(db, UNITS_WITH_MEANING), units.count_with_meaning(db)
    if counted == stored:
        return []
    return [f"{counted} units with a meaning are counted, but there are {stored}"]
