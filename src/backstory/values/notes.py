"""What is remembered about notes besides what their files say."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class SeenNote:
    """A note, and the day on which it was first seen.

    ``key`` identifies its words. ``text`` is kept while a file says it, to recognise it
    after a small change; it is None if no file says it any more.
    """

    key: str
    day: date
    text: str | None = None
