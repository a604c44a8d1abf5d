"""Notices of searches that are given, or read, in more than one place."""

from backstory.text.patterns import lazy_pattern

NOTHING_SAID = "nothing was said on those days"
ONLY_NEAREST = "nothing matches well; these are the nearest"

_MISSING = lazy_pattern(r".*, searched by words alone: ([\d,]+) of ([\d,]+)")


def render_missing(waiting: int, total: int) -> str:
    """The notice that some of the texts are waiting for their vectors."""
    return (
        f"texts without a vector yet, searched by words alone: {waiting:,} of {total:,}"
    )


def parse_missing(notice: str) -> float | None:
    """The share of texts that are waiting, from that notice; None for any other."""
    found = _MISSING.fullmatch(notice)
    if found is None:
        return None
    waiting, total = (int(number.replace(",", "")) for number in found.groups())
    return waiting / max(1, total)
