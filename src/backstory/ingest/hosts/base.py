"""Where an agent program keeps its files, on every platform and for every user.

Nothing here reads the environment: the caller passes it in, so that the places on
another platform can be worked out, and tested, on this one.
"""

import re
from pathlib import Path

from backstory.system.machine import Machine
from backstory.values.structs import FrozenStruct

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Pattern(FrozenStruct):
    """Which files below a folder are in which format."""

    glob: str
    format: str


class Folder(FrozenStruct):
    """A folder of a host: the first place that applies, and what to look for in it.

    A place may begin with ``~`` and use ``${NAME}``; it applies when every name is set.
    A platform (``linux:``, ``darwin:``, ``win32:``) may come before it. ``title``
    stands in the documentation for places that are too many to list.
    """

    places: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    title: str = ""

    def locate(self, machine: Machine) -> Path | None:
        """Where the folder is on that machine, whether or not it is there."""
        for place in self.places:
            platform, separator, rest = place.partition(":")
            if separator and platform in ("linux", "darwin", "win32"):
                if platform != machine.platform:
                    continue
                place = rest
            names = _VARIABLE.findall(place)
            if all(machine.environ.get(name) for name in names):
                filled = _VARIABLE.sub(lambda m: machine.environ[m.group(1)], place)
                return _expand(filled, machine.home)
        return None


class Resume(FrozenStruct):
    """How a person continues a session: a command, with ``{id}`` for the session's id.

    ``in_project``: the program only looks for sessions of the folder it is started in,
    or continues in that folder.
    ``is_of_parent``: a session with a parent is that of a subagent, which the program
    continues only as part of its parent; otherwise it may be a fork. ``ending``: what
    the names of transcripts that can be continued end with.
    """

    command: str
    in_project: bool = False
    is_of_parent: bool = False
    ending: str = ""


class Host(FrozenStruct):
    """One agent program. ``in_projects`` are files it keeps in each project folder.

    ``resume`` is set only if the program's documentation says how.
    """

    name: str
    title: str
    folders: tuple[Folder, ...] = ()
    in_projects: tuple[Pattern, ...] = ()
    resume: Resume | None = None


def _expand(place: str, home: Path) -> Path:
    if place == "~" or place.startswith("~/"):
        return home / place[2:]
    return Path(place)
