"""A parsed query; ``text.query`` parses it."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class DayRange:
    """Consecutive days, both ends included."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for.

    ``spellings`` are full-text phrases, each of which matches the term: words of
    letters and digits, separated by single spaces.
    """

    text: str
    spellings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """What was typed, and its parts.

    ``folded`` is for exact search. ``terms`` are distinct and in order, without
    function words unless there is nothing else; ``phrases`` are the parts in quotes,
    folded, or the identifiers, paths and the like if they are all it asks for.
    ``subject`` are the terms that an answer can be expected to contain: not
    those of a date, not words that ask for the newest or for conversations, and not
    pairs of characters that are half a function word. It is empty if the query only
    asks what was said on certain days.
    """

    text: str
    folded: str
    terms: tuple[Term, ...]
    subject: tuple[Term, ...]
    phrases: tuple[str, ...]
    days: tuple[DayRange, ...]
    wants_recent: bool
