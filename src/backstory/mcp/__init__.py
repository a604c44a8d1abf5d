"""The MCP server: the tools, notes and sessions of a memory, for any agent program.

Its modules import the MCP library, which is slow; only ``backstory mcp`` needs them.
"""

DEFAULT_PORT = 7717
