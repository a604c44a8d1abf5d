"""Serve HTTP on this machine only: on a loopback port, and under its own names.

A web page elsewhere must not reach the memory through its reader's browser. So a
request that names another host is refused, because that name may have been rebound to
this machine, and so is one from a page of another site.
"""

import signal
import socket
from typing import TYPE_CHECKING

from backstory.errors import ConfigError

if TYPE_CHECKING:
    from types import FrameType

    from starlette.types import ASGIApp

ADDRESS = "127.0.0.1"
_NAMES = (ADDRESS, "localhost")
_GRACE_S = 2


class OwnNames:
    """The names by which programs on this machine may ask one port."""

    def __init__(self, port: int) -> None:
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES)

    def has_host(self, host: str) -> bool:
        """Whether the value of a ``Host`` header is ours."""
        return host.lower() in self._hosts

    def has_origin(self, origin: str) -> bool:
        """Whether the value of an ``Origin`` header is that of one of our pages."""
        scheme, _, host = origin.partition("://")
        return scheme.lower() == "http" and self.has_host(host)


def listen(port: int) -> socket.socket:
    """A socket that programs on this machine can connect to; 0 is any free port.

    Raises ``ConfigError`` if the port cannot be used.
    """
    # The protocol is given so that asyncio knows it, because only then does it send
    # small answers at once; otherwise they wait for 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # So that a server can be started again at once.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
    except OSError as exc:
        listener.close()
        raise ConfigError(
            f"{ADDRESS}:{port}: {exc.strerror}", hint="choose another with --port"
        ) from exc
    return listener


def port_of(listener: socket.socket) -> int:
    """The port that a socket listens on."""
    return int(listener.getsockname()[1])


def serve_until_ended(app: "ASGIApp", listener: socket.socket) -> None:
    """Answer requests until the process is told to end."""
    # Imported here because it is slow, and only servers need it.
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    # uvicorn handles signals, and raises them again when it has ended. Without this, a
    # program that a shell started in the background would ignore Ctrl-C.
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    uvicorn.Server(config).run(sockets=[listener])


def _end(number: int, frame: "FrameType | None") -> None:
    raise SystemExit(128 + number)
