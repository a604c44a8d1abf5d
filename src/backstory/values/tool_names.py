"""The names of the tools that agents are given. What each does is in ``tools/``."""

MEMORY_TOOL_NAMES = (
    "search_history",
    "read_session",
    "memory_search",
    "save_memory",
    "update_memory",
)
# These only work on the run in progress.
RUN_TOOL_NAMES = ("search_conversation_history", "get_conversation_item")
TOOL_NAMES = MEMORY_TOOL_NAMES + RUN_TOOL_NAMES


def enabling_setting(tool_name: str) -> str:
    """The setting that says whether agents have the tool."""
    return f"tools.{tool_name}.enabled"
