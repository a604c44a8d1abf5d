"""This machine: its platform, folders, environment and clock; where our own files are.

Only ``this_machine`` and ``utc_now`` read them. Everything else is given a ``Machine``,
so that the places on another platform can be worked out, and tested, on this one.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

HOME_VARIABLE = "BACKSTORY_HOME"
CONFIG_VARIABLE = "BACKSTORY_CONFIG"


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides where files lie: platform, home folder, environment.

    ``folder`` is where the person stands: a project of theirs, perhaps.
    """

    platform: str
    home: Path
    environ: Mapping[str, str]
    folder: Path | None = None


def utc_now() -> datetime:
    return datetime.now(UTC)


def this_machine() -> Machine:
    """The machine this process runs on."""
    try:
        folder = Path.cwd()
    except OSError:
        folder = None  # it was deleted under our feet
    return Machine(sys.platform, Path.home(), dict(os.environ), folder)


def find_home(machine: Machine, home: str | Path | None) -> Path:
    """The folder that everything is kept in."""
    chosen = home or machine.environ.get(HOME_VARIABLE)
    if chosen:
        return absolute(str(chosen), machine)
    return platformdirs.user_data_path("backstory", appauthor=False)


def find_user_file(machine: Machine) -> Path:
    """The person's own configuration file."""
    chosen = machine.environ.get(CONFIG_VARIABLE)
    if chosen:
        return absolute(chosen, machine)
    return platformdirs.user_config_path("backstory", appauthor=False) / "config.toml"


def both_names(folder: Path) -> set[Path]:
    """A folder by the name it was given, and by its own: hosts may use either."""
    return {folder, folder.resolve()}


def absolute(path: str, machine: Machine) -> Path:
    """The path in full; ``~`` is the home folder of that machine's person."""
    if path == "~" or path.startswith(("~/", "~\\")):
        return machine.home / path[2:]
    return Path(path).absolute()
