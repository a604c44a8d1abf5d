"""Regular expressions that are compiled when they are first used.

Most processes use few of the package's expressions, and some take a millisecond each to
compile.
"""

import re

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
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Compile; from then on, the methods are found without coming here."""
        compiled = re.compile(self.pattern, self._flags)
        self.__dict__.update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The same as ``re.compile``, but later; flags of the module ``re``."""
    return _LazyPattern(pattern, int(flags))  # type: ignore[return-value]
