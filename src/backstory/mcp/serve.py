"""Run a server, with its upkeep, until it is told to end."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from backstory.assembly.parts import keep_memory_low
from backstory.hooks.live_sessions import find_live_session
from backstory.hooks.server import HookServer
from backstory.hooks.upkeep import Upkeep
from backstory.mcp.current_session import CurrentSession
from backstory.mcp.server import McpServer, build_server
from backstory.system.loopback import ADDRESS, listen
from backstory.system.machine import this_machine

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from backstory.mcp.calls import RequestContext
    from backstory.memory import Memory

DATA_SETTING = "mcp.structured_content"


def serve_host(memory: "Memory", host: str | None, *, started_at: datetime) -> None:
    """Serve the agent program that started this process; does not return."""
    # Imported here because only this way of serving needs it.
    from backstory.mcp.stdio import serve_stdio

    keep_memory_low()
    current = CurrentSession(
        memory,
        host=host,
        started_at=started_at,
        find_noted=partial(find_live_session, str(memory.home), this_machine().environ),
    )
    server = build_server(memory, current, with_data=returns_data(memory, host))
    upkeep = Upkeep(memory, HookServer(memory))
    _start_after_first_answer(server, upkeep)

    def close() -> None:
        upkeep.close()
        memory.close()

    serve_stdio(server, close)


def serve_any(memory: "Memory", port: int, *, tell: Callable[[str], None]) -> None:
    """Serve programs over HTTP; ``tell`` is called with the address and the token."""
    # Imported here because only this way of serving needs it.
    from backstory.mcp.http import PATH, TOKEN_NAME, read_token, serve_http

    token, is_new = read_token(memory.home)
    listener = listen(port)
    tell(f"Serving http://{ADDRESS}:{port}{PATH}")
    tell(f"Token: {token}" if is_new else f"Token: in {memory.home / TOKEN_NAME}")
    keep_memory_low()
    # Several programs may connect: none of them is the current one.
    current = CurrentSession(memory)
    server = build_server(memory, current, with_data=returns_data(memory, None))
    upkeep = Upkeep(memory, HookServer(memory))
    _start_after_first_answer(server, upkeep)
    try:
        serve_http(server, token, listener)
    finally:
        upkeep.close()


def returns_data(memory: "Memory", host: str | None) -> bool:
    """Whether tools return data beside their text.

    If there is both data and text, agent programs show their model the data.
    """
    chosen = memory.settings.text(DATA_SETTING)
    return host is None if chosen == "auto" else chosen == "always"


def _start_after_first_answer(server: McpServer, upkeep: Upkeep) -> None:
    async def answer(ctx: "RequestContext", call_next: "CallNext") -> "HandlerResult":
        try:
            return await call_next(ctx)
        finally:
            upkeep.start()

    server.middleware.append(answer)
