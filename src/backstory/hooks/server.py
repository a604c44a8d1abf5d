"""HookServer: answers hooks on a Unix socket, from a memory that is open already.

Any program that holds a ``Memory`` for long can start one; several may run for one
home, each with a socket of its own. The socket is in a private folder, and requests of
other users are refused where the system tells whose they are.
"""

import logging
import os
import secrets
import select
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Self

from backstory.hooks.answers import MemoryAnswers
from backstory.hooks.ask import ANSWERED, SEPARATOR, SOCKET_SUFFIX
from backstory.hooks.events import PROMPT
from backstory.hooks.hosts import parse_call
from backstory.hooks.limits import MAX_REQUEST_BYTES, REQUEST_S
from backstory.hooks.live_sessions import clear_stale_notes
from backstory.hooks.runtime import is_private, make_runtime_folder
from backstory.hooks.telling import Telling
from backstory.memory import Memory
from backstory.system.machine import this_machine
from backstory.system.threads import DaemonThreadPool

logger = logging.getLogger(__name__)

_BACKLOG = 32
# Requests that are answered, and that may wait for it. Each thread has a connection to
# the index of its own, so there are few, and they are kept.
_THREADS = 3
_MAX_AT_ONCE = 8
# A payload, and some paths and names.
_MAX_RECEIVED_BYTES = MAX_REQUEST_BYTES + 64 * 1024
_END_WAIT_S = 1.0
# Long enough that it is searched for by meaning.
_WARM_UP_PROMPT = "which memories are there about loading the model before a prompt"
# On macOS: the level of Unix sockets, and the option that tells whose the other end is.
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1


class HookServer:
    """Answers hooks until it is closed.

    Prompts are answered once the model is loaded, which the first of them starts; until
    then, hooks search by themselves.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._home = os.path.realpath(memory.home)
        self._listener: socket.socket | None = None
        self._path = ""
        self._wake, self._woken = -1, -1
        self._thread: threading.Thread | None = None
        self._threads = DaemonThreadPool(_THREADS, "backstory-hook")
        self._free = threading.BoundedSemaphore(_MAX_AT_ONCE)
        self._warming = threading.Lock()
        self._is_warm = False
        self._is_told_to_warm = False

    @property
    def path(self) -> str:
        """Where the socket is; empty if the server is not running."""
        return self._path

    def start(self) -> None:
        """Begin to answer. Where that is impossible, hooks search by themselves."""
        if self._thread is not None:
            return
        try:
            self._listen()
        except (OSError, AttributeError) as exc:
            # No private folder, a path that is too long, or no such sockets (Windows).
            logger.info("hooks are not answered: %s", exc)
            return
        self._thread = threading.Thread(
            target=self._serve, name="backstory-hooks", daemon=True
        )
        self._thread.start()

    def _listen(self) -> None:
        folder = make_runtime_folder(self._home, this_machine().environ)
        clear_stale_notes(folder)
        _clear_stale_sockets(folder)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        path = os.path.join(folder, f"{name}{SOCKET_SUFFIX}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Under its name only when it listens: one that does not is deleted.
            listener.bind(f"{path}.new")
            os.chmod(f"{path}.new", 0o600)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            os.rename(f"{path}.new", path)
        except OSError:
            listener.close()
            raise
        self._listener, self._path = listener, path
        self._woken, self._wake = os.pipe()

    def close(self) -> None:
        """Stop answering; requests that are being answered may finish."""
        thread, self._thread = self._thread, None
        if thread is None or self._listener is None:
            return
        with suppress(OSError):
            os.unlink(self._path)
        self._path = ""
        os.write(self._wake, b".")
        thread.join(_END_WAIT_S)
        self._threads.shutdown(wait_s=_END_WAIT_S)
        self._threads = DaemonThreadPool(_THREADS, "backstory-hook")
        self._listener.close()
        self._listener = None
        os.close(self._wake)
        os.close(self._woken)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def warm_up(self) -> None:
        """Load the model and what a search needs, if that was not done yet."""
        with self._warming:
            if not self._is_warm:
                # In a thread that answers, because each has things of its own to load.
                self._threads.submit(
                    lambda: self._memory.context(_WARM_UP_PROMPT, given=())
                ).result()
                self._is_warm = True

    def _warm_in_background(self) -> None:
        if not self._is_told_to_warm:
            self._is_told_to_warm = True
            threading.Thread(target=self.warm_up, daemon=True).start()

    # -- serving ---

    def _serve(self) -> None:
        listener = self._listener
        assert listener is not None
        while True:
            select.select([listener.fileno(), self._woken], [], [])
            if self._thread is None:
                return
            try:
                connection, _ = listener.accept()
            except OSError as exc:
                # The other end has gone again; or there are too many open files.
                if not isinstance(exc, BlockingIOError):
                    time.sleep(0.05)
                continue
            if not self._free.acquire(blocking=False):
                connection.close()
                continue
            self._threads.submit(partial(self._attend, connection))

    def _attend(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(REQUEST_S)
                if not _is_of_this_user(connection):
                    return
                telling = self._begin(_receive(connection))
                if telling is None:
                    return
                connection.sendall(ANSWERED + telling.write())
                # Not before: a hook that has given up told its session nothing.
                telling.note_told()
                with suppress(OSError):
                    # Hooks ask the server first that answered last.
                    os.utime(self._path)
        except (OSError, ValueError, RecursionError) as exc:
            # The hook finds the same wrong with its payload, and says so in its log.
            logger.info("a hook was not answered: %s", exc)
        except Exception:
            logger.exception("a hook was not answered")
        finally:
            self._free.release()

    def _begin(self, request: bytes) -> Telling | None:
        """What the session of a hook is told; None if the hook has to find it itself.

        Raises ValueError if it is no request.
        """
        *facts, payload = request.split(SEPARATOR, 5)
        home, event, host_name, pid, folder = map(os.fsdecode, facts)
        if home != self._home:
            return None
        if event == PROMPT and not self._is_warm:
            self._warm_in_background()
            return None
        call = parse_call(event, host_name, payload)
        return Telling(
            call,
            MemoryAnswers(self._memory, call),
            home=home,
            folder=folder if is_private(folder) else "",
            pid=int(pid),
        )


def _receive(connection: socket.socket) -> bytes:
    """A request. Raises ValueError if it is too long."""
    until = time.monotonic() + REQUEST_S
    received = bytearray()
    while some := connection.recv(65_536):
        received += some
        if len(received) > _MAX_RECEIVED_BYTES:
            raise ValueError("the request is too long")
        if time.monotonic() > until:
            raise TimeoutError("the request took too long")
    return bytes(received)


def _is_of_this_user(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user, as far as the system tells."""
    if sys.platform == "linux":
        size = struct.calcsize("3i")
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        user = struct.unpack("3i", found)[1]
    elif sys.platform == "darwin":
        found = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 128)
        user = struct.unpack_from("2I", found)[1]
    else:
        return True
    return bool(user == os.getuid())


def _clear_stale_sockets(folder: str) -> None:
    """Delete the sockets that nobody listens to."""
    with os.scandir(folder) as entries:
        paths = [entry.path for entry in entries if entry.name.endswith(SOCKET_SUFFIX)]
    for path in paths:
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe,
            suppress(OSError),
        ):
            probe.settimeout(0.1)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
