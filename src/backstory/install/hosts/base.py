"""What is known about each agent program that we can be installed in."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from backstory.ingest.hosts.base import Folder
from backstory.install.apply import Step
from backstory.install.commands import StartCommands
from backstory.install.edits import HookEntry
from backstory.system.machine import Machine
from backstory.values.structs import FrozenStruct, replace

SERVER = "backstory"


class Target(FrozenStruct):
    """Where to install: this machine, or one project on it."""

    machine: Machine
    commands: StartCommands
    project: Path | None = None

    @property
    def shared_commands(self) -> StartCommands:
        """How to start us in files of a project, which people commit."""
        return self.commands if self.project is None else self.commands.by_path()

    def by_name(self) -> "Target":
        """The same with the commands of what we publish: PATH says where we are."""
        return replace(self, commands=replace(self.commands.by_path(), home=None))

    def find_missing(self) -> str | None:
        """The program that shared files name and PATH lacks; None if it has all."""
        shared = self.shared_commands
        words = (shared.backstory[0], shared.hook[0])
        return next((each for each in words if self.find_program(each) is None), None)

    def locate(self, *places: str) -> Path:
        """The first of these places that applies on this machine; see ``Folder``."""
        found = Folder(places, ()).locate(self.machine)
        assert found is not None
        return found

    def find_program(self, name: str) -> str | None:
        """The absolute path of a program on the user's PATH."""
        return shutil.which(name, path=self.machine.environ.get("PATH", ""))


class PluginList(FrozenStruct):
    """Where a program notes which plugins it uses: a file, and a key in it.

    ``remove`` is the command that removes ours, without its name.
    """

    places: tuple[str, ...]
    key: str
    remove: str


class Switch(FrozenStruct):
    """A setting of a program with which its user can switch off what we need.

    ``stops`` says what is not run then, such as "its hooks are".
    """

    path: Path
    keys: tuple[str, ...]
    off: bool
    stops: str


class Approvals(FrozenStruct):
    """Where a program notes which hooks its user has approved: a table in a file.

    Each of ``names`` is part of the key of one of our hooks there.
    """

    path: Path
    keys: tuple[str, ...]
    names: tuple[str, ...]


HOOKS_ARE = "its hooks are"
SERVER_IS = "our server is"


def _no_switches(target: Target) -> Sequence[Switch]:
    return ()


def _no_approvals(target: Target) -> Approvals | None:
    return None


class HostRow(FrozenStruct):
    """One agent program.

    ``places`` are folders that show that it was used here, ``plan`` returns the changes
    that install us, and ``approve`` is what it then asks the user to approve. With
    ``is_private``, its files of a project are the user's own, and never shared.
    ``plugins`` is for those whose plugin manager takes our plugin, ``switches`` for
    those whose settings can switch off what we need, ``approvals`` for those that
    note what was approved.
    """

    name: str
    title: str
    program: str
    places: tuple[tuple[str, ...], ...]
    plan: Callable[[Target], Sequence[Step]]
    approve: str = ""
    has_hooks: bool = True
    is_private: bool = False
    plugins: PluginList | None = None
    switches: Callable[[Target], Sequence[Switch]] = _no_switches
    approvals: Callable[[Target], Approvals | None] = _no_approvals

    def is_here(self, target: Target) -> bool:
        """Whether the program is on this machine, or was used on it."""
        if target.find_program(self.program) is not None:
            return True
        found = (Folder(places, ()).locate(target.machine) for places in self.places)
        return any(folder is not None and folder.is_dir() for folder in found)


def server_entry(commands: StartCommands, host: str | None) -> dict[str, object]:
    """The entry of our MCP server, in the form that most programs share."""
    command, *args = commands.server(host)
    return {"command": command, "args": args}


def hook_groups(
    commands: StartCommands, host: str, events: Sequence[tuple[str, str, int]]
) -> tuple[HookEntry, ...]:
    """Hooks in Claude Code's form: its event, ours, and the timeout."""
    return tuple(
        HookEntry(("hooks", name), {"hooks": [_hook(commands, host, event, timeout)]})
        for name, event, timeout in events
    )


def _hook(
    commands: StartCommands, host: str, event: str, timeout: int
) -> dict[str, object]:
    line = commands.hook_line(event, host)
    return {"type": "command", "command": line, "timeout": timeout}
