"""Clients of the MCP server: of each protocol version, in this process or another."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, TypeVar
from unittest.mock import patch

import anyio
import pytest

from backstory.mcp.current_session import CurrentSession
from backstory.mcp.server import build_server
from backstory.memory import Memory
from mcp import Client

# The versions that agent programs have been seen to speak.
VERSIONS = ("2026-07-28", "2025-11-25", "2025-06-18")
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)

Result = TypeVar("Result")
Ask = Callable[[Client], Awaitable[Result]]

each_version = pytest.mark.parametrize("version", VERSIONS)


# Any: a server, or how one is reached.
@asynccontextmanager
async def connected(server: Any, version: str) -> AsyncIterator[Client]:
    """A client of that version; the older ones begin with a handshake."""
    is_new = version == VERSIONS[0]
    offered = "mcp.client.session.LATEST_HANDSHAKE_VERSION"
    async with AsyncExitStack() as stack:
        with nullcontext() if is_new else patch(offered, version):
            client = Client(server, mode="auto" if is_new else "legacy")
            await stack.enter_async_context(client)
        assert client.protocol_version == version
        yield client


def ask_memory(
    memory: Memory,
    ask: Ask[Result],
    *,
    version: str = VERSIONS[0],
    current: CurrentSession | None = None,
    with_data: bool = True,
) -> Result:
    """What a client gets from a server of a memory in this process."""
    current = current or CurrentSession(memory)
    server = build_server(memory, current, with_data=with_data)

    async def connect_and_ask() -> Result:
        async with connected(server, version) as client:
            return await ask(client)

    return anyio.run(connect_and_ask)
