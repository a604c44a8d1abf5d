"""Have a running Backstory server answer a hook.

The server is sent what the host passed, as it is: not even JSON is imported here. Every
server has a socket of its own. One that nobody listens to any more is deleted.
"""

import os
import time

from backstory.hooks.limits import ANSWER_S, MAX_ANSWER_BYTES, MAX_REQUEST_BYTES
from backstory.hooks.runtime import list_runtime_folders, make_runtime_folder

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Iterator, Mapping

SOCKET_SUFFIX = ".sock"
# Before what to print; a server that cannot answer sends anything else, or nothing.
ANSWERED = b"+"
# Between the parts of a request; in no path and no name.
SEPARATOR = b"\0"
_MAX_SERVERS = 5


def ask_server(
    event: str, host_name: str, home: str, payload: bytes, environ: "Mapping[str, str]"
) -> bytes | None:
    """What to print, as the first server says that answers; None if there is none."""
    folders = list_runtime_folders(home, environ)
    sockets = list(_iter_sockets(folders)) if folders else []
    if not sockets or len(payload) > MAX_REQUEST_BYTES:
        return None
    request = _write_request(event, host_name, home, payload, environ)
    until = time.monotonic() + ANSWER_S
    for path in sockets[:_MAX_SERVERS]:
        if time.monotonic() >= until:
            break
        try:
            answer = _exchange(path, request, until)
        except ConnectionRefusedError:
            _delete(path)
        except OSError:
            continue
        else:
            if answer.startswith(ANSWERED):
                return answer[len(ANSWERED) :]
    return None


def _write_request(
    event: str, host_name: str, home: str, payload: bytes, environ: "Mapping[str, str]"
) -> bytes:
    """The home, the event, the host, our process, our folder for notes, the payload."""
    try:
        folder = make_runtime_folder(home, environ)
    except OSError:
        folder = ""
    facts = (os.path.realpath(home), event, host_name, str(os.getpid()), folder)
    return SEPARATOR.join([*map(os.fsencode, facts), payload])


def _iter_sockets(folders: list[str]) -> "Iterator[str]":
    """The sockets of a home's servers; those that answered last come first."""
    found = []
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                found += [
                    (-entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
                    for entry in entries
                    if entry.name.endswith(SOCKET_SUFFIX)
                ]
        except OSError:
            continue
    return (path for _, path in sorted(found))


def _exchange(path: str, request: bytes, until: float) -> bytes:
    # Only with a server. Not the module ``socket``, which takes as long to import
    # as the rest of a hook.
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _wait_until(connection, until)
        connection.connect(path)
        connection.sendall(request)
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
    return bytes(received)


def _wait_until(connection: "_socket.socket", until: float) -> None:
    connection.settimeout(max(0.001, until - time.monotonic()))


def _delete(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
