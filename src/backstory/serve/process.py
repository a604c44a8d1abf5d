"""Run the server until the process is told to end, and end without losing a request.

On SIGTERM, ``/ready`` says that no more requests should be sent here; a moment later no
connection is accepted any more; requests that are being answered get some time to
finish. Whatever was acknowledged is in the store already, so a process that is killed
loses nothing either.
"""

import asyncio
import signal
import socket
import time
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from backstory.serve.app import TeamServer
from backstory.serve.listening import Listening

if TYPE_CHECKING:
    from types import FrameType

# How long load balancers have to notice that /ready has changed.
_NOTICE_S = 1.0
# How long requests have to finish after that.
GRACE_S = 20
# How long a client may take to send the head of a request.
HEAD_S = 15.0
_KEEP_ALIVE_S = 30
_MAX_CONNECTIONS = 1_000


def serve_until_told(
    app: TeamServer, listener: socket.socket, listening: Listening
) -> None:
    """Answer requests until the process is told to end."""
    try:
        GracefulServer(configure(app, listening), app).run(sockets=[listener])
    finally:
        app.close()


def configure(app: TeamServer, listening: Listening) -> uvicorn.Config:
    """The configuration of connections."""
    return uvicorn.Config(
        app,
        http=ImpatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(listening.proxies),
        forwarded_allow_ips=list(listening.proxies),
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=_MAX_CONNECTIONS,
    )


class GracefulServer(uvicorn.Server):
    """Says that it is about to end before it stops accepting connections."""

    def __init__(self, config: uvicorn.Config, app: TeamServer) -> None:
        super().__init__(config)
        self._app = app
        self._ends_at: float | None = None

    def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
        if self._ends_at is None:
            self._app.begin_to_end()
            self._ends_at = time.monotonic() + _NOTICE_S
        elif self.should_exit and sig == signal.SIGINT:
            # Somebody presses Ctrl-C again and again.
            self.force_exit = True
        else:
            self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self.should_exit = True
        return await super().on_tick(counter)


class ImpatientProtocol(H11Protocol):
    """Closes connections on which the head of a request does not arrive in time.

    Otherwise, a client that sends one letter a minute could hold a connection for as
    long as it likes. How long the rest of a request may take is checked where it is
    read.
    """

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        if self._waiting is None and self._is_between_requests():
            self._expect_head()
        super().data_received(data)
        if self._waiting is not None and not self._is_between_requests():
            self._waiting.cancel()
            self._waiting = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_head(self) -> None:
        self._waiting = self.loop.call_later(HEAD_S, self._give_up)

    def _give_up(self) -> None:
        self._waiting = None
        if self._is_between_requests() and not self.transport.is_closing():
            self.transport.close()
