"""How many units an index has, and how many of them have vectors.

Counting all units would read all their pages, so the writer keeps two of the counts.
"""

import apsw

from backstory.store.base.index import IndexCounts
from backstory.store.sqlite import passages
from backstory.store.sqlite.index_state import get_state
from backstory.values.units import first_note_id

# Their names in the table ``state``.
UNITS = "units"
UNITS_WITH_MEANING = "units_with_meaning"


def count_units(db: apsw.Connection) -> IndexCounts:
    """All counts; a unit embedded passage by passage needs vectors twice."""
    count = get_count(db, UNITS)
    with_meaning = get_count(db, UNITS_WITH_MEANING)
    to_embed, not_messages = db.execute(
        """
        SELECT (SELECT COUNT(*) FROM units INDEXED BY units_to_embed
                 WHERE meaning_hash IS NOT NULL AND embedding_id IS NULL),
               (SELECT COUNT(*) FROM units WHERE unit_id >= ?)
        """,
        (first_note_id(),),
    ).get
    in_passages = passages.count_embedded(db)
    waiting = passages.count_waiting(db)
    return IndexCounts(
        count,
        with_meaning + in_passages + waiting,
        with_meaning - to_embed + in_passages,
        count - not_messages,
    )


def get_count(db: apsw.Connection, name: str) -> int:
    return int(get_state(db, name) or 0)
