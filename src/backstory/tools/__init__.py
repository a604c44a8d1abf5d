"""ALL_TOOLS: one row and one file per tool that an agent may be given."""

from typing import TYPE_CHECKING, Any

from backstory.tools.base import (
    SCHEMA_FORMATS,
    Asker,
    Tool,
    ToolResult,
    ToolRow,
    schemas,
)
from backstory.tools.get_conversation_item import GET_CONVERSATION_ITEM
from backstory.tools.memory_search import MEMORY_SEARCH
from backstory.tools.save_memory import SAVE_MEMORY
from backstory.tools.search_conversation_history import SEARCH_CONVERSATION_HISTORY
from backstory.tools.search_history import SEARCH_HISTORY
from backstory.tools.update_memory import UPDATE_MEMORY

if TYPE_CHECKING:
    from backstory.memory import Memory
    from backstory.runs.history import RunHistory

__all__ = [
    "ALL_TOOLS",
    "RUN_TOOLS",
    "SCHEMA_FORMATS",
    "TOOLS",
    "Tool",
    "ToolResult",
    "ToolRow",
    "bind_run_tools",
    "bind_tools",
    "schemas",
]

TOOLS: tuple[ToolRow[Asker], ...] = (
    SEARCH_HISTORY,
    MEMORY_SEARCH,
    SAVE_MEMORY,
    UPDATE_MEMORY,
)
# These work on the run in progress only.
RUN_TOOLS: tuple[ToolRow["RunHistory"], ...] = (
    SEARCH_CONVERSATION_HISTORY,
    GET_CONVERSATION_ITEM,
)
# Any: they work on different things.
ALL_TOOLS: tuple[ToolRow[Any], ...] = (*TOOLS, *RUN_TOOLS)


def bind_tools(
    memory: "Memory", *, session: str | None = None, run: "RunHistory | None" = None
) -> tuple[Tool, ...]:
    """The tools of a memory that its settings allow, and those of ``run`` if given.

    ``session`` is the one that calls them: its current turn is not found.
    """
    allows = memory.settings.flag
    asker = Asker(memory, session)
    bound = [Tool(row, asker) for row in TOOLS if allows(row.setting)]
    if run is not None:
        bound += [Tool(row, run) for row in RUN_TOOLS if allows(row.setting)]
    return tuple(bound)


def bind_run_tools(run: "RunHistory") -> tuple[Tool, ...]:
    """The tools of a run, for a loop that has no memory beyond it."""
    return tuple(Tool(row, run) for row in RUN_TOOLS)
