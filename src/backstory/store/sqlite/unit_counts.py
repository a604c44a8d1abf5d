"""How many units an index has, and how many of them have vectors."""

import apsw

from backstory.store.base.index import IndexCounts
from backstory.store.sqlite import passages
from backstory.values.units import first_note_id


def count_units(db: apsw.Connection) -> IndexCounts:
    """All counts; what is embedded passage by passage is wanted once more."""
    count, with_meaning, embedded, messages = db.execute(
        """
        SELECT COUNT(*), COUNT(meaning_hash), COUNT(embedding_id),
               COUNT(*) FILTER (WHERE unit_id < ?)
          FROM units
        """,
        (first_note_id(),),
    ).get
    in_passages = passages.count_embedded(db)
    waiting = passages.count_waiting(db)
    return IndexCounts(
        count, with_meaning + in_passages + waiting, embedded + in_passages, messages
    )
