"""How much is left to chance: nothing in ``make test``, much in ``make soak``.

``make soak`` sets SOAK to a number that all chance comes from, so that a failure can be
had again by the same number. SOAK_SCALE says how much is tried: 1 takes up to half an
hour, 4 about four times as long.
"""

import os
import random

SOAK = os.environ.get("SOAK")
_SCALE = int(os.environ.get("SOAK_SCALE") or 1)
_TIMES_AS_MANY = 10 * _SCALE
# Of laws that name no number. Their examples are cheap.
EXAMPLES_OF_A_LAW = 500 * _SCALE


def examples(usual: int) -> int:
    """How many examples of a law to try, where the usual number would take too long."""
    return usual * _TIMES_AS_MANY if SOAK else usual


def rounds(usual: int, *, soaking: int) -> int:
    """How often to repeat something."""
    return soaking * _SCALE if SOAK else usual


def seeds(usual: int, *, soaking: int) -> list[int]:
    """Where the chance of a test starts from; a case for each."""
    count = rounds(usual, soaking=soaking)
    if not SOAK:
        return list(range(count))
    chance = random.Random(SOAK)
    return [chance.randrange(2**32) for _ in range(count)]
