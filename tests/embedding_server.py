"""A server on loopback that speaks Ollama's, OpenAI's and Gemini's wire formats.

A vector counts the letters and digits of its text, so that like texts are near each
other and a test can tell whose vector it got.
"""

import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.faulty_server import FaultyHandler, FaultyServer, Json, serving

_MAX_CHARS = 1_000_000


@dataclass(slots=True)
class EmbeddingServer(FaultyServer):
    """What the server was asked, and how it is to misbehave."""

    # Texts longer than this are refused, and what the refusal says.
    max_chars: int = _MAX_CHARS
    too_long: str = "the input length exceeds the context length"
    # How vectors are changed on their way out.
    spoil: str = ""

    def start_afresh(self) -> None:
        self.forget()
        self.spoil, self.max_chars = "", _MAX_CHARS

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
    with serving(_Handler, state):
        yield state


class _Handler(FaultyHandler):
    server_state: EmbeddingServer

    def answer(self, body: Json) -> None:
        state = self.server_state
        texts = _texts(body)
        if max(map(len, texts)) > state.max_chars:
            self.send(400, {"error": state.too_long})
            return
        rows = _spoilt([letter_counts(text) for text in texts], state.spoil)
        self.send(200, _answer(self.path, rows))


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
