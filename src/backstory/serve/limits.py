"""How much a server takes: requests of a tenant per minute and at once."""

import time
from collections.abc import Callable
from threading import Lock

from backstory.values.structs import FrozenStruct, Struct

_MINUTE_S = 60.0
# The number of tenants whose latest requests are counted.
_MAX_TENANTS = 10_000


class ServeLimits(FrozenStruct):
    """How much a server takes, of one tenant and of all of them."""

    requests_per_minute: int = 600
    requests_at_once: int = 16
    open_memories: int = 100
    idle_s: float = 600.0
    threads: int = 8


class _Bucket(Struct):
    """How many requests are left, as of a time."""

    left: float
    at: float
    in_flight: int = 0


class RequestLimits:
    """Counts what each tenant asks for in this process.

    ``per_minute`` requests may also come all at once, after a quiet minute; 0 means no
    limit.
    """

    def __init__(
        self,
        per_minute: int,
        at_once: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = per_minute
        self._at_once = at_once
        self._clock = clock
        self._lock = Lock()
        self._buckets: dict[str, _Bucket] = {}

    def begin(self, tenant: str) -> float | None:
        """Count a request; returns how many seconds to wait if it is refused."""
        now = self._clock()
        with self._lock:
            bucket = self._find(tenant, now)
            if bucket.in_flight >= self._at_once:
                return 1.0
            if self._per_minute:
                if bucket.left < 1:
                    return (1 - bucket.left) * _MINUTE_S / self._per_minute
                bucket.left -= 1
            bucket.in_flight += 1
            return None

    def end(self, tenant: str) -> None:
        """Note that a request that was let through is done."""
        with self._lock:
            if bucket := self._buckets.get(tenant):
                bucket.in_flight -= 1

    def _find(self, tenant: str, now: float) -> _Bucket:
        most = float(self._per_minute)
        bucket = self._buckets.get(tenant)
        if bucket is None:
            self._forget_quiet(now)
            bucket = self._buckets[tenant] = _Bucket(most, now)
        gained = (now - bucket.at) * self._per_minute / _MINUTE_S
        bucket.left, bucket.at = min(most, bucket.left + gained), now
        return bucket

    def _forget_quiet(self, now: float) -> None:
        """Forget tenants that have not asked for anything in the last minute."""
        if len(self._buckets) < _MAX_TENANTS:
            return
        self._buckets = {
            tenant: bucket
            for tenant, bucket in self._buckets.items()
            if bucket.in_flight or now - bucket.at < _MINUTE_S
        }
