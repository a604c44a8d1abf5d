"""opencode (seen: 1.18.33): the server in its settings, a plugin instead of hooks."""

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from backstory.install.apply import Step
from backstory.install.commands import StartCommands
from backstory.install.edits import Default, JsonEdit, OwnFile, ServerEntry
from backstory.install.hosts.base import SERVER, SERVER_IS, HostRow, Switch, Target

_NAME = "opencode"
_FOLDER = ("${XDG_CONFIG_HOME}/opencode", "~/.config/opencode")
# It reads all of them; the first that is there is the user's.
_SETTINGS = ("opencode.jsonc", "opencode.json", "config.json")
_SCHEMA = Default("$schema", "https://opencode.ai/config.json")
# The line of the plugin that says how to start us.
_BY_NAME = 'const HOOK = ["backstory-hook"];'
_NO_HOME = "const MORE = [];"


def _plan(target: Target) -> Sequence[Step]:
    folder = target.locate(*_FOLDER)
    settings = _find_settings(folder)
    if target.project is not None:
        settings = _find_settings(target.project)
        folder = target.project / ".opencode"
    command = target.shared_commands.server(_NAME)
    entry = {"type": "local", "command": command, "enabled": True}
    return (
        JsonEdit(settings, (_SCHEMA, ServerEntry(("mcp", SERVER), entry))),
        OwnFile(folder / "plugin/backstory.js", _plugin(target.shared_commands)),
    )


def _find_settings(folder: Path) -> Path:
    there = [folder / name for name in _SETTINGS if (folder / name).exists()]
    return there[0] if there else folder / "opencode.json"


def _plugin(commands: StartCommands) -> str:
    text = read_plugin()
    home = [] if commands.home is None else ["--home", str(commands.home)]
    text = text.replace(_BY_NAME, f"const HOOK = {json.dumps(commands.hook)};")
    return text.replace(_NO_HOME, f"const MORE = {json.dumps(home)};")


def read_plugin() -> str:
    """The plugin as it is published, which finds us by name."""
    found = resources.files("backstory.install.hosts") / "opencode_plugin.js"
    return found.read_text(encoding="utf-8")


def _switches(target: Target) -> Sequence[Switch]:
    path = _find_settings(target.locate(*_FOLDER))
    return (Switch(path, ("mcp", SERVER, "enabled"), False, SERVER_IS),)


OPENCODE = HostRow(
    _NAME,
    "opencode",
    "opencode",
    (
        _FOLDER,
        ("${XDG_DATA_HOME}/opencode", "~/.local/share/opencode"),
    ),
    _plan,
    switches=_switches,
)
