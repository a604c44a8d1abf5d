"""The names under which a server may be asked.

A page elsewhere could let a name of its own point to this server, and read what its
visitors may see here. So a request that names another host is refused.
"""

import re
from collections.abc import Iterable

from backstory.errors import ConfigError, show_value

# What a ``Host`` header can name, without a port: a name or an address.
_HOST = re.compile(r"[0-9A-Za-z_.-]+|[0-9A-Fa-f:.]+")


class AllowedNames:
    """The names of a server, without ports."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.lower() for name in names)

    def has_host(self, host: str) -> bool:
        """Whether the value of a ``Host`` header is one of the names, at any port."""
        return _without_port(host).lower() in self._names


def check_name(name: str) -> None:
    """Refuse a name that no client can ask for: it would block every request."""
    if not _HOST.fullmatch(name):
        raise ConfigError(
            f"--name: {show_value(name)} is not the name of a host",
            hint="give the name alone, such as memory.example.org, without http:// "
            "and without a port",
        )


def is_same_origin(origin: str, *, scheme: str, host: str) -> bool:
    """Whether an ``Origin`` header is that of a page at this very address."""
    return origin.lower() == f"{scheme}://{host}".lower()


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    if colon and (port.isdecimal() or not port) and not name.endswith(":"):
        host = name
    return host.removeprefix("[").removesuffix("]")
