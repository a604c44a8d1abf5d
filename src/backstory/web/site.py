"""The pages of a memory, which is reopened when its settings have changed.

Requests that are being answered go on with the memory that they began with; it is
closed when the last of them has ended.
"""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import anyio.to_thread
from starlette.concurrency import run_in_threadpool
from starlette.routing import Router

from backstory.values.structs import Struct
from backstory.web.jobs import Jobs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from backstory.memory import Memory

# How many requests are worked on at once; the others wait their turn. Every thread has
# a connection to the index, with a cache of its own.
_MAX_AT_ONCE = 4


class Closable(Protocol):
    """What runs beside an open memory, until it is closed."""

    def close(self) -> None: ...


class _Opened(Struct, eq=False):
    """A memory, its pages, what runs beside it, and how many requests use it."""

    memory: "Memory"
    pages: "ASGIApp"
    upkeep: Closable
    users: int = 0


class Site:
    """Answers every request with the pages of the memory that is open now."""

    def __init__(
        self,
        memory: "Memory",
        jobs: Jobs,
        *,
        build_pages: "Callable[[Memory, Callable[[], None]], ASGIApp]",
        reopen: "Callable[[], Memory]",
        start_upkeep: "Callable[[Memory], Closable]",
    ) -> None:
        self._jobs = jobs
        self._build_pages = build_pages
        self._reopen = reopen
        self._start_upkeep = start_upkeep
        self._lock = threading.Lock()
        self._reopening = threading.Lock()
        self._current = self._open(memory)
        self._retired: list[_Opened] = []
        self._lifespan = Router(lifespan=_limit_threads)

    def _open(self, memory: "Memory") -> _Opened:
        pages = self._build_pages(memory, self.reopen)
        return _Opened(memory, pages, self._start_upkeep(memory))

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        with self._lock:
            opened = self._current
            opened.users += 1
        try:
            await opened.pages(scope, receive, send)
        finally:
            with self._lock:
                opened.users -= 1
            if self._retired:
                await run_in_threadpool(self._close_retired)

    def reopen(self) -> None:
        """Open the memory with the current settings.

        Raises ``BackstoryError`` if that is not possible; then the old one stays open.
        """
        # One at a time, if two tabs change something.
        with self._reopening:
            memory = self._reopen()
            # Only one memory at a time may answer hooks.
            self._current.upkeep.close()
            opened = self._open(memory)
            with self._lock:
                self._retired.append(self._current)
                self._current = opened

    def close(self) -> None:
        """Close everything that is open, even if it is still in use."""
        with self._lock:
            opened = [*self._retired, self._current]
            self._retired.clear()
        for each in opened:
            each.upkeep.close()
            each.memory.close()

    def _close_retired(self) -> None:
        with self._lock:
            # A job continues with the memory that it was started with.
            is_busy = self._jobs.running is not None
            unused = [each for each in self._retired if not (each.users or is_busy)]
            self._retired = [each for each in self._retired if each not in unused]
        for each in unused:
            each.memory.close()


@asynccontextmanager
async def _limit_threads(app: object) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = _MAX_AT_ONCE
    yield
