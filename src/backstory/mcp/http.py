"""Serve any program of this user over HTTP, on this machine only.

Clients need the token, which only this user can read. Requests that name another host,
or come from a page of another site, are refused, because a web page must not reach the
memory through the user's browser.
"""

import hmac
import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from backstory.errors import ConfigError, StoreUnwritable
from backstory.mcp.server import McpServer
from backstory.system.loopback import OwnNames, port_of, serve_until_ended

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_NAME = "mcp-token"
PATH = "/mcp"


def read_token(home: Path) -> tuple[str, bool]:
    """The token of a home, and whether it was made just now.

    Raises ``StoreUnwritable`` if it cannot be kept, ``ConfigError`` if it is empty.
    """
    path = home / TOKEN_NAME
    try:
        with open(path, "x", opener=_open_private) as file:
            made = secrets.token_urlsafe(32)
            file.write(f"{made}\n")
            return made, True
    except FileExistsError:
        kept = path.read_text(encoding="utf-8").strip()
    except OSError as exc:
        raise StoreUnwritable(f"{path}: {exc.strerror}", path=path) from exc
    if not kept:
        raise ConfigError(f"{path}: it is empty", hint="delete it; a new one is made")
    return kept, False


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def build_app(server: McpServer, token: str, port: int) -> "ASGIApp":
    """The application that answers HTTP requests for a server."""
    return _Guard(build_open_app(server), token, port)


def build_open_app(server: McpServer) -> Starlette:
    """The same application, for clients whose access was checked elsewhere.

    Answers are streams, in which progress is reported first. When the process is told
    to end, a stream may go on for as long as other requests may.
    """
    # Otherwise, the library that writes streams would cut them off at once, empty.
    AppStatus.enable_automatic_graceful_drain = False
    # The SDK's own check of host names is off, because ours comes before everything
    # else.
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        ),
    )
    app.add_middleware(_PostOnly)
    return app


class _PostOnly:
    """Refuses to open a stream that would stay empty.

    Many clients ask for one with GET, but do without it. It would last until they end,
    and delay the end of this process until then.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        app = self._app
        if scope["type"] == "http" and scope["method"] != "POST":
            app = PlainTextResponse(
                "This address takes POST alone\n",
                status_code=405,
                headers={"Allow": "POST"},
            )
        await app(scope, receive, send)


class _Guard:
    """Lets in only requests that are for this machine and have the token."""

    def __init__(self, app: "ASGIApp", token: str, port: int) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._own = OwnNames(port)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http":
            refusal = self._refuse(Headers(scope=scope))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refuse(self, headers: Headers) -> PlainTextResponse | None:
        if not self._own.has_host(headers.get("host", "")):
            return PlainTextResponse("Unknown host\n", status_code=421)
        origin = headers.get("origin", "")
        if origin and not self._own.has_origin(origin):
            return PlainTextResponse("Unknown origin\n", status_code=403)
        given = headers.get("authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, self._expected):
            return PlainTextResponse(
                "A bearer token is required\n",
                status_code=401,
                headers={"WWW-Authenticate": 'Bearer realm="backstory"'},
            )
        return None


def serve_http(server: McpServer, token: str, listener: socket.socket) -> None:
    """Answer requests until the process is told to end."""
    serve_until_ended(build_app(server, token, port_of(listener)), listener)
