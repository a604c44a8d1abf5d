"""The vectors that were read last: each search reads hundreds, many of them again.

Reading one from the database takes several microseconds, because each is on a page of
its own, whose checksum is verified.
"""

import threading
from collections.abc import Collection, Mapping
from typing import ClassVar


class RecentVectors:
    """Vectors of one file by number, up to a size; the least recently used go first.

    They cannot be outdated: in a file with the same identity, a number always stands
    for the same vector.
    """

    # For each open file; some 26,000 vectors of the bundled model.
    max_bytes: ClassVar[int] = 40_000_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._identity = ""
        self.clear()

    def clear(self) -> None:
        with self._lock:
            # In order of use: the most recently used vector is last.
            self._vectors: dict[int, bytes] = {}
            self._size_bytes = 0

    def find(self, identity: str, embedding_ids: Collection[int]) -> dict[int, bytes]:
        """Those of these vectors that are kept here."""
        with self._lock:
            if identity != self._identity:
                return {}
            known = self._vectors
            found = {each: known.pop(each) for each in embedding_ids if each in known}
            known |= found
            return found

    def keep(self, identity: str, vectors: Mapping[int, bytes]) -> None:
        with self._lock:
            if identity != self._identity:
                self._identity, self._vectors, self._size_bytes = identity, {}, 0
            for embedding_id, vector in vectors.items():
                self._size_bytes -= len(self._vectors.pop(embedding_id, b""))
                self._vectors[embedding_id] = vector
                self._size_bytes += len(vector)
            if self._size_bytes > self.max_bytes:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        # A quarter at once, so that not every search lists all of them.
        for embedding_id in list(self._vectors):
            if self._size_bytes <= self.max_bytes * 3 // 4:
                break
            self._size_bytes -= len(self._vectors.pop(embedding_id))
