"""Turn whatever a reader raises into a problem of its source.

Importers are written to raise nothing. A file can be anything, though, so whoever runs
one expects every error, reports it with its place, and goes on.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from backstory.errors import BackstoryError
from backstory.text.cut import one_line

logger = logging.getLogger(__name__)

_MAX_CHARS = 200

T = TypeVar("T")


def describe_failure(exc: Exception) -> str:
    """Why something could not be read, in the words of the error."""
    logger.debug("a source could not be read", exc_info=exc)
    if isinstance(exc, BackstoryError):
        return str(exc)
    said = one_line(str(exc), _MAX_CHARS)
    name = type(exc).__name__
    return f"it cannot be understood ({f'{name}: {said}' if said else name})"


class UntilFailure(Generic[T]):
    """What ``parse`` yields before its first error; ``failure`` is that error, if any.

    That way, what came before the error can be written first.
    """

    def __init__(self, parse: Callable[[], Iterable[T]]) -> None:
        self._parse = parse
        self.failure: Exception | None = None

    def __iter__(self) -> Iterator[T]:
        try:
            yield from self._parse()
        except Exception as exc:
            self.failure = exc
