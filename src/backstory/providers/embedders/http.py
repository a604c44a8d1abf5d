"""Embedders behind a server: batches, and vectors that are checked.

A subclass builds the request and reads the answer; what can go wrong in between is
handled by ``Server``. A text that the server finds too long is halved until it fits, so
that one text never costs the others their vectors.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from backstory.providers.embedders.base import (
    EmbedderOptions,
    EmbedderRow,
    Vector,
    Vectors,
)
from backstory.providers.http import Client, Clock, Json, Patience, Server, TooLarge
from backstory.text.escape import replace_surrogates
from backstory.text.redaction import mask_secrets

__all__ = ["Clock", "HttpEmbedder", "Json"]

# Incremented when what is done to a text before it is sent changes.
_PIPELINE = "1"
# About 2,000 tokens, which every recent model reads.
_MAX_CHARS = 8_000
_MAX_BATCH_CHARS = 100_000
# Shorter texts are not halved: their length cannot be why they are refused.
_MIN_CHARS = 64

_FOR_TEXTS = Patience(max_tries=4, max_wait_s=20, max_total_s=90)
# A search does not wait that long, but a server that loads its model may need it.
_FOR_A_QUERY = Patience(max_tries=2, max_wait_s=1, max_total_s=30)


class HttpEmbedder(ABC):
    """What all embedders behind a server have in common."""

    max_batch: ClassVar[int] = 64

    def __init__(
        self, row: EmbedderRow, options: EmbedderOptions, clock: Clock | None = None
    ) -> None:
        self._name = row.name
        self._model = options.model or row.default_model
        self._key = options.key.strip()
        self._server = Server(
            Client(
                "embedder",
                row.name,
                "embedder",
                default_url=row.default_url,
                needs_key=row.needs_key,
            ),
            url=options.url,
            key=self._key,
            headers=self._headers(),
            timeout_s=options.timeout_s,
            clock=clock,
        )

    # -- the server's protocol ---------------------------------------------------------

    @abstractmethod
    def _request(self, texts: Sequence[str], *, is_query: bool) -> tuple[str, Json]:
        """The path below the base address, and the body to send there."""

    @abstractmethod
    def _rows(self, answer: Json) -> list[Json]:
        """The vectors in an answer, in the order of the texts.

        May raise ``KeyError``, ``TypeError`` or ``IndexError`` on any other answer.
        """

    def _headers(self) -> dict[str, str]:
        return {}

    # -- the embedder ------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """The provider and the model; at another address the vectors are the same."""
        return f"{self._name}:{self._model}:{_PIPELINE}"

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, is_query=False)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([text], is_query=True)[0]
        return vector

    def can_read(self, text: str) -> bool:
        return True

    def get_ready(self) -> None:  # noqa: B027, the same for all
        """Do nothing: there is nothing to load."""

    def close(self) -> None:
        self._server.close()

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        parts = [
            self._embed_batch(batch, is_query=is_query)
            for batch in _split([_sendable(text) for text in texts], self.max_batch)
        ]
        if not parts:
            return np.zeros((0, 0), np.float32)
        return self._joined(parts)

    def _embed_batch(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        path, body = self._request(texts, is_query=is_query)
        patience = _FOR_A_QUERY if is_query else _FOR_TEXTS
        try:
            answer = self._server.ask(path, body, patience)
        except TooLarge:
            smaller = _smaller(texts)
            if not smaller:
                raise
            parts = [self._embed_batch(part, is_query=is_query) for part in smaller]
            return self._joined(parts)
        return self._read_vectors(answer, len(texts))

    def _joined(self, parts: Sequence[Vectors]) -> Vectors:
        if len({part.shape[1] for part in parts}) > 1:
            raise self._server.unavailable("gave vectors of different lengths")
        return np.concatenate(parts)

    def _read_vectors(self, answer: Json, count: int) -> Vectors:
        try:
            rows = self._rows(answer)
            vectors = np.array(rows, np.float64)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as exc:
            raise self._server.unavailable(
                "gave an answer without vectors in it"
            ) from exc
        if len(rows) != count:
            raise self._server.unavailable(
                f"gave {len(rows)} vectors for {count} texts"
            )
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise self._server.unavailable("gave vectors that are not lists of numbers")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._server.unavailable("gave a vector that has no direction")
        normalized: Vectors = (vectors / lengths).astype(np.float32)
        return normalized


# -- texts ----------------------------------------------------------------------------


def _sendable(text: str) -> str:
    """A text that servers accept: not too long, valid UTF-8, and not empty.

    Secrets in it are masked: what is sent leaves this process, and often the machine.
    They are masked before the text is cut: half a secret would not be recognized.
    """
    return replace_surrogates(mask_secrets(text.strip())[:_MAX_CHARS]) or " "


def _split(texts: Sequence[str], max_batch: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == max_batch or size + len(text) > _MAX_BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _smaller(texts: Sequence[str]) -> list[Sequence[str]]:
    """The two halves of a batch, or half of a single text; nothing if that is short."""
    if len(texts) > 1:
        middle = len(texts) // 2
        return [texts[:middle], texts[middle:]]
    (text,) = texts
    return [[text[: len(text) // 2]]] if len(text) >= 2 * _MIN_CHARS else []
