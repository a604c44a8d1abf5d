"""Where a server listens, and whether it may: known before the server is loaded."""

import socket
import ssl
from ipaddress import ip_network
from pathlib import Path

from backstory.errors import ConfigError, show_value
from backstory.values.structs import FrozenStruct

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

    def to_url(self, port: int) -> str:
        """The address of the server at the port that it has in fact."""
        scheme = "https" if self.certificate else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"

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
    """Refuse anything but an address: a name would match nobody, and "*" everybody."""
    try:
        ip_network(address)
    except ValueError as exc:
        raise ConfigError(
            f"--behind-proxy: {show_value(address)} is not an IP address",
            hint="give the address that the proxy connects from, such as 10.0.0.5, or "
            "its network, such as 10.0.0.0/24",
        ) from exc


def _check_certificate(certificate: Path, key: Path) -> None:
    for path in (certificate, key):
        try:
            path.read_bytes()
        except OSError as exc:
            raise ConfigError(
                f"{path}: {exc.strerror}",
                hint="check the path, and that this user may read the file",
            ) from exc

    def refuse_to_ask() -> str:
        # OpenSSL would ask at the terminal, which a service does not have.
        raise ConfigError(
            f"{key}: it is encrypted with a password",
            hint="decrypt it into a file that only this user can read: "
            "openssl pkey -in KEY -out FILE",
        )

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            certificate, key, password=refuse_to_ask
        )
    except ssl.SSLError as exc:
        raise ConfigError(
            f"{certificate}, {key}: they are not a certificate and its key",
            hint="both are PEM files, and the key must belong to the first certificate",
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
