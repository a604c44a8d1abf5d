"""The table ``seen_notes``: on which day each note was first seen."""

from collections.abc import Iterable

from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.rows import to_columns
from backstory.values.notes import SeenNote


def list_seen_notes(db: Connection) -> dict[str, SeenNote]:
    rows = db.execute("SELECT key, day, text FROM seen_notes")
    return {row[0]: SeenNote(*row) for row in rows}


def replace_seen_notes(db: Connection, notes: Iterable[SeenNote]) -> None:
    # A statement may not change a row twice; the last one counts.
    last = {note.key: (note.key, note.day, note.text) for note in notes}
    db.execute(
        """
        INSERT INTO seen_notes (key, day, text)
        SELECT * FROM unnest(%s::text[], %s::date[], %s::text[])
            ON CONFLICT (tenant_id, key) DO UPDATE
           SET day = excluded.day, text = excluded.text
        """,
        to_columns(last.values(), 3),
    )
