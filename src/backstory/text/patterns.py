"""Regular expressions that are compiled when they are first used.

Most processes use few of the package's expressions, and some take a millisecond each to
compile.
"""

import re

# Type checkers read this as true. Importing it would slow down a hook.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_METHODS = (
    "match",
    "fullmatch",
    "search",
    "finditer",
    "findall",
    "sub",
    "subn",
    "split",
)


class _LazyPattern:
    def __init__(self, pattern: "str | Callable[[], str]", flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    @property
    def pattern(self) -> str:
        return self._pattern if isinstance(self._pattern, str) else self._pattern()

    def __getattr__(self, name: str) -> object:
        """Compile the pattern; later calls find its methods without coming here."""
        compiled = re.compile(self.pattern, self._flags)
        self.__dict__.update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


def lazy_pattern(pattern: "str | Callable[[], str]", flags: int = 0) -> re.Pattern[str]:
    """Like ``re.compile``, but compiled on first use; ``flags`` are those of ``re``.

    If a pattern takes long to put together, pass a function that does it.
    """
    return _LazyPattern(pattern, int(flags))  # type: ignore[return-value]
