"""Whether an agent program has our plugin, which its own plugin manager installed.

The plugin is in ``integrations/``.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from backstory.errors import InstallRefused
from backstory.install.apply import read_settings_file
from backstory.install.hosts.base import HostRow, Target
from backstory.text.jsonc import JsoncError, find_node, parse_jsonc

# Plugins are called by their names and the marketplace they are from.
_NAME = "backstory@"
_BYTE_ORDER_MARK = "\ufeff"


def find_plugin(row: HostRow, target: Target) -> str | None:
    """The name of our plugin in a program, if it has one and uses it.

    Raises ``InstallRefused`` if the program's settings cannot be read.
    """
    if row.plugins is None or target.project is not None:
        return None
    path = target.locate(*row.plugins.places)
    listed = _read_mapping(path, row.plugins.key)
    return next((name for name, value in listed.items() if _is_ours(name, value)), None)


def _is_ours(name: str, value: object) -> bool:
    # Codex has a table for each plugin, the others a flag.
    is_enabled = value.get("enabled", True) if isinstance(value, dict) else value
    return name.startswith(_NAME) and is_enabled is True


def _read_mapping(path: Path, key: str) -> Mapping[str, object]:
    """What the settings of a program have under a key; empty if that is nothing."""
    text = read_settings_file(path) or ""
    try:
        if path.suffix == ".toml":
            found = tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK)).get(key)
        else:
            node = find_node(parse_jsonc(text), (key,)) if text.strip() else None
            found = None if node is None else node.value
    except JsoncError as exc:
        raise InstallRefused(f"{path}:{exc.line}:{exc.column}: {exc.reason}") from exc
    except (ValueError, RecursionError) as exc:
        raise InstallRefused(f"{path}: not valid TOML ({exc})") from exc
    return found if isinstance(found, dict) else {}
