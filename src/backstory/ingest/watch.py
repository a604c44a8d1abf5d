"""Read the sources again and again."""

import time
from collections.abc import Callable, Iterator

from backstory.values.reports import IndexReport

# On a machine with very many files, looking must not become all it does.
_REST_SHARE = 10


def repeat_reading(
    read: Callable[[], IndexReport], every_s: float, sleep: Callable[[float], None]
) -> Iterator[IndexReport]:
    """Yield the report of each reading; rest at least ``every_s`` between two."""
    while True:
        started = time.monotonic()
        yield read()
        took = time.monotonic() - started
        sleep(max(every_s, took * _REST_SHARE))
