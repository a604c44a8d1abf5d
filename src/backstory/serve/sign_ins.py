"""Browsers that have signed in with a token: each has a cookie of its own.

The token is kept here in memory, so that a browser is signed out when its token is
revoked. When the server is started again, people sign in again.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from threading import Lock

from backstory.values.structs import FrozenStruct

# The prefix makes browsers refuse the cookie unless this very host set it, over TLS.
COOKIE = "__Host-backstory"
LASTS_S = 12 * 3600
_MOST = 10_000


class _SignIn(FrozenStruct):
    token: str
    ends_at: float


class SignIns:
    """Which cookie stands for which token. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        # By a hash, so that the time that a lookup takes reveals nothing about a
        # cookie.
        self._known: OrderedDict[bytes, _SignIn] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, token: str) -> str:
        """A new cookie for a browser that has shown a token."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            self._known[_hash(cookie)] = _SignIn(token, self._clock() + LASTS_S)
            # The oldest go first.
            while len(self._known) > _MOST or self._is_first_over():
                self._known.popitem(last=False)
        return cookie

    def _is_first_over(self) -> bool:
        return next(iter(self._known.values())).ends_at <= self._clock()

    def find_token(self, cookie: str) -> str | None:
        """The token that a cookie stands for; None if it is unknown or has expired."""
        found = self._known.get(_hash(cookie))
        if found is None or found.ends_at <= self._clock():
            return None
        return found.token

    def end(self, cookie: str) -> None:
        """Forget a cookie."""
        with self._lock:
            self._known.pop(_hash(cookie), None)


def _hash(cookie: str) -> bytes:
    return sha256(cookie.encode("utf-8", "replace")).digest()
