"""Load what every command needs without most of what that imports in turn.

Modules that click, msgspec, pathlib and uuid import, but use for little more than help,
take longer to load than they do themselves. Something stands in their places meanwhile.
"""

import sys
from importlib import import_module
from types import ModuleType


class _Later(ModuleType):
    """In place of a module: its functions load it when they are called."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if not name.islower():
            # A class or a constant, which has to be there now.
            return getattr(self._load(), name)

        def call(*given: object, **named: object) -> object:
            return getattr(self._load(), name)(*given, **named)

        return call

    def _load(self) -> ModuleType:
        _give_up_place(self.__name__, self)
        return import_module(self.__name__)


class _Inspect(_Later):
    def cleandoc(self, text: str) -> object:
        # Click does this to the help of every option, which has one line.
        if "\n" not in text:
            return text.expandtabs().lstrip()
        return self._load().cleandoc(text)


class _Platform(_Later):
    def system(self) -> object:
        # ``uuid`` asks for it when it is imported.
        return "Linux" if sys.platform == "linux" else self._load().system()


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
        for name, each in taken.items():
            _give_up_place(name, each)


def _give_up_place(name: str, module: ModuleType | None) -> None:
    if name in sys.modules and sys.modules[name] is module:
        del sys.modules[name]
