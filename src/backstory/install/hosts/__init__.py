"""HOST_ROWS: one row per agent program that we can be installed in."""

from backstory.errors import UnknownName, nearest_hint
from backstory.install.hosts.base import HostRow
from backstory.install.hosts.claude_code import CLAUDE_CODE
from backstory.install.hosts.codex import CODEX
from backstory.install.hosts.copilot import COPILOT
from backstory.install.hosts.cursor import CURSOR
from backstory.install.hosts.gemini import GEMINI
from backstory.install.hosts.opencode import OPENCODE
from backstory.install.hosts.vscode import VSCODE
from backstory.text.arguments import show_name

HOST_ROWS = (CLAUDE_CODE, CODEX, GEMINI, COPILOT, OPENCODE, CURSOR, VSCODE)
# The names under which the history knows some of them.
_ALSO = {
    "gemini-cli": "gemini",
    "copilot-cli": "copilot",
    "claude": "claude-code",
}


def get_host_row(name: str) -> HostRow:
    """The row of that name, ignoring case. Raises ``UnknownName`` with a hint."""
    typed = show_name(name)
    wanted = _ALSO.get(typed.lower(), typed.lower())
    for row in HOST_ROWS:
        if row.name == wanted:
            return row
    raise UnknownName(
        f"Backstory cannot be installed in '{typed}'",
        hint=nearest_hint(typed, (row.name for row in HOST_ROWS)),
    )
