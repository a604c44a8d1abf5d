"""Load what every command needs without most of what that imports in turn.

Modules that click, msgspec, pathlib and uuid import, but use for little more than help,
take longer to load than they do themselves. Something stands in their places meanwhile.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType


class _Later(ModuleType):
    """In place of a module: its functions are imported when they are called."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*given: object, **named: object) -> object:
            return getattr(import_module(self.__name__), name)(*given, **named)

        return call


class _Inspect(_Later):
    def cleandoc(self, text: str) -> str:
        # Click does this to the help of every option, which has one line.
        if "\n" not in text:
            return text.expandtabs().lstrip()
        # Only the help of a command needs it.
        import inspect

        return inspect.cleandoc(text)


class _Platform(_Later):
    def system(self) -> str:
        # ``uuid`` asks for it when it is imported.
        if sys.platform == "linux":
            return "Linux"
        # Slow to import.
        import platform

        return platform.system()


def load_quickly() -> None:
    """Load them, in a process that has no other threads yet."""
    places: dict[str, ModuleType | None] = {
        "gettext": _Later("gettext"),
        "inspect": _Inspect("inspect"),
        "platform": _Platform("platform"),
        "textwrap": _Later("textwrap"),
        # As if it were not installed: msgspec finds the same in ``typing``.
        "typing_extensions": None,
        "urllib.parse": _Later("urllib.parse"),
    }
    taken = {name: each for name, each in places.items() if name not in sys.modules}
    sys.modules.update(taken)  # type: ignore[arg-type]
    try:
        for name in ("click", "msgspec", "pathlib", "uuid"):
            import_module(name)
    finally:
        # Whoever else imports them gets the real ones.
        for name in taken:
            del sys.modules[name]
