"""An MCP server for one memory, whatever it is connected through."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server

from backstory.mcp.calls import Calls
from backstory.mcp.current_session import CurrentSession
from backstory.mcp.instructions import write_instructions
from backstory.mcp.prompts import ServedPrompts
from backstory.mcp.resources import ServedResources
from backstory.mcp.tools import ServedTools

if TYPE_CHECKING:
    from backstory.memory import Memory

# These do not change while a server runs.
_FIXED: tuple[CacheableMethod, ...] = (
    "tools/list",
    "prompts/list",
    "resources/templates/list",
)
_HOUR_MS = 3_600_000

# Any: the SDK's state of a server, of which we have none.
McpServer = Server[Any]


def build_server(
    memory: "Memory", current: CurrentSession, *, with_data: bool = True
) -> McpServer:
    """A server of a memory's tools, resources and prompts.

    ``with_data`` is whether tools return data beside their text.
    """
    calls = Calls()
    tools = ServedTools(memory, current, calls, with_data=with_data)
    resources = ServedResources(memory, tools, calls)
    prompts = ServedPrompts(tools, calls)
    server: McpServer = Server(
        "backstory",
        version=version("backstory"),
        title="Backstory",
        description="A memory for agents: every past conversation, kept and found.",
        instructions=write_instructions(tools.names),
        cache_hints={method: CacheHint(ttl_ms=_HOUR_MS) for method in _FIXED},
        on_list_tools=tools.list,
        on_call_tool=tools.call,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read,
        on_list_prompts=prompts.list,
        on_get_prompt=prompts.get,
    )
    # The SDK's own middleware reports every call to OpenTelemetry, if that is there.
    server.middleware.clear()
    return server
