"""A Backstory server that other machines use: it takes what is pushed, and searches.

Everything that goes wrong is a ``ProviderError``, in the server's own words and without
the token.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import httpx
import msgspec
import orjson

from backstory.errors import ConfigError, ProviderRefused, ProviderUnavailable
from backstory.providers.http import (
    find_distrust,
    is_about_tls,
    is_address,
    open_http,
)
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.identity import bytes_hash
from backstory.values.pushes import PushReceipt

_MAX_ANSWER_BYTES = 16_000_000
_MAX_SAID_CHARS = 200
# How long the server may take to store a batch.
_PUSH_S = 120.0
_CONNECT_S = 10.0
_TEMPORARY = frozenset({408, 425, 429})
# What to do about a status; "{setting}" stands for the setting with the address.
_HINTS = {
    401: "check push.token: it may have been revoked or have expired",
    403: "pushing needs a token of the scope read-write, and searching one of read",
    413: "a proxy before the server must take requests of 16 MB (in nginx: "
    "client_max_body_size 16m)",
    421: "whoever operates the server has to allow this name with --name",
}
_EXAMPLE = "such as https://memory.example.org"
_LATER = "nothing is lost: what is new is sent the next time"
_NO_TLS = "check {setting}: if there is no TLS at this port, it begins with http://"
_TLS = (
    "check {setting}: if there is TLS at this port, it begins with https://; nothing "
    "is lost"
)
_AWAY = "check that the server runs, and {setting}; " + _LATER
_TRUST = (
    "add the authority that signed it to those this machine trusts, or name its PEM "
    "file in the environment variable SSL_CERT_FILE"
)
# What to do instead about other defects of a certificate, by OpenSSL's numbers.
_NAMES = "check {setting}: it must use a name that the certificate is for"
_CERTIFICATE_HINTS = {
    9: "check the clock of this machine, and that of the server",
    10: "whoever operates the server has to renew it; " + _LATER,
    62: _NAMES,
    64: _NAMES,
}

# Any: a server's JSON can hold anything; it is checked on reading.
Json = Any


class TeamServerClient:
    """One server, and the token for it."""

    def __init__(self, url: str, token: str, *, setting: str = "push.url") -> None:
        self.url = url.rstrip("/")
        self._setting = setting
        if not is_address(self.url):
            raise ConfigError(
                f"{setting} is not an http or https address",
                hint="it looks like https://memory.example.org",
            )
        if httpx.URL(self.url).userinfo:
            # These would be sent instead of the token.
            raise ConfigError(
                f"{setting} has a user or a password in it",
                hint="leave them out: push.token lets this machine in",
            )
        if not self._is_encrypted and not self._is_loopback:
            raise ConfigError(
                f"{setting}: the token would travel unencrypted to {self._host}",
                hint="use an https address",
            )
        if not (token and token.isascii() and token.isprintable()):
            raise ConfigError(
                f"there is no token for {self._host}",
                hint="set push.token to env:NAME or file:/path, where the token is",
            )
        self._token = token
        self._http = open_http(self.url, {"Authorization": f"Bearer {token}"})

    @property
    def token_hash(self) -> str:
        """A hash that identifies the token, and may be kept in a file."""
        return bytes_hash(self._token.encode())

    @property
    def _is_encrypted(self) -> bool:
        return httpx.URL(self.url).scheme == "https"

    @property
    def _is_loopback(self) -> bool:
        return httpx.URL(self.url).host in ("127.0.0.1", "::1", "localhost")

    @property
    def _host(self) -> str:
        return httpx.URL(self.url).netloc.decode()

    def close(self) -> None:
        self._http.close()

    def push(self, batch: bytes) -> PushReceipt:
        """Send a batch; it is stored there when this returns."""
        answer = self._ask(
            "POST",
            "/api/push",
            timeout_s=_PUSH_S,
            content=batch,
            headers={"Content-Type": "application/zstd"},
        )
        try:
            return msgspec.convert(answer, PushReceipt)
        except msgspec.MsgspecError as exc:
            reason = "gave an answer that is not a receipt"
            raise self._unavailable(reason, hint=self._another_place) from exc

    def search(self, given: Mapping[str, str], *, timeout_s: float) -> Json:
        """What the server finds, in the format of its API."""
        return self._ask("GET", "/api/search", timeout_s=timeout_s, params=given)

    # Any: the arguments of a request, whatever they are.
    def _ask(self, method: str, path: str, *, timeout_s: float, **given: Any) -> Json:
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S))
        try:
            with self._http.stream(
                method, self.url + path, timeout=timeout, **given
            ) as response:
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > _MAX_ANSWER_BYTES:
                        raise self._unavailable("gave an answer that is too long")
        except httpx.TimeoutException as exc:
            reason = f"gave no answer within {timeout_s:.3g} seconds"
            raise self._unavailable(reason) from exc
        except httpx.ConnectError as exc:
            if distrust := find_distrust(exc):
                hint = _CERTIFICATE_HINTS.get(distrust.code, _TRUST)
                raise self._unavailable(distrust.reason, hint=hint) from exc
            if is_about_tls(exc):
                raise self._unavailable("does not speak TLS", hint=_NO_TLS) from exc
            raise self._unavailable("cannot be reached", hint=_AWAY) from exc
        except httpx.HTTPError as exc:
            hint = _LATER if self._is_encrypted else _TLS
            raise self._unavailable("closed the connection", hint=hint) from exc
        if response.status_code != HTTPStatus.OK:
            raise self._to_error(response.status_code, bytes(body))
        return self._parse(bytes(body))

    def _parse(self, body: bytes) -> Json:
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as exc:
            reason = "gave an answer that is not JSON"
            raise self._unavailable(reason, hint=self._another_place) from exc

    def _to_error(self, status: int, body: bytes) -> Exception:
        said = ""
        try:
            match orjson.loads(body):
                case {"error": {"message": str(message)}}:
                    said = one_line(neutralize(message), _MAX_SAID_CHARS)
        except orjson.JSONDecodeError:
            pass
        said = said.replace(self._token, "[token]")
        reason = f"answered {status}" + (f": {said}" if said else "")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TEMPORARY:
            return self._unavailable(reason)
        hint = _HINTS.get(status, self._another_place)
        return ProviderRefused(f"the server at {self._host} {reason}", hint=hint)

    @property
    def _another_place(self) -> str:
        """A hint for an address where there is a different program, or none."""
        path = httpx.URL(self.url).path.rstrip("/")
        rest = f", without {path}" if path else ""
        return f"check {self._setting}: it is the server's address, {_EXAMPLE}{rest}"

    def _unavailable(self, reason: str, *, hint: str = _LATER) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"the server at {self._host} {reason}",
            hint=hint.replace("{setting}", self._setting),
        )
