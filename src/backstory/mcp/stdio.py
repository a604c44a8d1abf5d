"""Serve the agent program that started this process, over standard input and output.

The server ends with that program: when its end of the pipe is closed, or, because
another process may hold that end open, when the program is gone.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from backstory.mcp.server import McpServer

if TYPE_CHECKING:
    from types import FrameType

# How often to check whether the program that started us is still running.
_LOOK_S = 1.0
# How long to wait for work that is still being done when the server ends.
_GRACE_S = 2.0
# The parent of a process that no agent program started, or whose parent has ended.
_NO_PARENT = 1


def serve_stdio(server: McpServer, close: Callable[[], None]) -> None:
    """Answer requests until the program that started us ends, then ``close``.

    Ends the process itself if it cannot wait: on a signal, or if the program is gone.
    """

    def end(code: int = 0) -> None:
        threading.Timer(_GRACE_S, os._exit, [code]).start()
        try:
            close()
        finally:
            os._exit(code)

    def end_by_signal(number: int, frame: "FrameType | None") -> None:
        end(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end_by_signal)
    watch = threading.Thread(target=_wait_for_parent, args=[end], daemon=True)
    watch.start()
    anyio.run(_serve, server)
    end()


async def _serve(server: McpServer) -> None:
    async with stdio_server() as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


def _wait_for_parent(end: Callable[[], None]) -> None:
    parent = os.getppid()
    if parent <= _NO_PARENT:
        return
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    end()
