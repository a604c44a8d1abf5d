"""The weights of the ranking; the settings ``ranking.*`` have their defaults here."""

import math

from backstory.values.hits import HitSource
from backstory.values.structs import FrozenStruct

# The floor for the oldest things if the query asks for recent ones.
_RECENT_FLOOR = 0.7


class Weights(FrozenStruct):
    """How much each thing counts; the defaults are the spec's, except for the floor.

    ``memory_words`` is the share of words in the score of a note, ``message_words`` in
    that of a message or a session's title; the rest is meaning.
    """

    memory_words: float = 0.3
    message_words: float = 0.4
    memory_weight: float = 1.0
    message_weight: float = 0.6
    session_weight: float = 0.5
    decay_per_day: float = 0.01
    decay_floor: float = 0.95

    def words_share(self, source: HitSource) -> float:
        """The share of words in a score; the rest is meaning."""
        is_talk = source in (HitSource.MESSAGE, HitSource.SESSION)
        return self.message_words if is_talk else self.memory_words

    def of(self, source: HitSource) -> float:
        """How much a kind of hit counts."""
        match source:
            case HitSource.MESSAGE:
                return self.message_weight
            case HitSource.SESSION:
                return self.session_weight
            case HitSource.MEMORY | HitSource.DAILY_LOG | HitSource.GUIDANCE:
                return self.memory_weight

    def age_factor(
        self, age_days: float | None, *, wants_recent: bool = False
    ) -> float:
        """The factor for age: 1 today, never less than the floor."""
        if age_days is None:
            return 1.0
        decay = math.exp(-self.decay_per_day * max(0.0, age_days))
        floor = min(self.decay_floor, _RECENT_FLOOR if wants_recent else 1.0)
        return floor + (1 - floor) * decay
