"""The application: who may ask for what, and which part answers."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles

from backstory.errors import BackstoryError, BadQuery, StoreProblem
from backstory.mcp.calls import Calls, RequestContext
from backstory.mcp.current_session import CurrentSession
from backstory.mcp.http import PATH as MCP_PATH
from backstory.mcp.http import build_open_app
from backstory.mcp.server import ServedMemory, build_server_of
from backstory.mcp.tools import WRITING_TOOLS
from backstory.push.batches import MAX_SENT_BYTES
from backstory.serve.json_log import REQUESTS
from backstory.serve.limits import RequestLimits, ServeLimits
from backstory.serve.memories import AllInUse, OpenMemories, UsedMemory
from backstory.serve.metrics import MEDIA_TYPE, Metrics
from backstory.serve.names import AllowedNames, is_same_origin
from backstory.serve.requests import CountedRequest
from backstory.serve.sign_ins import COOKIE, LASTS_S, SignIns
from backstory.tools import TOOLS
from backstory.values.access import Grant, Scope
from backstory.values.structs import FrozenStruct, to_builtins
from backstory.web.access import (
    READING,
    STATIC,
    find_cookie,
    is_from_own_page,
    with_headers,
)
from backstory.web.api import is_about_request, render_error
from backstory.web.app import (
    NOWHERE,
    ErrorPages,
    asks_for_page,
    iter_shared_routes,
)
from backstory.web.forms import read_body, read_form
from backstory.web.offers import Offers
from backstory.web.templating import HERE, Templates, static_folder

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Send
    from starlette.types import Scope as AsgiScope

    from backstory.memory import Memory
    from backstory.store.base.access_tokens import AccessTokens

logger = logging.getLogger(__name__)
requests_logger = logging.getLogger(REQUESTS)

SIGN_IN = "/sign-in"
_SIGN_OUT = "/sign-out"
PUSH = "/api/push"
_HEALTH = "/health"
_READY = "/ready"
_METRICS = "/metrics"
# Paths where no browser is expected, so refusals are plain text.
_FOR_PROGRAMS = frozenset({MCP_PATH, _METRICS})
_BEARER = "bearer "
# The key under which a request carries what is open for it.
_OPENED = "backstory-opened"
_MAX_BYTES = 4_000_000
_MAX_TOKEN_BYTES = 10_000
# How long the answer to whether the store can be reached is reused.
_READY_S = 1.0
# How often to look for memories that nobody uses.
_CLOSE_EVERY_S = 15.0

Result = TypeVar("Result")
Endpoint = Callable[[Request], Awaitable[Response]]


class Refusal(Exception):
    """Why a request is not answered: a status, and words for whoever asks."""

    def __init__(
        self, status: int, reason: str, message: str, hint: str = "", **headers: str
    ) -> None:
        super().__init__(reason)
        self.status = status
        # One of a few words, for the metrics.
        self.reason = reason
        self.message = message
        self.hint = hint
        self.headers = {name.replace("_", "-"): each for name, each in headers.items()}


class TenantParts:
    """What answers for one memory, for tokens that may write and those that may not."""

    def __init__(self, pages: "dict[bool, ASGIApp]", tools: dict[bool, ServedMemory]):
        self.pages = pages
        self.tools = tools


class _Opened(FrozenStruct):
    """What is open for a request."""

    used: UsedMemory[TenantParts]
    grant: Grant


class TeamServer:
    """Answers every request with the memory of the tenant whose token it carries."""

    def __init__(
        self,
        tokens: "AccessTokens",
        open_memory: "Callable[[str], Memory]",
        names: AllowedNames,
        limits: ServeLimits,
        *,
        is_enabled: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """``is_enabled`` says whether the settings enable something, such as a tool."""
        self._tokens = tokens
        self._names = names
        self._limits = RequestLimits(
            limits.requests_per_minute, limits.requests_at_once
        )
        self.metrics = Metrics()
        self._sign_ins = SignIns()
        self._calls = Calls(limits.threads)
        self._threads = limits.threads
        self.memories = OpenMemories(
            open_memory,
            self._build_parts,
            most=limits.open_memories,
            idle_s=limits.idle_s,
        )
        self._is_ending = False
        self._in_flight = 0
        self._reached = (-math.inf, False)
        self._templates = {
            may_write: Templates(
                user_home=NOWHERE, offers=Offers(is_local=False, may_change=may_write)
            )
            for may_write in (False, True)
        }
        self._errors = {
            may_write: SharedErrorPages(
                templates, "Whoever operates this server can look it up in its log."
            )
            for may_write, templates in self._templates.items()
        }
        enabled = [row.name for row in TOOLS if is_enabled(row.setting)]
        offered = {
            False: [name for name in enabled if name not in WRITING_TOOLS],
            True: enabled,
        }
        self._mcp = {
            may_write: build_open_app(build_server_of(self._find_tools, names))
            for may_write, names in offered.items()
        }
        self._static = Starlette(
            routes=[Mount(static_folder(), StaticFiles(directory=HERE / "static"))],
            exception_handlers=self._errors[False].by_kind,
        )
        self._lifespan = Router(lifespan=self._run)
        # Looking up a token must not wait for searches.
        self._lookups = anyio.CapacityLimiter(4)
        self.metrics.gauge("requests_in_flight", lambda: self._in_flight)
        self.metrics.gauge("open_memories", lambda: len(self.memories))
        self.metrics.gauge("signed_in", lambda: len(self._sign_ins))
        self.metrics.gauge("ready", lambda: not self._is_ending)

    # -- its life ---

    def begin_to_end(self) -> None:
        """From now on, say that no more requests should be sent here."""
        self._is_ending = True

    @property
    def is_ending(self) -> bool:
        return self._is_ending

    def close(self) -> None:
        self.memories.close()
        self._tokens.close()

    @asynccontextmanager
    async def _run(self, app: object) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = self._threads
        async with AsyncExitStack() as stack:
            for each in self._mcp.values():
                await stack.enter_async_context(each.router.lifespan_context(each))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(self._close_idle)
            yield
            tasks.cancel_scope.cancel()

    async def _close_idle(self) -> None:
        while not self._is_ending:
            await anyio.sleep(_CLOSE_EVERY_S)
            await self._in_thread(self.memories.close_idle)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(work, limiter=self._lookups)

    # -- one request ---

    async def __call__(
        self, scope: "AsgiScope", receive: "Receive", send: "Send"
    ) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        # Web sockets are not supported: such a request is closed without an answer.

    async def _answer(
        self, scope: "AsgiScope", receive: "Receive", send: "Send"
    ) -> None:
        request = CountedRequest(scope, receive, with_headers(send, scope["path"]))
        self._in_flight += 1
        try:
            try:
                await self._let_in(scope, request)
            except Refusal as exc:
                answer = self._refuse(exc, scope, request)
                await answer(scope, request.receive, request.send)
        except asyncio.CancelledError:
            # The time that requests had to finish is over.
            if request.status:
                raise
            answer = self._refuse(_ending(), scope, request)
            await answer(scope, request.receive, request.send)
        except Exception:
            # The kind of error is logged, without its text.
            logger.exception("a request failed")
            if not request.status:
                failed = PlainTextResponse("Something went wrong\n", status_code=500)
                await failed(scope, request.receive, request.send)
        finally:
            self._in_flight -= 1
            self._count(request)

    def _refuse(
        self, refusal: Refusal, scope: "AsgiScope", request: CountedRequest
    ) -> Response:
        self.metrics.add("refused_total", reason=refusal.reason)
        if request.path in _FOR_PROGRAMS:
            text = f"{refusal.message}\n"
            answer: Response = PlainTextResponse(text, status_code=refusal.status)
        else:
            answer = self._errors[False].explain(
                refusal.status, refusal.message, refusal.hint, scope
            )
        answer.headers.update(refusal.headers)
        return answer

    def _count(self, request: CountedRequest) -> None:
        self.metrics.add(
            "requests_total",
            route=request.route,
            method=request.method,
            status=str(request.status),
        )
        self.metrics.time(request.took_s, route=request.route)
        self.metrics.add("received_bytes_total", request.received)
        self.metrics.add("sent_bytes_total", request.sent)
        requests_logger.info(
            "request",
            {
                "request": request.request_id,
                "method": request.method,
                "route": request.route,
                "status": request.status,
                "ms": round(request.took_s * 1000, 1),
                "received": request.received,
                "sent": request.sent,
                "token": request.token_id,
            },
        )

    async def _let_in(self, scope: "AsgiScope", request: CountedRequest) -> None:
        if request.path == _HEALTH:
            await self._respond(PlainTextResponse("ok\n"), scope, request)
            return
        if request.path == _READY:
            await self._respond(await self._tell_ready(), scope, request)
            return
        self._check(scope, request)
        if request.path.startswith(STATIC):
            await self._static(scope, request.receive, request.send)
            return
        if request.path in (SIGN_IN, _SIGN_OUT):
            await self._respond(await self._sign(scope, request), scope, request)
            return
        grant = await self._find_grant(scope, request)
        request.token_id = grant.token_id
        if (grant.scope is Scope.METRICS) != (request.path == _METRICS):
            raise Refusal(403, "scope", "This token is not for this address")
        if request.path == _METRICS:
            figures = self.metrics.render()
            answer = PlainTextResponse(figures, media_type=MEDIA_TYPE)
            await self._respond(answer, scope, request)
            return
        await self._ask_tenant(scope, request, grant)

    async def _respond(
        self, answer: Response, scope: "AsgiScope", request: CountedRequest
    ) -> None:
        await answer(scope, request.receive, request.send)

    async def _tell_ready(self) -> Response:
        if self._is_ending:
            return PlainTextResponse("ending\n", status_code=503)
        at, is_reached = self._reached
        if time.monotonic() - at > _READY_S:
            is_reached = await self._in_thread(self._reach_store)
            self._reached = (time.monotonic(), is_reached)
        if not is_reached:
            return PlainTextResponse("the store cannot be reached\n", status_code=503)
        return PlainTextResponse("ready\n")

    def _reach_store(self) -> bool:
        try:
            self._tokens.has_usable()
        except StoreProblem:
            logger.exception("the store cannot be reached")
            return False
        return True

    # -- who asks ---

    def _check(self, scope: "AsgiScope", request: CountedRequest) -> None:
        """Refuse requests that no program of a person with a token would send."""
        host = request.headers.get("host", "")
        if not self._names.has_host(host):
            raise Refusal(
                421,
                "host",
                "The server is not known under this name",
                "'backstory serve --name' sets the names under which it may be asked.",
            )

        def is_own(origin: str) -> bool:
            return is_same_origin(origin, scheme=scope["scheme"], host=host)

        has_token = _read_bearer(request.headers) is not None
        origin = request.headers.get("origin", "")
        is_allowed = (
            not origin or is_own(origin)
            if has_token
            else is_from_own_page(scope["method"], request.headers, is_own)
        )
        # A program without a token is told that it needs one.
        if not is_allowed and (origin or find_cookie(request.headers, COOKIE)):
            raise Refusal(
                403,
                "origin",
                "This request came from another page",
                "Only the page itself may ask.",
            )
        request.most_bytes = _MAX_BYTES
        if request.path == SIGN_IN:
            request.most_bytes = _MAX_TOKEN_BYTES
        elif request.path == PUSH:
            request.most_bytes = MAX_SENT_BYTES
        if request.is_too_large():
            raise Refusal(413, "size", "This is too much at once")

    async def _find_grant(self, scope: "AsgiScope", request: CountedRequest) -> Grant:
        token = _read_bearer(request.headers)
        cookie = None if token else find_cookie(request.headers, COOKIE)
        if cookie is not None:
            token = self._sign_ins.find_token(cookie)
        grant = None if token is None else await self._look_up(token)
        if grant is not None:
            return grant
        if cookie is not None:
            self._sign_ins.end(cookie)
        is_for_page = asks_for_page(scope) and request.path not in _FOR_PROGRAMS
        if is_for_page and scope["method"] in READING:
            raise Refusal(303, "signed out", "Sign in first", "", location=SIGN_IN)
        raise Refusal(
            401,
            "token",
            "A valid token is required",
            "Send it as 'Authorization: Bearer ...'.",
            www_authenticate='Bearer realm="backstory"',
        )

    async def _look_up(self, token: str) -> Grant | None:
        try:
            return await self._in_thread(lambda: self._tokens.find_grant(token))
        except StoreProblem as exc:
            raise _unavailable() from exc

    async def _sign(self, scope: "AsgiScope", request: CountedRequest) -> Response:
        """Sign a browser in that sends a token, or sign it out."""
        cookie = find_cookie(request.headers, COOKIE)
        if scope["method"] in READING:
            return self._show_sign_in()
        if scope["method"] != "POST":
            raise Refusal(405, "method", "This address does not take such requests")
        form = await read_form(Request(scope, request.receive))
        if cookie is not None:
            self._sign_ins.end(cookie)
        if request.path == _SIGN_OUT:
            answer = RedirectResponse(SIGN_IN, status_code=303)
            answer.delete_cookie(COOKIE, secure=True, httponly=True, samesite="strict")
            return answer
        token = form.get("token", "").strip()
        grant = await self._look_up(token)
        if grant is None or grant.scope is Scope.METRICS:
            self.metrics.add("refused_total", reason="token")
            return self._show_sign_in(is_wrong=True)
        request.token_id = grant.token_id
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            COOKIE,
            self._sign_ins.begin(token),
            max_age=LASTS_S,
            secure=True,
            httponly=True,
            samesite="strict",
        )
        return answer

    def _show_sign_in(self, *, is_wrong: bool = False) -> Response:
        status = 401 if is_wrong else 200
        values = {"is_wrong": is_wrong}
        return self._templates[False].render("sign_in.html", values, status)

    # -- what is asked for ---

    async def _ask_tenant(
        self, scope: "AsgiScope", request: CountedRequest, grant: Grant
    ) -> None:
        is_page = request.path != MCP_PATH
        if is_page and not grant.may_write and scope["method"] not in READING:
            raise Refusal(403, "scope", "This token may only read")
        wait_s = self._limits.begin(grant.tenant)
        if wait_s is not None:
            raise Refusal(
                429,
                "rate",
                "Too many requests",
                "Try again later.",
                retry_after=str(math.ceil(wait_s)),
            )
        try:
            used = await self._take(grant)
            try:
                opened = {_OPENED: _Opened(used, grant)}
                answer = (
                    used.built.pages[grant.may_write]
                    if is_page
                    else self._mcp[grant.may_write]
                )
                await answer({**scope, **opened}, request.receive, request.send)
            finally:
                self.memories.give_back(used)
        finally:
            self._limits.end(grant.tenant)

    async def _take(self, grant: Grant) -> UsedMemory[TenantParts]:
        try:
            return await anyio.to_thread.run_sync(self.memories.take, grant.tenant)
        except AllInUse as exc:
            raise Refusal(
                503, "busy", "The server is busy", "Try again.", retry_after="1"
            ) from exc
        except StoreProblem as exc:
            logger.exception("a memory cannot be opened")
            raise _unavailable() from exc

    def _build_parts(self, memory: "Memory") -> TenantParts:
        current = CurrentSession(memory)
        return TenantParts(
            {
                may_write: Starlette(
                    routes=[
                        *iter_shared_routes(
                            memory,
                            templates,
                            Offers(is_local=False, may_change=may_write),
                        ),
                        Route(PUSH, self._receive_push(memory), methods=["POST"]),
                    ],
                    exception_handlers=self._errors[may_write].by_kind,
                )
                for may_write, templates in self._templates.items()
            },
            {
                may_write: ServedMemory(
                    memory,
                    current,
                    self._calls,
                    is_local=False,
                    may_write=may_write,
                )
                for may_write in (False, True)
            },
        )

    def _receive_push(self, memory: "Memory") -> Endpoint:
        """The endpoint that stores a pushed batch, and answers when it is stored."""

        async def receive(request: Request) -> Response:
            batch = await read_body(request, MAX_SENT_BYTES)
            try:
                receipt = await run_in_threadpool(memory.receive_push, batch)
            except BadQuery as exc:
                return render_error(exc)
            self.metrics.add("pushed_messages_total", receipt.new_messages)
            self.metrics.add("pushed_sessions_total", receipt.sessions)
            return JSONResponse(to_builtins(receipt))

        return receive

    def _find_tools(self, context: RequestContext) -> ServedMemory:
        assert context.request is not None
        opened: _Opened = context.request.scope[_OPENED]
        return opened.used.built.tools[opened.grant.may_write]


class SharedErrorPages(ErrorPages):
    """Error pages that reveal nothing about the server."""

    async def show_known(self, request: "Request", exc: Exception) -> Response:
        assert isinstance(exc, BackstoryError)
        if is_about_request(exc):
            return await super().show_known(request, exc)
        logger.error("a memory cannot be used", exc_info=exc)
        return self.explain(503, *_UNAVAILABLE, request.scope)


_UNAVAILABLE = ("The memory cannot be used right now", "Try again in a moment.")


def _unavailable() -> Refusal:
    message, hint = _UNAVAILABLE
    return Refusal(503, "store", message, hint, retry_after="5")


def _ending() -> Refusal:
    return Refusal(503, "ending", "The server is ending", "Try again.", retry_after="5")


def _read_bearer(headers: Headers) -> str | None:
    given = headers.get("authorization", "")
    if given[: len(_BEARER)].lower() != _BEARER:
        return None
    return given[len(_BEARER) :].strip()
