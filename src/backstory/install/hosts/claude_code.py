"""Claude Code (seen: 2.1.328): hooks in settings.json, the server by its own command.

Claude Code writes its list of servers into the file that holds its state, which it
rewrites all the time; only its own command changes that file safely.
"""

import json
from collections.abc import Sequence

from backstory.install.apply import HostCommand, Step
from backstory.install.commands import (
    BEFORE_COMPACTION,
    PROMPT,
    SESSION_END,
    SESSION_START,
)
from backstory.install.edits import JsonEdit, ServerEntry
from backstory.install.hosts.base import (
    HOOKS_ARE,
    SERVER,
    HostRow,
    PluginList,
    Switch,
    Target,
    hook_groups,
    server_entry,
)

_NAME = "claude-code"
_SETTINGS = ("${CLAUDE_CONFIG_DIR}/settings.json", "~/.claude/settings.json")
# Without a timeout, the end of a session is cut off after 1.5 seconds.
_EVENTS = (
    ("SessionStart", SESSION_START, 10),
    ("UserPromptSubmit", PROMPT, 10),
    ("PreCompact", BEFORE_COMPACTION, 10),
    ("SessionEnd", SESSION_END, 10),
)


def _plan(target: Target) -> Sequence[Step]:
    hooks = hook_groups(target.commands, _NAME, _EVENTS)
    if target.project is None:
        return _server(target), JsonEdit(target.locate(*_SETTINGS), hooks)
    # The local file is the user's own: the shared one would break for others.
    settings = target.project / ".claude/settings.local.json"
    return _server(target), JsonEdit(settings, hooks)


def _server(target: Target) -> Step:
    path = target.locate("${CLAUDE_CONFIG_DIR}/.claude.json", "~/.claude.json")
    # Otherwise the tools are hidden behind a search for tools.
    entry = {"type": "stdio", **server_entry(target.commands, _NAME), "env": {}}
    entry["alwaysLoad"] = True
    keys: tuple[str, ...] = ("mcpServers", SERVER)
    scope = "user"
    if target.project is not None:
        keys, scope = ("projects", str(target.project), *keys), "local"
    program = target.find_program("claude")
    if program is None:
        return JsonEdit(path, (ServerEntry(keys, entry),))
    return HostCommand(
        path,
        keys,
        entry,
        add=(program, "mcp", "add-json", "-s", scope, SERVER, json.dumps(entry)),
        remove=(program, "mcp", "remove", "-s", scope, SERVER),
        folder=target.project or target.machine.home,
    )


def _switches(target: Target) -> Sequence[Switch]:
    path = target.locate(*_SETTINGS)
    return (Switch(path, ("disableAllHooks",), True, HOOKS_ARE),)


CLAUDE_CODE = HostRow(
    _NAME,
    "Claude Code",
    "claude",
    (("${CLAUDE_CONFIG_DIR}", "~/.claude"),),
    _plan,
    is_private=True,
    plugins=PluginList(
        _SETTINGS,
        "enabledPlugins",
        remove="claude plugin uninstall",
    ),
    switches=_switches,
)
