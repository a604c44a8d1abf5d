"""A query, taken apart: what ``text.query`` makes of what was typed."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class DayRange:
    """Some days in a row; both ends belong to it."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for.

    ``spellings`` are full-text phrases, any of which stands for the term: words of
    letters and digits with single spaces between.
    """

    text: str
    spellings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """What was typed, taken apart.

    ``folded`` is for exact search. ``terms`` are distinct, in order, without function
    words unless there is nothing else; ``phrases`` are what stood in quotes, folded.
    ``subject`` are the terms that an answer may be expected to have: none of a date, no
    word that asks for the newest or for talk, and no pair of characters that is half a
    function word. There are none when all that was asked for is what was said on some
    days.
    """

    text: str
    folded: str
    terms: tuple[Term, ...]
    subject: tuple[Term, ...]
    phrases: tuple[str, ...]
    days: tuple[DayRange, ...]
    wants_recent: bool
