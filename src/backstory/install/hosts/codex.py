"""Codex (seen: 0.166.0): the server in config.toml, hooks in hooks.json."""

from collections.abc import Sequence

from backstory.install.apply import Step
from backstory.install.commands import (
    BEFORE_COMPACTION,
    PROMPT,
    SESSION_END,
    SESSION_START,
)
from backstory.install.edits import JsonEdit, TomlEdit
from backstory.install.hosts.base import (
    HOOKS_ARE,
    SERVER,
    SERVER_IS,
    Approvals,
    HostRow,
    PluginList,
    Switch,
    Target,
    hook_groups,
    server_entry,
)

_NAME = "codex"
_SETTINGS = ("${CODEX_HOME}/config.toml", "~/.codex/config.toml")
# It gives the end of a session at most 3 seconds.
_EVENTS = (
    ("SessionStart", SESSION_START, 10),
    ("UserPromptSubmit", PROMPT, 10),
    ("PreCompact", BEFORE_COMPACTION, 10),
    ("SessionEnd", SESSION_END, 3),
)


def _plan(target: Target) -> Sequence[Step]:
    folder = target.locate("${CODEX_HOME}", "~/.codex")
    if target.project is not None:
        folder = target.project / ".codex"
    entry = server_entry(target.shared_commands, _NAME)
    return (
        TomlEdit(folder / "config.toml", ("mcp_servers", SERVER), entry),
        JsonEdit(
            folder / "hooks.json", hook_groups(target.shared_commands, _NAME, _EVENTS)
        ),
    )


def _switches(target: Target) -> Sequence[Switch]:
    path = target.locate(*_SETTINGS)
    return (
        Switch(path, ("features", "hooks"), False, HOOKS_ARE),
        Switch(path, ("mcp_servers", SERVER, "enabled"), False, SERVER_IS),
    )


def _approvals(target: Target) -> Approvals | None:
    # Of a plugin and of a project, the keys are other ones.
    if target.project is not None:
        return None
    # As "/home/dev/.codex/hooks.json:session_start:0:0", seen in 0.169.0.
    events = ("session_start", "user_prompt_submit", "pre_compact", "session_end")
    names = tuple(f"hooks.json:{event}:" for event in events)
    return Approvals(target.locate(*_SETTINGS), ("hooks", "state"), names)


CODEX = HostRow(
    _NAME,
    "Codex",
    "codex",
    (("${CODEX_HOME}", "~/.codex"),),
    _plan,
    approve="Codex asks once whether to trust the hooks: choose to trust them.",
    plugins=PluginList(
        _SETTINGS,
        "plugins",
        remove="codex plugin remove",
    ),
    switches=_switches,
    approvals=_approvals,
)
