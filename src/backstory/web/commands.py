"""The page of all commands: what each does, and which page does the same."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from backstory.values.structs import FrozenStruct
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

# The page on which the same can be done.
_PAGES = {
    "check": "/check",
    "context": "/prompt",
    "curate": "/memory",
    "doctor": "/doctor",
    "export": "/export",
    "forget": "/forget",
    "import": "/export",
    "index": "/status",
    "install": "/agents",
    "logs": "/logs",
    "memory": "/memory",
    "rebuild": "/status",
    "salvage": "/check",
    "search": "/",
    "sessions": "/sessions",
    "settings": "/settings",
    "show": "/sessions",
    "sources": "/status",
    "status": "/status",
    "uninstall": "/agents",
}
# The page itself.
_LEFT_OUT = ("web",)


class CommandHelp(FrozenStruct):
    """A command as its own help describes it; ``line`` is what a person types."""

    name: str
    line: str
    summary: str
    text: str


# They are only listed on request, because that takes a while.
ListCommands = Callable[[], Sequence[CommandHelp]]


class CommandsPage:
    """Answers with all commands, first those that only a terminal has."""

    def __init__(self, list_commands: ListCommands, templates: Templates) -> None:
        self._list_commands = list_commands
        self._templates = templates

    def show(self, request: "Request") -> "Response":
        listed = [each for each in self._list_commands() if each.name not in _LEFT_OUT]
        values = {
            "elsewhere": [each for each in listed if each.name not in _PAGES],
            "here": [
                (each, _PAGES[each.name]) for each in listed if each.name in _PAGES
            ],
        }
        return self._templates.render("commands.html", values)
