"""What an agent program's own settings say about us, beside what we install.

It may have our plugin (``integrations/``), which its own plugin manager installed, and
what we need may be switched off.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from backstory.errors import InstallRefused
from backstory.install.apply import read_settings_file
from backstory.install.hosts.base import HostRow, Switch, Target
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
    found = read_value(target.locate(*row.plugins.places), (row.plugins.key,))
    listed = found if isinstance(found, dict) else {}
    return next((name for name, value in listed.items() if _is_ours(name, value)), None)


def _is_ours(name: str, value: object) -> bool:
    # Codex has a table for each plugin, the others a flag.
    is_enabled = value.get("enabled", True) if isinstance(value, dict) else value
    return name.startswith(_NAME) and is_enabled is True


def find_switched_off(row: HostRow, target: Target) -> Switch | None:
    """What the user has switched off in a program that we need; None if nothing.

    Raises ``InstallRefused`` if the program's settings cannot be read.
    """
    return next(
        (
            each
            for each in row.switches(target)
            if read_value(each.path, each.keys) is each.off
        ),
        None,
    )


def has_unapproved(row: HostRow, target: Target) -> bool:
    """Whether a program waits for its user to approve our hooks, as far as it notes.

    Raises ``InstallRefused`` if the program's settings cannot be read.
    """
    asked = row.approvals(target)
    if asked is None:
        return False
    noted = read_value(asked.path, asked.keys)
    approved = list(noted) if isinstance(noted, dict) else []
    return not all(any(name in key for key in approved) for name in asked.names)


def read_value(path: Path, keys: Sequence[str]) -> object:
    """What the settings of a program have at a path of keys; None if nothing.

    Raises ``InstallRefused`` if they cannot be read.
    """
    text = read_settings_file(path) or ""
    try:
        if path.suffix == ".toml":
            found: object = tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            return found
        node = find_node(parse_jsonc(text), keys) if text.strip() else None
        return None if node is None else node.value
    except JsoncError as exc:
        raise InstallRefused(f"{path}:{exc.line}:{exc.column}: {exc.reason}") from exc
    except (ValueError, RecursionError) as exc:
        raise InstallRefused(f"{path}: not valid TOML ({exc})") from exc
