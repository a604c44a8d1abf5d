"""The tables of tools, and the names by which the rest of the package knows them."""

from backstory.tools import RUN_TOOLS, TOOLS
from backstory.values.tool_names import MEMORY_TOOL_NAMES, RUN_TOOL_NAMES


def test_every_tool_is_known_by_its_name() -> None:
    assert tuple(row.name for row in TOOLS) == MEMORY_TOOL_NAMES
    assert tuple(row.name for row in RUN_TOOLS) == RUN_TOOL_NAMES
