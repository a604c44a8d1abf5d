"""Which parts of a search in an index a second thread may take over.

In a large index, SQLite, numpy and the search in texts take milliseconds, in which they
do not need Python. In a small one, handing over to another thread takes longer.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from backstory.store.base.index import BY_MEANING, BY_TEXT
from backstory.store.sqlite.connection import LARGE_BYTES
from backstory.system.fork_safety import reset_in_child

# The size of an index of some 40,000 messages.
_NOT_SMALL_BYTES = 20_000_000


class SecondReader:
    """A ``LentView`` for one search at a time; others would only share its core."""

    def __init__(self, path: Path, cores: int) -> None:
        self._path = path
        self._cores = cores
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child."""
        self._busy = threading.Lock()

    @property
    def beside(self) -> frozenset[str]:
        try:
            size = self._path.stat().st_size
        except OSError:
            return frozenset()  # reading it will tell
        if self._cores == 1 or size < _NOT_SMALL_BYTES:
            return frozenset()
        return frozenset({BY_TEXT, BY_MEANING} if size > LARGE_BYTES else {BY_TEXT})

    def using(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def using_spare(self) -> Iterator[bool]:
        is_free = self._busy.acquire(blocking=False)
        try:
            yield is_free
        finally:
            if is_free:
                self._busy.release()
