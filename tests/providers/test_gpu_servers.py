"""Servers that people run on a GPU, in the words that they answer in.

Text Embeddings Inference and vLLM speak OpenAI's protocol, each with errors of its own;
Ollama has its own protocol.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from backstory.providers.embedders import load_embedder
from backstory.providers.embedders.base import Embedder
from tests.embedding_server import letter_counts
from tests.faulty_server import FaultyHandler, FaultyServer, Json, serving

_MAX_WORDS = 100
_MAX_BATCH = 8


@dataclass(slots=True)
class GpuServer(FaultyServer):
    """Which program it is, and how many batches were too large for it."""

    program: str = ""
    refused: int = 0


class _Handler(FaultyHandler):
    server_state: GpuServer

    def answer(self, body: Json) -> None:
        state = self.server_state
        texts: list[str] = body["input"]
        longest = max(len(text.split()) for text in texts)
        if state.program == "tei" and len(texts) > _MAX_BATCH:
            state.refused += 1
            said = f"batch size {len(texts)} > maximum allowed batch size {_MAX_BATCH}"
            self.send(422, {"message": said, "code": 422, "type": "validation"})
        elif longest > _MAX_WORDS:
            state.refused += 1
            self.send(*_too_long(state.program, longest))
        else:
            rows = [letter_counts(text) for text in texts]
            self.send(200, _answer(state.program, rows))


def _too_long(program: str, length: int) -> tuple[int, Json]:
    if program == "tei":
        said = (
            "Input validation error: `inputs` must have less than "
            f"{_MAX_WORDS} tokens. Given: {length}"
        )
        return 413, {"message": said, "code": 413, "type": "validation"}
    if program == "vllm":
        said = (
            f"This model's maximum context length is {_MAX_WORDS} tokens. However, you "
            f"requested {length} tokens in the input for embedding generation. Please "
            "reduce the length of the input."
        )
        error = {"message": said, "type": "BadRequestError", "param": None, "code": 400}
        return 400, {"error": error}
    return 400, {"error": "the input length exceeds the context length"}


def _answer(program: str, rows: list[list[float]]) -> Json:
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    data = [
        {"object": "embedding", "embedding": row, "index": index}
        for index, row in enumerate(rows)
    ]
    if program == "tei":
        return {"object": "list", "data": data, "model": "bge", "usage": usage}
    if program == "vllm":
        return {
            "id": "embd-1", "object": "list", "created": 1, "model": "bge",
            "data": data, "usage": {**usage, "completion_tokens": 0},
        }  # fmt: skip
    return {
        "model": "bge", "embeddings": rows, "total_duration": 1, "load_duration": 1,
        "prompt_eval_count": 7,
    }  # fmt: skip


@contextmanager
def running(program: str) -> Iterator[tuple[GpuServer, Embedder]]:
    state = GpuServer(program=program)
    with serving(_Handler, state):
        name, path = ("ollama", "") if program == "ollama" else ("openai", "/v1")
        embedder = load_embedder(
            name,
            model="bge",
            url=state.url + path,
            key="",
            environ={},
            timeout_s=30,
        )
        assert embedder is not None
        yield state, embedder
        embedder.close()


@pytest.mark.parametrize("program", ["tei", "vllm", "ollama"])
def test_each_text_gets_its_vector_whatever_the_server_refuses(program: str) -> None:
    long = " ".join(["word"] * 300)
    texts = [f"text number {number}" for number in range(20)]
    texts.insert(7, long)
    with running(program) as (state, embedder):
        vectors = embedder.embed_texts(texts)

    assert state.refused > 0
    assert len(vectors) == len(texts)
    for text, vector in zip(texts, vectors, strict=True):
        counts = np.array(letter_counts(text))
        if text != long:
            expected = counts / np.linalg.norm(counts)
            np.testing.assert_allclose(vector, expected, rtol=1e-3)
    assert np.isfinite(vectors[7]).all()
