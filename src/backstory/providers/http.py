"""Ask servers over HTTP, within limits of time and size.

Everything that can go wrong between a request and its answer is handled here, for
embedders and language models alike. Temporary failures are retried; others are reported
in the server's words, without the key and without control characters.
"""

import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson

from backstory.errors import ConfigError, ProviderRefused, ProviderUnavailable
from backstory.system.fork_safety import reset_in_child
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.redaction import mask_secrets
from backstory.values.structs import FrozenStruct

# Any: a server's JSON can hold anything anywhere; it is checked on reading.
Json = Any

_FIRST_WAIT_S = 0.5
_MAX_ANSWER_BYTES = 64_000_000
_MAX_SAID_CHARS = 200
_MAX_REFUSAL_CHARS = 4_000

_TEMPORARY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
# Ollama has used 500 for this, too.
_MAY_MEAN_SIZE = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)
_SIZE_WORDS = re.compile(
    "too (long|large|many)|exceed|context (length|size|window)|maximum", re.IGNORECASE
)
# Other limits in similar words, for which a shorter text would not help.
_OTHER_LIMITS = re.compile(
    r"deadline|quota|rate limit|too many requests|(output|completion) tokens"
    r"|max_(completion_)?tokens is too",
    re.IGNORECASE,
)
# OpenAI says this with the status that otherwise means "try again in a moment".
_OUT_OF_QUOTA = b"insufficient_quota"


class TooLarge(ProviderRefused):
    """The server refused a request because of its size; a smaller one may work."""


class Declined(ProviderRefused):
    """The server does not accept the request as it is; ``said`` is its answer."""

    def __init__(self, message: str, *, hint: str | None, said: str) -> None:
        super().__init__(message, hint=hint)
        self.said = said


class Clock(FrozenStruct):
    """How time passes while waiting for a server; tests pass one that does not wait."""

    read_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Patience(FrozenStruct):
    """How long one request may take, with all retries and the waiting in between."""

    max_tries: int
    max_wait_s: float
    max_total_s: float


class Client(FrozenStruct):
    """Who asks a server: its name in errors, and where its settings are.

    ``section`` is the first part of its settings' names. Where a hint is None, the
    error's own hint is shown.
    """

    kind: str
    name: str
    section: str
    default_url: str
    needs_key: bool = False
    refused_hint: str | None = None
    unavailable_hint: str | None = None


class Server:
    """One server of a provider.

    It may be used from several threads at once, and in a forked child, which makes its
    own connection. Raises ``ConfigError`` for an address or a key that cannot work.
    """

    _lock: threading.Lock
    _http: httpx.Client | None

    def __init__(
        self,
        client: Client,
        *,
        url: str,
        key: str,
        headers: Mapping[str, str],
        timeout_s: float,
        clock: Clock | None = None,
        max_answer_bytes: int = _MAX_ANSWER_BYTES,
    ) -> None:
        self._client = client
        self._url = (url or client.default_url).rstrip("/")
        self._key = key.strip()
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._clock = clock or Clock()
        self._max_answer_bytes = max_answer_bytes
        self._check_settings()
        self.reset_after_fork()
        reset_in_child(self)

    def _check_settings(self) -> None:
        who, section = (
            f"{self._client.kind} '{self._client.name}'",
            self._client.section,
        )
        if not is_address(self._url):
            shown = one_line(neutralize(mask_secrets(self._url)), 80)
            raise ConfigError(
                f"'{shown}' is not an http or https address",
                hint=f"set {section}.url to one like {self._client.default_url}",
            )
        # The key is not shown: it may be wrong by just one character.
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError(
                f"the key of the {who} contains characters that are not valid in a key",
                hint=f"set {section}.key again",
            )
        if self._client.needs_key and self.is_default_server and not self._key:
            raise ConfigError(
                f"the {who} needs a key for {self._host}",
                hint=f"set {section}.key, or {section}.url to a server that needs none",
            )

    @property
    def is_default_server(self) -> bool:
        """Whether it is the provider's own server."""
        return self._url == self._client.default_url

    @property
    def shown(self) -> str:
        """What errors call the server."""
        return f"the {self._client.kind} '{self._client.name}' at {self._host}"

    @property
    def _host(self) -> str:
        return httpx.URL(self._url).netloc.decode()

    def close(self) -> None:
        with self._lock:
            if self._http is not None:
                self._http.close()
            self._http = None

    def reset_after_fork(self) -> None:
        """Start without a connection; a forked child must not use its parent's."""
        self._lock = threading.Lock()
        self._http = None

    # -- asking ---

    def ask(self, path: str, body: Json, patience: Patience) -> Json:
        """Ask the server, with retries as long as ``patience`` allows.

        Raises ``TooLarge``, ``Declined`` if a different request may work, other
        ``ProviderRefused`` if a setting must change, and ``ProviderUnavailable``.
        """
        content = orjson.dumps(body)
        ends_s = self._clock.read_s() + patience.max_total_s
        for number in range(patience.max_tries):
            cause: Exception | None = None
            asked_s: float | None = None
            timeout_s = min(self._timeout_s, ends_s - self._clock.read_s())
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
            if is_last or self._clock.read_s() + wait_s >= ends_s:
                break
            self._clock.sleep(wait_s)
        unavailable = self.unavailable(reason)
        was_reached = not isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout)
        unavailable.may_have_worked = cause is not None and was_reached
        raise unavailable from cause

    def unavailable(self, reason: str) -> ProviderUnavailable:
        """The error for an unusable answer; ``reason`` as in "gave no vectors"."""
        return ProviderUnavailable(
            f"{self.shown} {reason}", hint=self._client.unavailable_hint
        )

    def _get_http(self) -> httpx.Client:
        with self._lock:
            if self._http is None:
                self._http = open_http(
                    self._url, {"content-type": "application/json"} | self._headers
                )
            return self._http

    def _post(self, path: str, content: bytes, timeout_s: float) -> httpx.Response:
        """The whole answer, within ``timeout_s`` from the first byte to the last.

        httpx's own timeout is for each piece, so a slow trickle would never time out.
        """
        http = self._get_http()
        ends_s = self._clock.read_s() + timeout_s
        body = bytearray()
        with http.stream(
            "POST", self._url + path, content=content, timeout=timeout_s
        ) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > self._max_answer_bytes:
                    raise self.unavailable(
                        f"gave an answer longer than {self._max_answer_bytes:,} bytes"
                    )
                if self._clock.read_s() > ends_s:
                    raise httpx.ReadTimeout("the answer takes too long")
        return httpx.Response(
            response.status_code, headers=_plain(response), content=bytes(body)
        )

    # -- what came back ---

    def _parse(self, response: httpx.Response) -> Json:
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError as exc:
            raise self.unavailable("gave an answer that is not JSON") from exc

    def _describe(self, error: httpx.HTTPError, timeout_s: float) -> str:
        if isinstance(error, httpx.TimeoutException):
            # A little of the time had passed when the request was sent.
            return f"gave no answer within {round(timeout_s, 2):.3g} seconds"
        if isinstance(error, httpx.ConnectError):
            distrust = find_distrust(error)
            return "cannot be reached" if distrust is None else distrust.reason
        said = self._safe(str(error)) or type(error).__name__
        return f"closed the connection ({said})"

    def _raise_refusal(self, response: httpx.Response, reason: str) -> None:
        """Raise an error if the same request would be refused again."""
        status, message = response.status_code, f"{self.shown} {reason}"
        hint = self._client.refused_hint
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (
            status in _MAY_MEAN_SIZE and means_size(_message(response))
        ):
            raise TooLarge(message, hint=hint)
        if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
            said = response.text[:_MAX_REFUSAL_CHARS]
            raise Declined(message, hint=hint, said=said)
        is_temporary = response.is_server_error or status in _TEMPORARY
        if not is_temporary or _OUT_OF_QUOTA in response.content:
            raise ProviderRefused(message, hint=hint)

    def _said(self, response: httpx.Response) -> str:
        if response.is_redirect:
            return f"redirects (status {response.status_code})"
        said = self._safe(_message(response))
        return f"answered {response.status_code}" + (f": {said}" if said else "")

    def _safe(self, text: str) -> str:
        """A server's words, safe to show, and without the key if they repeat it."""
        if self._key:
            text = text.replace(self._key, "[key]")
        return one_line(neutralize(text), _MAX_SAID_CHARS)


def open_http(url: str, headers: Mapping[str, str]) -> httpx.Client:
    """A client for one server.

    It trusts the authorities that httpx brings, and those of this machine.
    """
    return httpx.Client(
        headers=headers,
        verify=_read_authorities() if _is_encrypted(url) else _trust_nobody(),
        # A redirect could send texts and the key to an unknown server.
        follow_redirects=False,
        # Proxies and .netrc in the environment are not settings of ours.
        trust_env=False,
    )


def _is_encrypted(url: str) -> bool:
    return urlsplit(url).scheme == "https"


def _read_authorities() -> ssl.SSLContext:
    trusted = httpx.create_ssl_context(trust_env=False)
    # A company's own authority is known only to the machine or in SSL_CERT_FILE.
    trusted.load_default_certs()
    return trusted


def _trust_nobody() -> ssl.SSLContext:
    """For connections without TLS, because reading the authorities takes 40 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Distrust(FrozenStruct):
    """Why a server's certificate is not trusted: words, and OpenSSL's number."""

    reason: str
    code: int


def find_distrust(error: BaseException) -> Distrust | None:
    """What is wrong with a server's certificate, if that is why it is unreachable."""
    for cause in _iter_causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            # It repeats the name, which is known.
            said = cause.verify_message.partition(",")[0]
            reason = f"has a certificate that is not trusted ({said})"
            return Distrust(reason, cause.verify_code)
    return None


def is_about_tls(error: BaseException) -> bool:
    """Whether a server is unreachable because of TLS, such as one without it."""
    return any(isinstance(cause, ssl.SSLError) for cause in _iter_causes(error))


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def is_address(url: str) -> bool:
    """Whether a text is an http or https address of some host."""
    try:
        parsed = urlsplit(url)
        _ = httpx.URL(url), parsed.port  # each rejects what the other does not
    except (ValueError, httpx.InvalidURL):
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.hostname)


def means_size(said: str) -> bool:
    """Whether a refusal in these words is about the length of what was sent."""
    return bool(_SIZE_WORDS.search(said)) and not _OTHER_LIMITS.search(said)


def _retry_after_s(response: httpx.Response) -> float | None:
    """How long the server asks to wait; None if it does not say."""
    asked = response.headers.get("retry-after", "")
    try:
        asked_s = float(asked)
    except ValueError:
        try:
            # By the server's own clock, which may differ from ours.
            now = parsedate_to_datetime(response.headers.get("date", ""))
            asked_s = (parsedate_to_datetime(asked) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return asked_s if asked_s > 0 else None


def _plain(response: httpx.Response) -> dict[str, str]:
    """The headers that still apply to a body that has been decompressed."""
    return {
        name: value
        for name, value in response.headers.items()
        if name in ("retry-after", "date", "location")
    }


def _message(response: httpx.Response) -> str:
    """What the server says went wrong, in any of the usual shapes."""
    try:
        match orjson.loads(response.content):
            case {"error": {"message": str(said)}}:
                return said
            case {"error": str(said)} | {"message": str(said)} | {"detail": str(said)}:
                return said
            case [{"error": {"message": str(said)}}, *_]:
                return said
            case {"detail": list(said)} | {"message": dict(said)}:
                return orjson.dumps(said).decode()
    except orjson.JSONDecodeError:
        pass
    return ""
