"""The vectors of queries: each is made once, within a time limit.

A server may hang, or may first have to load its model. The search then goes on without
a vector, but the request continues: a server that loads a model for nobody may stop.
"""

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from backstory.errors import ConfigError, ProviderError, ProviderUnavailable
from backstory.providers.embedders.base import Embedder
from backstory.system.fork_safety import reset_in_child
from backstory.system.threads import DaemonThreadPool, Future

if TYPE_CHECKING:
    from backstory.providers.embedders.base import Vector

# How long the embedder is not asked again after a failure.
_REST_S = 30.0
# How many vectors are kept, for searches that run at the same time.
_MAX_VECTORS = 16
# How many requests may continue without a search that waits for them.
_THREADS = 4
# How long closing waits for a model in this process, whose threads must end first.
_END_WAIT_S = 1.0


class QueryVectors:
    """Has vectors of queries made; after a failure, none for a while.

    They are made in other threads, while a search does what needs no vector. Without a
    ``timeout_s``, the search waits as long as it takes: a model in this process is sure
    to make progress.
    """

    _lock: threading.Lock
    _threads: DaemonThreadPool

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._failed: tuple[float, str] | None = None
        # By embedder and text; newest last.
        self._vectors: dict[tuple[str, str], Vector] = {}
        self.reset_after_fork()
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._threads = DaemonThreadPool(_THREADS, "backstory-query-vector")

    def close(self) -> None:
        self._threads.shutdown(wait_s=_END_WAIT_S if self._timeout_s is None else 0)

    def find_failure(self) -> str | None:
        """Why the embedder is not asked at the moment; None if it is."""
        failed = self._failed
        if failed is None:
            return None
        failed_at, reason = failed
        return reason if time.monotonic() - failed_at < _REST_S else None

    def rest(self, reason: str) -> None:
        """Do not ask the embedder for a while, or until a running request ends."""
        self._failed = (time.monotonic(), reason)

    def start(self, embedder: Embedder, text: str) -> "Future[Vector]":
        """Have the query's vector made; a search needs it once per round."""
        vector = self._find(embedder, text)
        if vector is None:
            return self._threads.submit(partial(self._make, embedder, text))
        known: Future[Vector] = Future()
        known.set_result(vector)
        return known

    def finish(self, making: "Future[Vector]") -> "Vector":
        """Wait for a vector. Raises ``ProviderError`` or ``ConfigError``."""
        try:
            return self._wait_for(making)
        except (ProviderError, ConfigError) as exc:
            self.rest(str(exc))
            raise

    def _wait_for(self, making: "Future[Vector]") -> "Vector":
        making.wait(self._timeout_s)
        if not making.done():
            raise ProviderUnavailable(
                f"the embedder gave no answer within {self._timeout_s:.3g} seconds "
                "(embedder.query_timeout_seconds)"
            )
        return making.result()

    def _find(self, embedder: Embedder, text: str) -> "Vector | None":
        key = (embedder.fingerprint, text)
        with self._lock:
            vector = self._vectors.pop(key, None)
            if vector is not None:
                self._vectors[key] = vector
        return vector

    def _make(self, embedder: Embedder, text: str) -> "Vector":
        vector = embedder.embed_query(text)
        with self._lock:
            self._vectors[embedder.fingerprint, text] = vector
            while len(self._vectors) > _MAX_VECTORS:
                del self._vectors[next(iter(self._vectors))]
        self._failed = None
        return vector
