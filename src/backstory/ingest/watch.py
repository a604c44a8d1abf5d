"""Read the sources again and again."""

import time
from collections.abc import Callable, Iterator

from backstory.errors import StoreUnreachable
from backstory.values.reports import IndexReport

# The rest is at least this many times as long as a reading, so that a machine with very
# many files is not busy all the time.
_REST_SHARE = 10
# How long to wait before trying again to reach a database: longer each time, so that a
# server that has just started is not overrun by waiting clients.
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0


def repeat_reading(
    read: Callable[[], IndexReport],
    every_s: float,
    sleep: Callable[[float], None],
    *,
    on_lost: Callable[[StoreUnreachable], None],
    on_back: Callable[[], None],
) -> Iterator[IndexReport]:
    """Yield the report of each reading; rest at least ``every_s`` between two.

    If the database cannot be reached any more, ``on_lost`` is called, and ``on_back``
    when it can be again. What could not be written is read again: the database knows
    how far each source was read. The first reading does not wait, as the address may be
    wrong.
    """
    has_read, pause_s = False, 0.0
    while True:
        started = time.monotonic()
        try:
            report = read()
        except StoreUnreachable as exc:
            if not has_read:
                raise
            if not pause_s:
                on_lost(exc)
            pause_s = min(2 * pause_s or _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
            sleep(pause_s)
            continue
        if pause_s:
            on_back()
        has_read, pause_s = True, 0.0
        yield report
        took = time.monotonic() - started
        sleep(max(every_s, took * _REST_SHARE))
