"""The table ``seen_notes``: on which day each note was first seen."""

from collections.abc import Iterable

import apsw

from backstory.store.sqlite.rows import read_day
from backstory.values.notes import SeenNote


def list_seen_notes(db: apsw.Connection) -> dict[str, SeenNote]:
    rows = db.execute("SELECT key, day, text FROM seen_notes")
    return {
        key: SeenNote(key, on_day, text)
        for key, day, text in rows
        if (on_day := read_day(day)) is not None
    }


def replace_seen_notes(db: apsw.Connection, notes: Iterable[SeenNote]) -> None:
    db.executemany(
        """
        INSERT INTO seen_notes (key, day, text) VALUES (?1, ?2, ?3)
            ON CONFLICT (key) DO UPDATE SET day = ?2, text = ?3
        """,
        [(note.key, note.day.isoformat(), note.text) for note in notes],
    )
