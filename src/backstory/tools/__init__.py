"""TOOLS: one row and one file per tool that an agent may be given."""

from backstory.memory import Memory
from backstory.tools.base import SCHEMA_FORMATS, Tool, ToolResult, ToolRow, schemas
from backstory.tools.memory_search import MEMORY_SEARCH
from backstory.tools.save_memory import SAVE_MEMORY
from backstory.tools.search_history import SEARCH_HISTORY
from backstory.tools.update_memory import UPDATE_MEMORY

__all__ = [
    "SCHEMA_FORMATS",
    "TOOLS",
    "Tool",
    "ToolResult",
    "ToolRow",
    "bind_tools",
    "schemas",
]

TOOLS: tuple[ToolRow, ...] = (
    SEARCH_HISTORY,
    MEMORY_SEARCH,
    SAVE_MEMORY,
    UPDATE_MEMORY,
)


def bind_tools(memory: Memory, *, session: str | None = None) -> tuple[Tool, ...]:
    """The tools of a memory that its settings allow.

    ``session`` is the one in which they will be called: what is being said there when a
    tool is called is not found by it.
    """
    return tuple(
        Tool(row, memory, session=session)
        for row in TOOLS
        if memory.settings.flag(row.setting)
    )
