"""Where things are on this machine: the home, the configuration, the settings."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from backstory.errors import ConfigError, UnknownName
from backstory.ingest.hosts import get_host
from backstory.ingest.hosts.base import Machine
from backstory.settings import CONFIG_VARIABLE, HOME_VARIABLE, Settings, read_settings


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


def load_settings(machine: Machine, flags: Sequence[str] = ()) -> Settings:
    """The settings of this person in this folder."""
    user_file = find_user_file(machine)
    if machine.environ.get(CONFIG_VARIABLE) and not user_file.exists():
        raise ConfigError(f"{CONFIG_VARIABLE}: there is no file {user_file}")
    return read_settings(
        user_file=user_file,
        project_folder=machine.folder,
        environ=machine.environ,
        flags=flags,
    )


def read_hosts(settings: Settings, name: str) -> frozenset[str]:
    """The agent programs that a setting names: a typo must not go unnoticed."""
    try:
        return frozenset(get_host(host).name for host in settings.texts(name))
    except UnknownName as exc:
        raise ConfigError(f"{name}: {exc}", hint=exc.hint) from exc


def both_names(folder: Path) -> set[Path]:
    """A folder by the name it was given, and by its own: hosts may use either."""
    return {folder, folder.resolve()}


def absolute(path: str, machine: Machine) -> Path:
    """The path in full; ``~`` is the home folder of that machine's person."""
    if path == "~" or path.startswith(("~/", "~\\")):
        return machine.home / path[2:]
    return Path(path).absolute()
