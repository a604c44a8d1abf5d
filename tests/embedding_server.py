"""A server on loopback that speaks Ollama's, OpenAI's and Gemini's wire formats.

A vector counts the letters and digits of its text, so that like texts are near each
other and a test can tell whose vector it got. Faults are played once each, in the order
given; one that is ``for_ever`` stays.
"""

import json
import string
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Any: requests are checked by the tests, not here.
Json = Any

_MAX_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """One answer other than vectors.

    ``cut_off`` sends less than it announces, ``drip`` a byte at a time.
    """

    status: int = 200
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
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
class EmbeddingServer:
    """What the server was asked, and how it is to misbehave."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    # Texts longer than this are refused, and what the refusal says.
    max_chars: int = _MAX_CHARS
    too_long: str = "the input length exceeds the context length"
    # How vectors are changed on their way out.
    spoil: str = ""

    def become_well(self) -> None:
        """Forget all faults."""
        self.faults, self.spoil, self.max_chars = [], "", _MAX_CHARS

    def texts(self) -> list[list[str]]:
        """The texts of each request, whatever protocol it was in."""
        return [_texts(asked.body) for asked in self.asked]


def letter_counts(text: str) -> list[float]:
    """How often each letter and digit is there, and a last number that is never 0."""
    counted = string.ascii_lowercase + string.digits
    return [*(float(text.lower().count(each)) for each in counted), 1.0]


@contextmanager
def running_server() -> Iterator[EmbeddingServer]:
    state = EmbeddingServer()

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave as two packets, and the second would wait 40 ms for the first.
    disable_nagle_algorithm = True
    server_state: EmbeddingServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        state.asked.append(Asked(self.path, headers, body))
        if state.faults:
            fault = state.faults[0] if state.faults[0].for_ever else state.faults.pop(0)
            time.sleep(fault.delay_s)
            if fault.status != 200 or fault.body is not None:
                self._send(fault.status, fault.body or b"", fault)
                return
        texts = _texts(body)
        if max(map(len, texts)) > state.max_chars:
            self._send(400, json.dumps({"error": state.too_long}).encode())
            return
        rows = _spoilt([letter_counts(text) for text in texts], state.spoil)
        self._send(200, json.dumps(_answer(self.path, rows)).encode())

    def _send(self, status: int, body: bytes, fault: Fault | None = None) -> None:
        announced = len(body) + (100 if fault and fault.cut_off else 0)
        self.send_response(status)
        for name, value in fault.headers if fault else ():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(announced))
        self.end_headers()
        with suppress(ConnectionError):
            if fault and fault.drip:
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.01)
            else:
                self.wfile.write(body)
        self.close_connection = announced != len(body)


def _texts(body: Json) -> list[str]:
    if "requests" in body:
        return [each["content"]["parts"][0]["text"] for each in body["requests"]]
    return list(body["input"])


def _spoilt(rows: list[list[float]], how: str) -> Sequence[Json]:
    match how:
        case "wrong count":
            return rows[:-1]
        case "not finite":
            return [[None, *row[1:]] for row in rows]
        case "not a number":
            return [["much", *row[1:]] for row in rows]
        case "zero":
            return [[0.0] * len(row) for row in rows]
        case "different lengths":
            return [row[number:] for number, row in enumerate(rows)]
        case "not a list":
            return [1.0 for _ in rows]
        case "empty":
            return [[] for _ in rows]
        case _:
            return rows


def _answer(path: str, rows: Sequence[Json]) -> Json:
    if path.endswith("/embeddings"):
        data = [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(rows)
        ]
        # Reversed, because only the index says which is whose.
        return {"object": "list", "data": data[::-1], "model": "m"}
    if path.endswith(":batchEmbedContents"):
        return {"embeddings": [{"values": row} for row in rows]}
    return {"model": "m", "embeddings": rows, "total_duration": 1}
