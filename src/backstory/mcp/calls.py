"""Run our synchronous work in threads, and report progress to the client."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import anyio
from mcp.server.context import ServerRequestContext

from backstory.system.stages import told_stages

Result = TypeVar("Result")
# Any: the SDK's contexts have type parameters that we do not use.
RequestContext = ServerRequestContext[Any, Any]

# How many calls are worked on at once; the others wait their turn. Every thread has a
# connection to the index, with a cache of its own.
_MAX_AT_ONCE = 2
# Calls that are answered sooner need no report of progress.
_FIRST_WORD_S = 0.5
_EVERY_S = 1.0


class Calls:
    """The threads of one server.

    They are separate from those in which the SDK reads and writes: those take turns, so
    after a while each would hold connections that only a search needs.
    """

    def __init__(self, at_once: int = _MAX_AT_ONCE) -> None:
        self._threads = ThreadPoolExecutor(at_once, "backstory-call")

    async def run(
        self, context: RequestContext, work: Callable[[], Result], stage: str
    ) -> Result:
        """Do ``work`` in a thread, and report progress to a client that asked for it.

        If the call is cancelled, the thread is left to finish by itself: everything we
        do ends soon, and none of it can be interrupted safely.
        """
        told = [stage]
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report_progress, context, told)
            result = await loop.run_in_executor(
                self._threads, partial(_work, work, told.append)
            )
            tasks.cancel_scope.cancel()
        return result


def _work(work: Callable[[], Result], tell: Callable[[str], None]) -> Result:
    with told_stages(tell):
        return work()


async def _report_progress(context: RequestContext, told: list[str]) -> None:
    """Report the stage, and that work goes on: every message reports a bit more."""
    await anyio.sleep(_FIRST_WORD_S)
    elapsed_s = _FIRST_WORD_S
    while elapsed_s < math.inf:
        await context.session.report_progress(elapsed_s, message=told[-1])
        await anyio.sleep(_EVERY_S)
        elapsed_s += _EVERY_S
