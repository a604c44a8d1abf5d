"""Cursor: the server in mcp.json, hooks in hooks.json (as its documentation says)."""

from collections.abc import Sequence

from backstory.install.apply import Step
from backstory.install.commands import (
    BEFORE_COMPACTION,
    PROMPT,
    SESSION_END,
    SESSION_START,
)
from backstory.install.edits import Default, HookEntry, JsonEdit, ServerEntry
from backstory.install.hosts.base import SERVER, HostRow, Target, server_entry

_NAME = "cursor"
_EVENTS = (
    ("sessionStart", SESSION_START),
    ("beforeSubmitPrompt", PROMPT),
    ("preCompact", BEFORE_COMPACTION),
    ("sessionEnd", SESSION_END),
)


def _plan(target: Target) -> Sequence[Step]:
    folder = target.locate("~/.cursor")
    if target.project is not None:
        folder = target.project / ".cursor"
    commands = target.shared_commands
    entry = server_entry(commands, _NAME)
    hooks = tuple(
        HookEntry(("hooks", name), {"command": commands.hook_line(event, _NAME)})
        for name, event in _EVENTS
    )
    return (
        JsonEdit(folder / "mcp.json", (ServerEntry(("mcpServers", SERVER), entry),)),
        JsonEdit(folder / "hooks.json", (Default("version", 1), *hooks)),
    )


CURSOR = HostRow(_NAME, "Cursor", "cursor", (("~/.cursor",),), _plan)
