"""How the time that a function takes grows with the length of its text.

Times are of the processor, for this thread, and only ever compared with each other: how
fast the machine is, and what else it does, changes both sides alike.
"""

import time
from collections.abc import Callable

_START_LENGTH = 250
# Linear growth gives a ratio of 4, n log n hardly more, quadratic growth 16.
_TIMES_AS_LONG = 4
_LINEAR_RATIO = 5
_QUADRATIC_RATIO = 9
# Less time than this is mostly overhead and disturbance. The text is made longer.
_MEANINGFUL_S = 1e-3
_TRIES = 4
_FEWEST_TRIES = 3
_MOST_TRIES = 40


def cpu_seconds(use: Callable[[str], object], text: str) -> float:
    started = time.thread_time()
    use(text)
    return time.thread_time() - started


def times_as_slow(
    use: Callable[[str], object],
    text: str,
    than: Callable[[str], object],
    other: str,
    *,
    limit: float,
) -> float:
    """How many times as long a text takes as another one does with another function.

    They take turns, and the best of some tries counts, as disturbance only adds time.
    Many more are needed only to be sure that a text takes longer than the limit.
    """
    time_s = other_s = float("inf")
    for number in range(1, _MOST_TRIES + 1):
        other_s = min(other_s, cpu_seconds(than, other))
        time_s = min(time_s, cpu_seconds(use, text))
        if number >= _FEWEST_TRIES and time_s <= limit * other_s:
            break
    return time_s / other_s


def is_linear(
    use: Callable[[str], object], make_text: Callable[[int], str], max_length: int
) -> bool:
    """Whether texts that are four times as long take about four times as long.

    Quadratic time shows at every length, and the more, the longer the text is. So it
    takes two lengths in a row to be sure of it. A disturbance does not last that long.
    """
    length = _START_LENGTH
    was_quadratic = False
    while length <= max_length or was_quadratic:
        ratio = _growth(use, make_text(length), make_text(_TIMES_AS_LONG * length))
        if ratio is not None:
            if ratio <= _LINEAR_RATIO:
                return True
            is_quadratic = ratio > _QUADRATIC_RATIO
            if is_quadratic and was_quadratic:
                return False
            was_quadratic = is_quadratic
        length *= _TIMES_AS_LONG
    return True


def _growth(use: Callable[[str], object], short: str, long: str) -> float | None:
    """How many times as long the long text takes; None if that is too short to tell.

    The best of some tries counts: whatever disturbs a measurement makes it longer.
    """
    short_s = long_s = float("inf")
    for _ in range(_TRIES):
        long_s = min(long_s, cpu_seconds(use, long))
        if long_s < _MEANINGFUL_S:
            return None
        short_s = min(short_s, cpu_seconds(use, short))
        if long_s <= _LINEAR_RATIO * short_s:
            break
    return long_s / short_s
