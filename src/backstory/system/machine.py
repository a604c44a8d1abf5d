"""This machine: its platform, folders, environment and clock, and where our files are.

Only functions of this module read or change these. Everything else is given a
``Machine``, so that the paths of another platform can be computed, and tested, on this
one.
"""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath

from backstory.errors import ConfigError, show_value
from backstory.system.home import find_default_config, find_default_home
from backstory.text.escape import replace_surrogates
from backstory.values.structs import FrozenStruct

HOME_VARIABLE = "BACKSTORY_HOME"
CONFIG_VARIABLE = "BACKSTORY_CONFIG"


class Machine(FrozenStruct):
    """What decides where files are: platform, home folder, environment.

    ``folder`` is the current folder, often a project; None if it was deleted.
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
        folder = None  # deleted while it is our current folder
    return Machine(sys.platform, Path.home(), dict(os.environ), folder)


def set_variable(name: str, value: str) -> None:
    """Set an environment variable of this process, for a library that reads it."""
    os.environ[name] = value


def add_to_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process with more variables, for one that it starts."""
    return {**os.environ, **variables}


def find_home(machine: Machine, home: str | Path | None) -> Path:
    """The folder that everything is kept in. Raises ``ConfigError`` for no path."""
    chosen = str(home or machine.environ.get(HOME_VARIABLE) or "")
    if home is not None and not isinstance(home, str | PurePath):
        raise ConfigError(
            f"the home folder: {show_value(home)} is not a path",
            hint="pass a text or a pathlib.Path",
        )
    place = "the home folder" if home else HOME_VARIABLE
    # Databases are opened by their path as text.
    if "\0" in chosen or replace_surrogates(chosen) != chosen:
        raise ConfigError(
            f"{place}: {chosen!r:.200} is not a path",
            hint="a path must be valid UTF-8, without NUL characters",
        )
    if not chosen:
        return Path(find_default_home())
    found = absolute(chosen, machine)
    if os.path.isfile(found):  # noqa: PTH113 (False for any odd path)
        raise ConfigError(
            f"{place}: {found} is a file, not a folder",
            hint="name the folder that everything is kept in, or one to make",
        )
    return found


def find_user_file(machine: Machine) -> Path:
    """The user's own configuration file."""
    chosen = machine.environ.get(CONFIG_VARIABLE)
    if chosen:
        return absolute(chosen, machine)
    return Path(find_default_config())


def both_names(folder: Path) -> set[Path]:
    """The folder as it was given, and with links resolved: hosts may use either."""
    return {folder, folder.resolve()}


def absolute(path: str, machine: Machine) -> Path:
    """The absolute path; ``~`` is the home folder on that machine."""
    if path == "~" or path.startswith(("~/", "~\\")):
        return machine.home / path[2:]
    return Path(path).absolute()
