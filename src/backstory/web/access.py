"""Access to the page: only for browsers of the person who started it.

The link that is opened carries a random token, which works once: it is exchanged for a
cookie, by a redirect that drops it from the address. Cookies know no ports, so the
cookie's name has the port in it.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import RedirectResponse, Response

from backstory.system.loopback import OwnNames

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from backstory.web.site import Site

# Served without a cookie: error pages use it too, and it has nothing from the memory.
STATIC = "/static/"
TOKEN = "token"
READING = frozenset({"GET", "HEAD"})
# Nothing may run or load but our own files; nothing may be sent elsewhere.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# The address of each of our files changes with its content, so browsers may keep it.
_KEPT = "private, max-age=31536000, immutable"
# Makes the response that says why a request is refused, from a status code.
Refuse = Callable[[int, "Scope"], Response]


class Guard:
    """Lets only permitted requests in, and adds headers to every answer."""

    def __init__(self, app: "Site", *, port: int, refuse: Refuse) -> None:
        self._app = app
        self._own = OwnNames(port)
        self._refuse = refuse
        self._cookie_name = f"backstory-{port}"
        self._cookie = secrets.token_urlsafe(32)
        self._token: str | None = secrets.token_urlsafe(32)

    @property
    def opening(self) -> str:
        """The path that lets a browser in; it works once."""
        return f"/?{TOKEN}={self._token}"

    def close(self) -> None:
        """Close the memory that is shown."""
        self._app.close()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._check(scope) or self._app
            await answer(scope, receive, with_headers(send, scope["path"]))
        # Web sockets are not supported: such a request is closed without an answer.

    def _check(self, scope: "Scope") -> Response | None:
        """What to answer instead of the page; None if the request is permitted."""
        headers = Headers(scope=scope)
        if not self._own.has_host(headers.get("host", "")):
            return self._refuse(421, scope)
        if not is_from_own_page(scope["method"], headers, self._own.has_origin):
            return self._refuse(403, scope)
        if scope["path"].startswith(STATIC):
            return None
        has_cookie = self._has_cookie(headers)
        given = QueryParams(scope["query_string"]).get(TOKEN)
        if given is not None and (has_cookie or self._takes(given)):
            return self._let_in()
        return None if has_cookie else self._refuse(401, scope)

    def _has_cookie(self, headers: Headers) -> bool:
        kept = find_cookie(headers, self._cookie_name)
        return kept is not None and _is_same(kept, self._cookie)

    def _takes(self, given: str) -> bool:
        """Whether this is the token, which stops working then."""
        if self._token is None or not _is_same(given, self._token):
            return False
        self._token = None
        return True

    def _let_in(self) -> Response:
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self._cookie_name, self._cookie, httponly=True, samesite="strict"
        )
        return answer


def is_from_own_page(
    method: str, headers: Headers, has_origin: Callable[[str], bool]
) -> bool:
    """Whether a request does not come from a page of another site.

    One that changes something must come from one of our own pages, whose origin
    ``has_origin`` recognizes. Our forms have no origin, because we send no referrer;
    browsers then say where they come from in a header that no page can set.
    """
    origin = headers.get("origin", "")
    sent_by = headers.get("sec-fetch-site", "")
    if sent_by == "same-origin":
        return origin in ("", "null") or has_origin(origin)
    if origin:
        return not sent_by and has_origin(origin)
    return method in READING


def find_cookie(headers: Headers, wanted: str) -> str | None:
    """The value of a cookie."""
    found: SimpleCookie = SimpleCookie()
    for each in headers.getlist("cookie"):
        # A malformed cookie of another program must not hide ours.
        for pair in each.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == wanted:
                found[name] = value
    kept = found.get(wanted)
    return None if kept is None else kept.value


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def with_headers(send: "Send", path: str) -> "Callable[[Message], Awaitable[None]]":
    async def send_with_headers(message: "Message") -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(_HEADERS)
            if path.startswith(STATIC) and message["status"] == HTTPStatus.OK:
                headers["Cache-Control"] = _KEPT
        await send(message)

    return send_with_headers
