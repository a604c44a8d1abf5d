"""How much is left to chance: nothing in ``make test``, much in ``make soak``.

``make soak`` sets SOAK to a number that all chance comes from, so that a failure can be
had again by the same number.
"""

import os
import random

SOAK = os.environ.get("SOAK")
_TIMES_AS_MANY = 20


def examples(usual: int) -> int:
    """How many examples of a law to try, where the usual number would take too long."""
    return usual * _TIMES_AS_MANY if SOAK else usual


def seeds(usual: int, *, soaking: int) -> list[int]:
    """Where the chance of a test starts from; a case for each."""
    if not SOAK:
        return list(range(usual))
    chance = random.Random(SOAK)
    return [chance.randrange(2**32) for _ in range(soaking)]
