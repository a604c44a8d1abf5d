"""Ask a running Backstory server for what to add to the context.

Every server has a socket of its own. One that nobody listens to any more is deleted.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from backstory.hooks.limits import ANSWER_S, MAX_ANSWER_BYTES
from backstory.hooks.runtime import list_runtime_folders

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

SOCKET_SUFFIX = ".sock"
_MAX_SERVERS = 5


def ask_server(
    home: str, environ: Mapping[str, str], request: Mapping[str, object]
) -> dict[str, object] | None:
    """The answer of the first server that has one; None if there is none."""
    sent = json.dumps({**request, "home": os.path.realpath(home)}).encode()
    until = time.monotonic() + ANSWER_S
    for number, path in enumerate(_iter_sockets(home, environ)):
        if number == _MAX_SERVERS or time.monotonic() >= until:
            break
        try:
            answer = _exchange(path, sent, until)
        except ConnectionRefusedError:
            with suppress(OSError):
                os.unlink(path)
        except (OSError, ValueError):
            continue
        else:
            if isinstance(answer.get("text"), str):
                return answer
    return None


def _iter_sockets(home: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The sockets of a home's servers; those that answered last come first."""
    found = []
    for folder in list_runtime_folders(home, environ):
        with suppress(OSError), os.scandir(folder) as entries:
            found += [
                (-entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
                for entry in entries
                if entry.name.endswith(SOCKET_SUFFIX)
            ]
    return (path for _, path in sorted(found))


def _exchange(path: str, sent: bytes, until: float) -> dict[str, object]:
    # Only with a server. Not the module ``socket``, which takes as long to import
    # as the rest of a hook.
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _wait_until(connection, until)
        connection.connect(path)
        connection.sendall(sent)
        connection.shutdown(_socket.SHUT_WR)
        received = bytearray()
        while len(received) < MAX_ANSWER_BYTES:
            _wait_until(connection, until)
            some = connection.recv(65_536)
            if not some:
                break
            received += some
    finally:
        connection.close()
    answer = json.loads(received)
    return answer if isinstance(answer, dict) else {}


def _wait_until(connection: "_socket.socket", until: float) -> None:
    connection.settimeout(max(0.001, until - time.monotonic()))
