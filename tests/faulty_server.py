"""A server on loopback that writes down what it is asked, and fails as it is told to.

Faults are played once each, in the order given; one that is ``for_ever`` stays. What is
answered otherwise, a subclass of ``FaultyHandler`` says.
"""

import json
import threading
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Any: requests are checked by the tests, not here.
Json = Any


@dataclass(frozen=True, slots=True)
class Fault:
    """One answer other than the right one.

    ``cut_off`` sends less than it announces, ``drip`` a byte at a time; ``is_held``
    waits until the test lets go of it, or ends.
    """

    status: int = 200
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    is_held: bool = False
    cut_off: bool = False
    drip: bool = False
    for_ever: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived; names of headers in small letters."""

    path: str
    headers: dict[str, str]
    body: Json


@dataclass(slots=True)
class FaultyServer:
    """What the server was asked, and how it is to misbehave."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    # The other end of the connection that each request came by.
    ports: list[int] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)

    def forget(self) -> None:
        """Have been asked nothing, misbehave no more, and keep nobody waiting."""
        self.asked, self.faults, self.ports = [], [], []
        self.let_go.set()
        self.let_go = threading.Event()


class FaultyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave as two packets, and the second would wait 40 ms for the first.
    disable_nagle_algorithm = True
    server_state: FaultyServer

    @abstractmethod
    def answer(self, body: Json) -> None:
        """Answer a request that no fault is for."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        # A client may have had enough.
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        state.ports.append(self.client_address[1])
        state.asked.append(Asked(self.path, headers, body))
        if state.faults:
            fault = state.faults[0] if state.faults[0].for_ever else state.faults.pop(0)
            if fault.is_held:
                state.let_go.wait()
            if fault.status != 200 or fault.body is not None:
                self._send(fault.status, fault.body or b"", fault)
                return
        self.answer(body)

    def send(self, status: int, answer: Json) -> None:
        self._send(status, json.dumps(answer).encode(), Fault())

    def _send(self, status: int, body: bytes, fault: Fault) -> None:
        announced = len(body) + (100 if fault.cut_off else 0)
        headers = dict(fault.headers)
        # With a date of its own where the fault is about one.
        self.send_response_only(status)
        headers.setdefault("Date", self.date_time_string())
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(announced))
        self.end_headers()
        if fault.drip:
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(0.01)
        else:
            self.wfile.write(body)
        self.close_connection = announced != len(body)


@contextmanager
def serving(handler: type[FaultyHandler], state: FaultyServer) -> Iterator[None]:
    """Run a server that keeps its state in ``state``, whose url it sets."""
    own = type(handler.__name__, (handler,), {"server_state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), own)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        state.let_go.set()
        server.shutdown()
        thread.join()
        server.server_close()
