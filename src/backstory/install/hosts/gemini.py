"""Gemini CLI (seen: 0.61.0): server and hooks in settings.json, timeouts in ms."""

from collections.abc import Sequence

from backstory.install.apply import Step
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
    Switch,
    Target,
    hook_groups,
    server_entry,
)

_NAME = "gemini"
_FOLDER = ("${GEMINI_CLI_HOME}/.gemini", "~/.gemini")
_EVENTS = (
    ("SessionStart", SESSION_START, 10_000),
    ("BeforeAgent", PROMPT, 10_000),
    ("PreCompress", BEFORE_COMPACTION, 10_000),
    ("SessionEnd", SESSION_END, 10_000),
)


def _plan(target: Target) -> Sequence[Step]:
    folder = target.locate(*_FOLDER)
    if target.project is not None:
        folder = target.project / ".gemini"
    server = ServerEntry(
        ("mcpServers", SERVER), server_entry(target.shared_commands, "gemini-cli")
    )
    hooks = hook_groups(target.shared_commands, _NAME, _EVENTS)
    return (JsonEdit(folder / "settings.json", (server, *hooks)),)


def _switches(target: Target) -> Sequence[Switch]:
    path = target.locate(*_FOLDER) / "settings.json"
    return (Switch(path, ("hooksConfig", "enabled"), False, HOOKS_ARE),)


GEMINI = HostRow(
    _NAME,
    "Gemini CLI",
    "gemini",
    (_FOLDER,),
    _plan,
    switches=_switches,
)
