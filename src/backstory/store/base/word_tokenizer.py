"""A tokenizer that all threads of a process can use."""

import threading

import apsw

from backstory.store.base.tokens import make_tokenizer, tokenize
from backstory.system.fork_safety import block_forks, reset_in_child


class WordTokenizer:
    """Splits texts into words, in any thread."""

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
                # On a connection of its own, which no other thread closes.
                local.tokenizer = make_tokenizer(apsw.Connection(":memory:"))
            return tokenize(local.tokenizer, text)
