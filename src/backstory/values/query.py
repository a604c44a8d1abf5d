"""A parsed query; ``text.query`` parses it.

These are not structs: a hook parses a prompt in less time than importing msgspec would
take.
"""

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date


class _Parsed:
    """A value that is compared by its parts, and never changes."""

    __slots__: tuple[str, ...] = ()

    def _parts(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        parts = zip(self.__slots__, self._parts(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{n}={p!r}' for n, p in parts)})"


class DayRange(_Parsed):
    """Consecutive days, both ends included."""

    __slots__ = ("first", "last")

    first: "date"
    last: "date"

    def __init__(self, first: "date", last: "date") -> None:
        self.first = first
        self.last = last


class FoundDays(_Parsed):
    """Days that a text names, and where in the text it names them."""

    __slots__ = ("days", "end", "start")

    days: DayRange
    start: int
    end: int

    def __init__(self, days: DayRange, start: int, end: int) -> None:
        self.days = days
        self.start = start
        self.end = end


class Term(_Parsed):
    """One thing to look for.

    ``spellings`` are full-text phrases, each of which matches the term: words of
    letters and digits, separated by single spaces.
    """

    __slots__ = ("spellings", "text")

    text: str
    spellings: tuple[str, ...]

    def __init__(self, text: str, spellings: tuple[str, ...]) -> None:
        self.text = text
        self.spellings = spellings

    def __hash__(self) -> int:
        # Fast: a search looks terms up very often, and few have the same text.
        return hash(self.text)


class Query(_Parsed):
    """What was typed, and its parts.

    ``folded`` is for exact search. ``terms`` are distinct and in order, without
    function words unless there is nothing else; ``phrases`` are the parts in quotes,
    folded, or the identifiers, paths and the like if the query asks for nothing else.
    ``subject`` are the terms that an answer can be expected to contain: not
    those of a date, not words that ask for the newest or for conversations, and not
    pairs of characters that are half a function word. It is empty if the query only
    asks what was said on certain days.
    """

    __slots__ = (
        "days",
        "folded",
        "phrases",
        "subject",
        "terms",
        "text",
        "wants_recent",
    )

    text: str
    folded: str
    terms: tuple[Term, ...]
    subject: tuple[Term, ...]
    phrases: tuple[str, ...]
    days: tuple[DayRange, ...]
    wants_recent: bool

    def __init__(
        self,
        text: str,
        folded: str,
        terms: tuple[Term, ...],
        subject: tuple[Term, ...],
        phrases: tuple[str, ...],
        days: tuple[DayRange, ...],
        wants_recent: bool,
    ) -> None:
        self.text = text
        self.folded = folded
        self.terms = terms
        self.subject = subject
        self.phrases = phrases
        self.days = days
        self.wants_recent = wants_recent

    def __hash__(self) -> int:
        # Fast, too: what belongs to a query is looked up for every text it found.
        return hash(self.text)
