"""How the time that a function takes grows with the length of its text.

Times are of the processor, for this thread, and only ever compared with each other: how
fast the machine is, and what else it does, changes both sides alike.
"""

import time
from collections.abc import Callable

# Linear growth gives a ratio of 4, n log n hardly more, quadratic growth 16.
_TIMES_AS_LONG = 4
_MAX_RATIO = 9
_TRIES = 4


def cpu_seconds(use: Callable[[str], object], text: str) -> float:
    started = time.thread_time()
    use(text)
    return time.thread_time() - started


def is_linear(
    use: Callable[[str], object], make_text: Callable[[int], str], length: int
) -> bool:
    """Whether a text four times as long takes about four times as long.

    The best of some tries counts: whatever disturbs a measurement makes it longer.
    """
    short, long = make_text(length), make_text(_TIMES_AS_LONG * length)
    least_short = least_long = float("inf")
    for _ in range(_TRIES):
        least_short = min(least_short, cpu_seconds(use, short))
        least_long = min(least_long, cpu_seconds(use, long))
        if least_long <= _MAX_RATIO * least_short:
            return True
    return False
