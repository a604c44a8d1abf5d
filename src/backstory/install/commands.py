"""The command lines with which agent programs start us.

They are absolute, as PATH differs; only in files that are shared with others, where the
paths of this machine mean nothing, they are left to PATH.
"""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from backstory.system.machine import Machine, find_home
from backstory.values.structs import FrozenStruct, replace

# As hooks know them; ``backstory-hook`` takes them.
SESSION_START = "session-start"
PROMPT = "prompt"
BEFORE_COMPACTION = "before-compaction"
SESSION_END = "session-end"

_PROGRAM = "backstory"
_HOOK = "backstory-hook"
_HOOK_MODULE = "backstory.hooks"


class StartCommands(FrozenStruct):
    """How to start us. ``home`` is passed on if it is not the default one."""

    backstory: tuple[str, ...]
    hook: tuple[str, ...]
    home: Path | None = None
    is_windows: bool = False

    def server(self, host: str | None) -> list[str]:
        """The command that starts the MCP server, for a host that the history knows."""
        home = [] if self.home is None else ["--home", str(self.home)]
        return [*self.backstory, *home, "mcp", *(["--host", host] if host else [])]

    def by_path(self) -> "StartCommands":
        """The same for files that are shared: PATH says where we are."""
        return replace(self, backstory=(_PROGRAM,), hook=(_HOOK,))

    def hook_words(self, event: str, host: str) -> list[str]:
        """The command that a hook runs."""
        home = [] if self.home is None else ["--home", str(self.home)]
        return [*self.hook, event, "--host", host, *home]

    def hook_line(self, event: str, host: str) -> str:
        """The same for a shell."""
        words = self.hook_words(event, host)
        return subprocess.list2cmdline(words) if self.is_windows else shlex.join(words)


def find_commands(machine: Machine, home: Path, *, python: Path) -> StartCommands:
    """How this installation is started: its scripts, else its Python."""
    is_windows = machine.platform == "win32"
    bare = Machine(machine.platform, machine.home, {}, machine.folder)
    default = find_home(bare, None)
    return StartCommands(
        _script(python, _PROGRAM, "backstory", is_windows),
        _script(python, _HOOK, _HOOK_MODULE, is_windows),
        None if home == default else home,
        is_windows,
    )


def _script(
    python: Path, script: str, module: str, is_windows: bool
) -> tuple[str, ...]:
    # Not resolved: in a virtual environment, Python is a link to one that lacks us.
    found = python.absolute().with_name(f"{script}.exe" if is_windows else script)
    if found.exists():
        return (str(found),)
    # -P: the current folder may hold anybody's code.
    return (str(python.absolute()), "-P", "-m", module)


def is_our_server(value: object) -> bool:
    """Whether an MCP entry starts us, whichever version of us wrote it."""
    words = strings_in(value)
    return "mcp" in words and any(_names_us(word) for word in words)


def is_our_hook(value: object) -> bool:
    """Whether a hook runs us."""
    return any(_HOOK in word or _HOOK_MODULE in word for word in strings_in(value))


def _names_us(word: str) -> bool:
    return (
        word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe") == "backstory"
    )


def strings_in(value: object) -> Sequence[str]:
    """Every text in a value, however deep."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [word for each in value for word in strings_in(each)]
    if isinstance(value, dict):
        return [word for each in value.values() for word in strings_in(each)]
    return []
