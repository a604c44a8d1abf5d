"""FORMATS: one row and one file per transcript format."""

from backstory.errors import UnknownName
from backstory.importers.base import FormatRow

_HERE = "backstory.importers"

FORMATS = (
    FormatRow(
        "claude-code",
        "claude-code",
        f"{_HERE}.claude_code:ClaudeCode",
        "Claude Code sessions and subagents, one JSONL file each.",
    ),
    FormatRow(
        "claude-code-agent-meta",
        "claude-code",
        f"{_HERE}.claude_code:ClaudeCodeAgentMeta",
        "What a Claude Code subagent was asked to do.",
    ),
)


def get_format(name: str) -> FormatRow:
    """The row of that name. Raises ``UnknownName`` with all the names there are."""
    for row in FORMATS:
        if row.name == name:
            return row
    raise UnknownName(
        f"no format is called '{name}'",
        hint="the formats are: " + ", ".join(row.name for row in FORMATS),
    )
