"""Where Visual Studio Code and its forks keep what their extensions write.

Each editor has its own folder for the same files, and so does each server that an
editor starts on another machine, in a container or in WSL.
"""

from backstory.ingest.hosts.base import Folder, Pattern

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS = (
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
)


def in_editors(below: str, *patterns: Pattern) -> tuple[Folder, ...]:
    """A folder for each editor; ``below`` is its path in the user's data."""
    title = f"`User/{below}` of VS Code, Insiders, VSCodium, Cursor and Windsurf"
    places: list[tuple[str, ...]] = [
        (
            f"darwin:~/Library/Application Support/{editor}/User/{below}",
            f"win32:${{APPDATA}}/{editor}/User/{below}",
            f"${{XDG_CONFIG_HOME}}/{editor}/User/{below}",
            f"~/.config/{editor}/User/{below}",
        )
        for editor in _EDITORS
    ]
    places += [(f"~/{server}/data/User/{below}",) for server in _SERVERS]
    return tuple(Folder(each, patterns, title) for each in places)
