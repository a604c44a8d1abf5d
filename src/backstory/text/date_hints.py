"""A quick check whether a text may name a day, or ask for the newest.

``text.dates`` has many patterns, and most texts name no day. Whatever passes this check
is examined there; the check must not reject anything that is a date.
"""

from backstory.text.words import LETTERS_AND_DIGITS

# Every date has at least one of these words, or a year.
_NAMED = """
    january february march april may june july august september october november
    december jan feb mar apr jun jul aug sep sept oct nov dec
    januar februar mai juni juli oktober dezember
    monday tuesday wednesday thursday friday saturday sunday
    mon tue tues wed thu thur thurs fri sat sun
    today tonight yesterday morning afternoon evening night
    day days week weeks weekend month months year years
    heute gestern vorgestern woche monat jahr
"""
_DATE_WORDS = frozenset(_NAMED.split())
# What words begin with that ask for the newest.
_RECENT_WORDS = (
    *("latest", "recent", "newest", "last", "current", "these", "lately"),
    *("zuletzt", "neueste", "aktuell", "neulich"),
)


def may_name_days(text: str) -> bool:
    """Whether a text may name a day, as ``find_days`` understands it."""
    return not text.isascii() or any(
        word in _DATE_WORDS or (len(word) >= 4 and word[:4].isdigit())
        for word in _words(text)
    )


def may_ask_for_recent(text: str) -> bool:
    """Whether a text may ask for the newest, as ``find_recent`` understands it."""
    return not text.isascii() or any(
        word.startswith(_RECENT_WORDS) for word in _words(text)
    )


def _words(text: str) -> list[str]:
    return text.lower().encode().translate(LETTERS_AND_DIGITS).decode().split()
