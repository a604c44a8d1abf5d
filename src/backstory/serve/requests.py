"""Limit the size and the time of a request, and count what it takes."""

import asyncio
import secrets
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from backstory.web.api import OPERATIONS

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

# How long a client may take to send a request, from its first byte to its last.
BODY_S = 60.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
_OTHER = "other"
# For a year, browsers do not even try without TLS.
_HSTS = "max-age=31536000"
_PAGES = frozenset(
    [
        "forget",
        "health",
        "logs",
        "mcp",
        "memory",
        "metrics",
        "prompt",
        "ready",
        "session",
        "sessions",
        "sign-in",
        "sign-out",
        "static",
    ]
)
_OPERATIONS = frozenset(each.path.split("/")[1] for each in OPERATIONS) | {"push"}


def find_route(path: str) -> str:
    """What a path asks for, in one of a few words: without ids or anything typed."""
    first, *rest = path.removeprefix("/").split("/")
    if first == "api":
        second = rest[0] if rest else ""
        return f"/api/{second}" if second in _OPERATIONS else _OTHER
    if first in _PAGES:
        return f"/{first}"
    return "/" if path == "/" else _OTHER


class CountedRequest:
    """Passes a request on and counts what comes and goes.

    ``most_bytes`` limits the size of the request. One that exceeds it, or takes too
    long, is refused where it is read.
    """

    def __init__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        self.headers = Headers(scope=scope)
        self.path: str = scope["path"]
        self.route = find_route(self.path)
        method: str = scope["method"]
        self.method = method if method in _METHODS else _OTHER
        self.request_id = secrets.token_hex(8)
        self.most_bytes = 0
        self.status = 0
        self.token_id: int | None = None
        self.received = self.sent = 0
        self._is_encrypted = scope["scheme"] == "https"
        self._receive = receive
        self._send = send
        self._began = time.monotonic()
        self._is_whole = False

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._began

    def is_too_large(self) -> bool:
        """Whether the request itself says so; if it does not, bytes are counted."""
        said = self.headers.get("content-length", "")
        return said.isdecimal() and int(said[:20]) > self.most_bytes

    async def receive(self) -> "Message":
        if self._is_whole:
            # The application waits for the client to disconnect.
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, BODY_S - self.took_s)):
                message = await self._receive()
        except TimeoutError as exc:
            raise HTTPException(408) from exc
        self.received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self.received > self.most_bytes:
            raise HTTPException(413)
        return message

    async def send(self, message: "Message") -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            if self._is_encrypted:
                headers["Strict-Transport-Security"] = _HSTS
        self.sent += len(message.get("body", b""))
        await self._send(message)
