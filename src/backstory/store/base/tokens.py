"""Split texts into the words that an index has, the same in every database.

FTS5 does this for SQLite; other databases borrow its tokenizer, so that the same words
are found and ranked the same way everywhere. Hooks use this as well, so it imports
little.
"""

import apsw


def make_tokenizer(db: apsw.Connection) -> apsw.FTS5Tokenizer:
    """The tokenizer of all indexes, which works through a connection."""
    return db.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])


def tokenize(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    """The words of a text as the index has them."""
    found: list[str] = tokenizer(  # type: ignore[assignment]
        text.encode("utf-8", errors="replace"),
        apsw.FTS5_TOKENIZE_QUERY,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return list(found)
