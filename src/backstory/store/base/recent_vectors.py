"""The vectors that were read last: a search reads hundreds, many of them again.

From the database each takes several microseconds, because it is on a page of its own
whose checksum is compared.
"""

import threading
from collections.abc import Collection, Mapping
from typing import ClassVar


class RecentVectors:
    """Vectors of one file by number, up to a size; what was not used for longest goes.

    They cannot be outdated: in a file with the same identity, a number always stands
    for the same vector.
    """

    # For each file that is open. Some 26,000 vectors of the bundled model.
    max_bytes: ClassVar[int] = 40_000_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._identity = ""
        self.clear()

    def clear(self) -> None:
        with self._lock:
            # The one that was used last comes last.
            self._vectors: dict[int, bytes] = {}
            self._size_bytes = 0

    def find(self, identity: str, embedding_ids: Collection[int]) -> dict[int, bytes]:
        """Those of these vectors that are known."""
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
