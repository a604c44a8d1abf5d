"""The application: which page answers which address, and what errors look like."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from backstory.errors import BackstoryError, BadQuery, UnknownName
from backstory.web.access import STATIC, Guard
from backstory.web.conversation import ConversationPage
from backstory.web.forgetting import ForgetPage
from backstory.web.notes import NotesPages
from backstory.web.search import SearchPage
from backstory.web.sessions import SessionsPage
from backstory.web.status import StatusPage
from backstory.web.templating import HERE, Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

# How many requests are worked on at once; the others wait for their turn. Every thread
# has a connection to the index with a cache of its own.
_MAX_AT_ONCE = 4
_LINK = "Open the link that 'backstory web' prints when it starts. It works once."
_REFUSALS = {
    401: ("This browser has no access", _LINK),
    403: ("This request came from another page", "Only this page itself may ask."),
    404: ("There is nothing at this address", "Try searching for it."),
    405: ("This address does not take such requests", "Go back and try again."),
    413: ("This is too much text", "Save it in several parts."),
    421: ("This is not the name of this page", _LINK),
}


def build_app(memory: "Memory", *, user_home: Path, port: int) -> Guard:
    """The application that answers a browser's requests for a memory."""
    templates = Templates(user_home=user_home)
    errors = _ErrorPages(templates)
    search = SearchPage(memory, templates)
    sessions = SessionsPage(memory, templates)
    conversation = ConversationPage(memory, templates)
    notes = NotesPages(memory, templates)
    forgetting = ForgetPage(memory, templates, user_home)
    status = StatusPage(memory, templates, user_home)
    app = Starlette(
        routes=[
            Route("/", search.show),
            Route("/sessions", sessions.show),
            Route("/session/{host}/{name:path}", conversation.show),
            Route("/memory", notes.show_memory),
            Route("/memory/edit", notes.edit_memory),
            Route("/memory/edit", notes.save_memory, methods=["POST"]),
            Route("/logs", notes.list_logs),
            Route("/logs/{day}", notes.show_log),
            Route("/prompt", notes.show_prompt),
            Route("/forget", forgetting.show_preview),
            Route("/forget", forgetting.forget, methods=["POST"]),
            Route("/status", status.show),
            Route("/status/read", status.start_reading, methods=["POST"]),
            Route("/status/rebuild", status.start_rebuilding, methods=["POST"]),
            Route("/status/stop", status.stop, methods=["POST"]),
            Mount(STATIC.rstrip("/"), StaticFiles(directory=HERE / "static")),
        ],
        exception_handlers={
            HTTPException: errors.show_refused,
            BackstoryError: errors.show_known,
            Exception: errors.show_unexpected,
        },
        lifespan=_limit_threads,
    )
    return Guard(app, port=port, refuse=errors.refuse)


@asynccontextmanager
async def _limit_threads(app: Starlette) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = _MAX_AT_ONCE
    yield


class _ErrorPages:
    """A page for each way in which a request can fail."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def refuse(self, status: int) -> "Response":
        message, hint = _REFUSALS.get(status, ("This request was refused", ""))
        return self._render(status, message, hint)

    async def show_refused(self, request: "Request", exc: Exception) -> "Response":
        return self.refuse(exc.status_code if isinstance(exc, HTTPException) else 500)

    async def show_known(self, request: "Request", exc: Exception) -> "Response":
        status = 500
        if isinstance(exc, UnknownName | BadQuery):
            status = 404 if isinstance(exc, UnknownName) else 400
        hint = exc.hint if isinstance(exc, BackstoryError) else ""
        return self._render(status, str(exc), hint)

    async def show_unexpected(self, request: "Request", exc: Exception) -> "Response":
        # What happened is in the log of the server; it is raised again for that.
        hint = "The terminal that runs 'backstory web' shows what happened."
        return self._render(500, "Something went wrong", hint)

    def _render(self, status: int, message: str, hint: str) -> "Response":
        values = {"status": status, "message": message, "hint": hint}
        return self._templates.render("error.html", values, status)
