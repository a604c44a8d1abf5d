"""Embedders behind a server: batches, retries, and answers that are checked.

A subclass says how its server is asked and how its answer is read; everything that can
go wrong between the two is handled here. A text that the server finds too long is
halved until it fits, so that one text never costs the others their vectors.
"""

import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx
import numpy as np
import orjson

from backstory.embedders.base import EmbedderOptions, EmbedderRow, Vector, Vectors
from backstory.embedders.forking import forget_in_child
from backstory.errors import ConfigError, ProviderRefused, ProviderUnavailable
from backstory.redaction import mask_secrets
from backstory.text import neutralise, one_line, replace_surrogates

# Any: a server's JSON can hold anything anywhere; it is checked on reading.
Json = Any

# Raised when what is done to a text before it is sent changes.
_PIPELINE = "1"
# About 2,000 tokens, which every model of the last years reads.
_MAX_CHARS = 8_000
_MAX_BATCH_CHARS = 100_000
# A text is halved no further; what is refused at this length is not refused for it.
_MIN_CHARS = 64

_FIRST_WAIT_S = 0.5
_MAX_ANSWER_BYTES = 64_000_000

_MAY_PASS = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
# Ollama has said so with 500, too.
_MAY_MEAN_SIZE = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)
_SIZE_WORDS = re.compile("too (long|large|many)|exceed|context length|maximum", re.I)
# OpenAI says it with the status that otherwise means "in a moment".
_OUT_OF_QUOTA = b"insufficient_quota"


class TooLarge(ProviderRefused):
    """The server refused a request for its size; a smaller one may do."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How time passes while a server is waited for; tests pass one that does not."""

    read_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one request may take, all tries and the waiting between them."""

    max_tries: int
    max_wait_s: float
    max_total_s: float


_FOR_TEXTS = Patience(max_tries=4, max_wait_s=20, max_total_s=90)
# Somebody waits for the results, which are there without vectors, too.
_FOR_A_QUERY = Patience(max_tries=2, max_wait_s=1, max_total_s=10)


class HttpEmbedder(ABC):
    """What all embedders behind a server have in common."""

    max_batch: ClassVar[int] = 64
    _lock: threading.Lock
    _client: httpx.Client | None

    def __init__(
        self, row: EmbedderRow, options: EmbedderOptions, clock: Clock | None = None
    ) -> None:
        self._name = row.name
        self._model = options.model or row.default_model
        self._url = (options.url or row.default_url).rstrip("/")
        self._key = options.key.strip()
        self._timeout_s = options.timeout_s
        self._clock = clock or Clock()
        self._check_settings(row)
        self.forget()
        forget_in_child(self)

    def _check_settings(self, row: EmbedderRow) -> None:
        if not _is_address(self._url):
            raise ConfigError(
                f"'{one_line(neutralise(self._url), 80)}' is not an http or https "
                "address",
                hint=f"set embedder.url to one like {row.default_url}",
            )
        # The key is not shown: what is wrong with it may be one character.
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError(
                f"the key of the embedder '{row.name}' has characters in it that no "
                "key has",
                hint="set embedder.key again",
            )
        if row.needs_key and self._url == row.default_url and not self._key:
            raise ConfigError(
                f"the embedder '{row.name}' needs a key for {self._host}",
                hint="set embedder.key, or embedder.url to a server that needs none",
            )

    # -- what a server's protocol is ---------------------------------------------------

    @abstractmethod
    def _request(self, texts: Sequence[str], *, is_query: bool) -> tuple[str, Json]:
        """The path under the base address, and the body to send there."""

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
        """The provider and the model: at another address the vectors are the same."""
        return f"{self._name}:{self._model}:{_PIPELINE}"

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, is_query=False)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([text], is_query=True)[0]
        return vector

    def can_read(self, text: str) -> bool:
        return True

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None

    def forget(self) -> None:
        """Start without a connection; a forked child must not use its parent's."""
        self._lock = threading.Lock()
        self._client = None

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        parts = [
            self._embed_batch(batch, is_query=is_query)
            for batch in _split([_sendable(text) for text in texts], self.max_batch)
        ]
        if not parts:
            return np.zeros((0, 0), np.float32)
        return _joined(parts, self._server)

    def _embed_batch(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        path, body = self._request(texts, is_query=is_query)
        patience = _FOR_A_QUERY if is_query else _FOR_TEXTS
        try:
            answer = self._ask(path, body, patience)
        except TooLarge:
            smaller = _smaller(texts)
            if not smaller:
                raise
            parts = [self._embed_batch(part, is_query=is_query) for part in smaller]
            return _joined(parts, self._server)
        return self._read_vectors(answer, len(texts))

    def _read_vectors(self, answer: Json, count: int) -> Vectors:
        try:
            rows = self._rows(answer)
            vectors = np.array(rows, np.float64)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as exc:
            raise ProviderUnavailable(
                f"{self._server} gave an answer without vectors in it"
            ) from exc
        if len(rows) != count:
            raise ProviderUnavailable(
                f"{self._server} gave {len(rows)} vectors for {count} texts"
            )
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise ProviderUnavailable(
                f"{self._server} gave vectors that are not lists of numbers"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise ProviderUnavailable(
                f"{self._server} gave a vector that has no direction"
            )
        normalised: Vectors = (vectors / lengths).astype(np.float32)
        return normalised

    # -- the wire ----------------------------------------------------------------------

    @property
    def _host(self) -> str:
        return httpx.URL(self._url).netloc.decode()

    @property
    def _server(self) -> str:
        return f"the embedder '{self._name}' at {self._host}"

    def _get_client(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(
                    headers={"content-type": "application/json"} | self._headers(),
                    # A redirect could carry texts and key to a server nobody named.
                    follow_redirects=False,
                    # The environment's proxies and .netrc are no setting of ours.
                    trust_env=False,
                )
            return self._client

    def _ask(self, path: str, body: Json, patience: Patience) -> Json:
        """The server's answer, after as many tries as are worth it."""
        content = orjson.dumps(body)
        timeout_s = min(self._timeout_s, patience.max_total_s)
        ends_s = self._clock.read_s() + patience.max_total_s
        for number in range(patience.max_tries):
            cause: Exception | None = None
            asked_s: float | None = None
            try:
                response = self._post(path, content, timeout_s)
            except httpx.HTTPError as exc:
                reason, cause = self._describe(exc, timeout_s), exc
            else:
                if response.is_success:
                    return self._parse(response)
                reason = self._said(response)
                self._raise_refusal(response, reason)
                asked_s = _retry_after_s(response)
            wait_s = min(asked_s or _FIRST_WAIT_S * 4**number, patience.max_wait_s)
            is_last = number + 1 == patience.max_tries
            if is_last or self._clock.read_s() + wait_s > ends_s:
                break
            self._clock.sleep(wait_s)
        raise ProviderUnavailable(f"{self._server} {reason}") from cause

    def _post(self, path: str, content: bytes, timeout_s: float) -> httpx.Response:
        """One answer read whole, within ``timeout_s`` from the first byte to the last.

        httpx's own timeout is for each piece: a server that drips would never end.
        """
        client = self._get_client()
        ends_s = self._clock.read_s() + timeout_s
        body = bytearray()
        with client.stream(
            "POST", self._url + path, content=content, timeout=timeout_s
        ) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > _MAX_ANSWER_BYTES:
                    raise ProviderUnavailable(
                        f"{self._server} gave an answer longer than "
                        f"{_MAX_ANSWER_BYTES:,} bytes"
                    )
                if self._clock.read_s() > ends_s:
                    raise httpx.ReadTimeout("the answer takes too long")
        return httpx.Response(
            response.status_code, headers=_plain(response), content=bytes(body)
        )

    def _parse(self, response: httpx.Response) -> Json:
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError as exc:
            raise ProviderUnavailable(
                f"{self._server} gave an answer that is not JSON"
            ) from exc

    def _describe(self, error: httpx.HTTPError, timeout_s: float) -> str:
        if isinstance(error, httpx.TimeoutException):
            return f"gave no answer within {timeout_s:g} seconds"
        if isinstance(error, httpx.ConnectError):
            return "cannot be reached"
        return f"broke off ({self._safe(str(error)) or type(error).__name__})"

    def _raise_refusal(self, response: httpx.Response, reason: str) -> None:
        """Raise when the same request would be refused again."""
        status = response.status_code
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (
            status in _MAY_MEAN_SIZE and _SIZE_WORDS.search(reason)
        ):
            raise TooLarge(f"{self._server} {reason}")
        may_pass = response.is_server_error or status in _MAY_PASS
        if not may_pass or _OUT_OF_QUOTA in response.content:
            raise ProviderRefused(f"{self._server} {reason}")

    def _said(self, response: httpx.Response) -> str:
        if response.is_redirect:
            return f"sends elsewhere (status {response.status_code})"
        said = self._safe(_message(response))
        return f"answered {response.status_code}" + (f": {said}" if said else "")

    def _safe(self, text: str) -> str:
        """A server's words, fit to be shown, without the key should they repeat it."""
        if self._key:
            text = text.replace(self._key, "[key]")
        return one_line(neutralise(text), 200)


# -- texts ----------------------------------------------------------------------------


def _sendable(text: str) -> str:
    """A text that servers take: not too long, valid UTF-8, and not empty.

    Secrets in it are masked: what is sent leaves this process, and often the machine.
    """
    return replace_surrogates(mask_secrets(text.strip()[:_MAX_CHARS])) or " "


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
    """Two halves of a batch, or half of a single text; nothing when that is small."""
    if len(texts) > 1:
        middle = len(texts) // 2
        return [texts[:middle], texts[middle:]]
    (text,) = texts
    return [[text[: len(text) // 2]]] if len(text) >= 2 * _MIN_CHARS else []


def _joined(parts: Sequence[Vectors], server: str) -> Vectors:
    if len({part.shape[1] for part in parts}) > 1:
        raise ProviderUnavailable(f"{server} gave vectors of different lengths")
    return np.concatenate(parts)


def _is_address(url: str) -> bool:
    try:
        parsed = urlsplit(url)
        _ = httpx.URL(url), parsed.port  # both read it, and not all that the other does
    except (ValueError, httpx.InvalidURL):
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.hostname)


# -- answers --------------------------------------------------------------------------


def _retry_after_s(response: httpx.Response) -> float | None:
    """How long the server asks to wait; None when it does not say it in seconds."""
    try:
        asked_s = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return asked_s if asked_s > 0 else None


def _plain(response: httpx.Response) -> dict[str, str]:
    """The headers that still hold for a body that has been read and unpacked."""
    return {
        name: value
        for name, value in response.headers.items()
        if name in ("retry-after", "location")
    }


def _message(response: httpx.Response) -> str:
    """What the server says went wrong, in whichever of the usual shapes it says so."""
    try:
        match orjson.loads(response.content):
            case {"error": {"message": str(said)}}:
                return said
            case {"error": str(said)} | {"message": str(said)} | {"detail": str(said)}:
                return said
            case [{"error": {"message": str(said)}}, *_]:
                return said
    except orjson.JSONDecodeError:
        pass
    return ""
