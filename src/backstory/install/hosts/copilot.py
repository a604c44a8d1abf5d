"""Copilot CLI (seen: 1.0.102): the server in mcp-config.json, hooks in a file."""

import json
from collections.abc import Sequence

from backstory.install.apply import Step
from backstory.install.commands import (
    BEFORE_COMPACTION,
    PROMPT,
    SESSION_END,
    SESSION_START,
)
from backstory.install.edits import JsonEdit, OwnFile, ServerEntry
from backstory.install.hosts.base import (
    SERVER,
    HostRow,
    PluginList,
    Target,
    hook_groups,
    server_entry,
)

_NAME = "copilot"
_EVENTS = (
    ("SessionStart", SESSION_START, 10),
    ("UserPromptSubmit", PROMPT, 10),
    ("PreCompact", BEFORE_COMPACTION, 10),
    ("SessionEnd", SESSION_END, 10),
)


def _plan(target: Target) -> Sequence[Step]:
    folder = target.locate("${COPILOT_HOME}", "~/.copilot")
    servers, hooks = folder / "mcp-config.json", folder / "hooks/backstory.json"
    if target.project is not None:
        # Not .mcp.json: Claude Code reads that too, and takes neither this type of
        # server nor this host.
        servers = target.project / ".github/mcp.json"
        hooks = target.project / ".github/hooks/backstory.json"
    entry = {"type": "local", **server_entry(target.shared_commands, "copilot-cli")}
    entry["tools"] = ["*"]
    groups = hook_groups(target.shared_commands, _NAME, _EVENTS)
    written = {"hooks": {hook.keys[-1]: [hook.value] for hook in groups}}
    return (
        JsonEdit(servers, (ServerEntry(("mcpServers", SERVER), entry),)),
        OwnFile(hooks, json.dumps(written, indent=2) + "\n"),
    )


COPILOT = HostRow(
    _NAME,
    "GitHub Copilot CLI",
    "copilot",
    (("${COPILOT_HOME}", "~/.copilot"),),
    _plan,
    plugins=PluginList(
        ("${COPILOT_HOME}/settings.json", "~/.copilot/settings.json"),
        "enabledPlugins",
        remove="copilot plugin uninstall",
    ),
)
