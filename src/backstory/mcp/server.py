"""An MCP server for one memory or several, whatever it is connected through."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server

from backstory.mcp.calls import Calls, RequestContext
from backstory.mcp.current_session import CurrentSession
from backstory.mcp.instructions import write_instructions
from backstory.mcp.prompts import ServedPrompts
from backstory.mcp.resources import ServedResources
from backstory.mcp.tools import ServedTools
from backstory.version import __version__

if TYPE_CHECKING:
    from backstory.memory import Memory

# Answers to these do not change while a server runs.
_FIXED: tuple[CacheableMethod, ...] = (
    "tools/list",
    "prompts/list",
    "resources/templates/list",
)
_HOUR_MS = 3_600_000

# Any: the SDK's server state, which we do not use.
McpServer = Server[Any]


class ServedMemory:
    """What a server has of one memory: tools, resources and prompts.

    ``with_data`` says whether tools return data beside their text. Without
    ``is_local``, whoever connects is on another machine.
    """

    def __init__(
        self,
        memory: "Memory",
        current: CurrentSession,
        calls: Calls,
        *,
        with_data: bool = True,
        is_local: bool = True,
        may_write: bool = True,
    ) -> None:
        self.tools = ServedTools(
            memory,
            current,
            calls,
            with_data=with_data,
            is_local=is_local,
            may_write=may_write,
        )
        self.resources = ServedResources(memory, self.tools, calls)
        self.prompts = ServedPrompts(self.tools, calls)


def build_server(
    memory: "Memory", current: CurrentSession, *, with_data: bool = True
) -> McpServer:
    """A server of one memory."""
    served = ServedMemory(memory, current, Calls(), with_data=with_data)
    return build_server_of(lambda _: served, served.tools.names)


def build_server_of(
    find: Callable[[RequestContext], ServedMemory], tool_names: Collection[str]
) -> McpServer:
    """A server of the memory that ``find`` finds for each request.

    All of them have the tools of these names.
    """
    server: McpServer = Server(
        "backstory",
        version=__version__,
        title="Backstory",
        description="A memory for agents: every past conversation, kept and found.",
        instructions=write_instructions(tool_names),
        cache_hints={method: CacheHint(ttl_ms=_HOUR_MS) for method in _FIXED},
        on_list_tools=lambda ctx, asked: find(ctx).tools.list(ctx, asked),
        on_call_tool=lambda ctx, asked: find(ctx).tools.call(ctx, asked),
        on_list_resources=lambda ctx, asked: find(ctx).resources.list(ctx, asked),
        on_list_resource_templates=lambda ctx, asked: find(
            ctx
        ).resources.list_templates(ctx, asked),
        on_read_resource=lambda ctx, asked: find(ctx).resources.read(ctx, asked),
        on_list_prompts=lambda ctx, asked: find(ctx).prompts.list(ctx, asked),
        on_get_prompt=lambda ctx, asked: find(ctx).prompts.get(ctx, asked),
    )
    # The SDK's own middleware reports every call to OpenTelemetry, if that is there.
    server.middleware.clear()
    return server
