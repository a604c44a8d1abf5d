"""Visual Studio Code: the server in mcp.json; there are no hooks to use."""

from collections.abc import Sequence

from backstory.install.apply import Step
from backstory.install.edits import JsonEdit, ServerEntry
from backstory.install.hosts.base import SERVER, HostRow, Target, server_entry

_NAME = "vscode"
_USER_FOLDER = (
    "darwin:~/Library/Application Support/Code/User",
    "win32:${APPDATA}/Code/User",
    "${XDG_CONFIG_HOME}/Code/User",
    "~/.config/Code/User",
)


def _plan(target: Target) -> Sequence[Step]:
    path = target.locate(*_USER_FOLDER) / "mcp.json"
    if target.project is not None:
        path = target.project / ".vscode/mcp.json"
    entry = {"type": "stdio", **server_entry(target.shared_commands, None)}
    return (JsonEdit(path, (ServerEntry(("servers", SERVER), entry),)),)


VSCODE = HostRow(
    _NAME, "Visual Studio Code", "code", (_USER_FOLDER,), _plan, has_hooks=False
)
