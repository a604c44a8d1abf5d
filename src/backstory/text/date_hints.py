"""A quick check whether a text may name a day, or ask for the newest.

``text.dates`` has many expressions, and most texts name no day. What this check lets
through is looked at there; it must not stop anything that is a date.
"""

# How the words begin of which every date has at least one.
_DATE_WORDS = (
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov"),
    *("dec", "mai", "okt", "dez"),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
    *("today", "tonight", "yesterday", "morning", "afternoon", "evening", "night"),
    *("day", "week", "year", "heute", "gestern", "vorgestern", "woche", "jahr"),
)
_RECENT_WORDS = (
    *("latest", "recent", "newest", "last", "current", "these", "lately"),
    *("zuletzt", "neueste", "aktuell", "neulich"),
)
_NOT_LETTERS = bytes(
    code if chr(code).isalnum() and code < 128 else ord(" ") for code in range(256)
)


def may_name_days(text: str) -> bool:
    """Whether a text may name a day, as ``find_days`` understands it."""
    return not text.isascii() or any(
        word.startswith(_DATE_WORDS) or (len(word) >= 4 and word[:4].isdigit())
        for word in _words(text)
    )


def may_ask_for_recent(text: str) -> bool:
    """Whether a text may ask for the newest, as ``find_recent`` understands it."""
    return not text.isascii() or any(
        word.startswith(_RECENT_WORDS) for word in _words(text)
    )


def _words(text: str) -> list[str]:
    return text.lower().encode().translate(_NOT_LETTERS).decode().split()
