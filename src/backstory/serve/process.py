"""Run the server until the process is told to end, and end without losing a request.

On SIGTERM, ``/ready`` says that no more requests should be sent here; a moment later no
connection is accepted any more; requests that are being answered get some time to end.
What was acknowledged is in the store by then, so a process that is killed loses nothing
either.
"""

import asyncio
import signal
import socket
import ssl
import time
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from backstory.errors import ConfigError, show_value
from backstory.serve.app import TeamServer
from backstory.values.structs import FrozenStruct

if TYPE_CHECKING:
    from types import FrameType

# How long load balancers have to notice that /ready has changed.
_NOTICE_S = 1.0
# How long requests have to end after that.
GRACE_S = 20
# How long a client may take to say what it asks for.
HEAD_S = 15.0
_KEEP_ALIVE_S = 30
_MAX_CONNECTIONS = 1_000
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Listening(FrozenStruct):
    """Where a server listens, and how requests get there.

    ``proxies`` are the addresses of proxies before it, which are believed when they say
    where a request comes from and whether it came over TLS.
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        return self.host in _LOOPBACK

    def check(self) -> None:
        """Raise ``ConfigError`` if tokens could be read on their way, or by anybody."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError(
                "TLS needs both a certificate and its key",
                hint="give --certificate and --key",
            )
        for each in self.proxies:
            _check_proxy(each)
        if self.certificate and self.key:
            _check_certificate(self.certificate, self.key)
        elif not self.is_loopback and not self.proxies:
            raise ConfigError(
                f"on {self.host}, tokens and memories would travel unencrypted",
                hint="give --certificate and --key, or let a proxy do TLS and name its "
                "address with --behind-proxy",
            )


def _check_proxy(address: str) -> None:
    """Refuse what is no address: a name would match nobody, and "*" everybody."""
    try:
        ip_network(address)
    except ValueError as exc:
        raise ConfigError(
            f"--behind-proxy: {show_value(address)} is not an IP address",
            hint="give the address that the proxy connects from, such as 10.0.0.5, or "
            "its network, such as 10.0.0.0/24",
        ) from exc


def _check_certificate(certificate: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(
            f"{certificate}, {key}: {exc.strerror or exc}",
            hint="both are PEM files, and the key belongs to the first certificate",
        ) from exc


def open_listener(listening: Listening) -> socket.socket:
    """A socket at an address. Raises ``ConfigError`` if it cannot be used."""
    try:
        found = socket.getaddrinfo(
            listening.host,
            listening.port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,
            flags=socket.AI_PASSIVE,
        )
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise _cannot_listen(listening, exc) from exc
    # So that a server can be started again at once.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as exc:
        listener.close()
        raise _cannot_listen(listening, exc) from exc
    return listener


def _cannot_listen(listening: Listening, exc: OSError) -> ConfigError:
    return ConfigError(
        f"{listening.host}:{listening.port}: {exc.strerror}",
        hint="choose another address with --host and --port",
    )


def serve_until_told(
    app: TeamServer, listener: socket.socket, listening: Listening
) -> None:
    """Answer requests until the process is told to end."""
    try:
        GracefulServer(configure(app, listening), app).run(sockets=[listener])
    finally:
        app.close()


def configure(app: TeamServer, listening: Listening) -> uvicorn.Config:
    """How connections are treated."""
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
    """Says that it is about to end before it stops to accept connections."""

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
    """Closes connections on which nobody says in time what they ask for.

    Otherwise a client that sends a letter a minute would hold one for as long as it
    likes. How long the rest of a request may take is checked where it is read.
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
