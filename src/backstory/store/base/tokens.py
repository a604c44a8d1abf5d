"""Cut texts into the words that an index has: the same ones, whatever the database.

FTS5 does it for SQLite; other databases borrow its tokenizer, so that the same words
are found and ranked the same way everywhere.
"""

import threading

import apsw

from backstory.system.fork_safety import block_forks, reset_in_child


class WordTokenizer:
    """Cuts texts into words, in any thread."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._local = threading.local()

    def tokenize(self, text: str) -> list[str]:
        """The words of a text as the index has them."""
        local = self._local
        with block_forks():
            if not hasattr(local, "tokenizer"):
                # From a connection of its own, which no other thread closes.
                local.tokenizer = make_tokenizer(apsw.Connection(":memory:"))
            return tokenize(local.tokenizer, text)


def make_tokenizer(db: apsw.Connection) -> apsw.FTS5Tokenizer:
    """The tokenizer of all indexes, which is used through a connection."""
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
