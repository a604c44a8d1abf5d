"""Undo our change to a text that somebody has changed since."""

from collections.abc import Sequence
from difflib import SequenceMatcher

# Comparing takes long for long texts, and nobody's settings have as many lines.
_MAX_LINES = 5_000

# From which line to which, and the lines instead.
_Hunk = tuple[int, int, Sequence[str]]


def undo_change(before: str, after: str, current: str) -> str | None:
    """What ``current`` would be if ``before`` had not become ``after``.

    None if somebody changed the very lines that we changed.
    """
    if after and current.count(after) == 1:
        # They only wrote before it or behind it, maybe just the end of its last line.
        return current.replace(after, before)
    ours, theirs, base = (
        text.splitlines(keepends=True) for text in (before, current, after)
    )
    if max(map(len, (ours, theirs, base))) > _MAX_LINES:
        return None
    hunks = sorted([*_hunks(base, ours), *_hunks(base, theirs)], key=lambda h: h[:2])
    made: list[str] = []
    at = 0
    inserted_at = -1
    for start, end, lines in hunks:
        # Of two texts that go into one place, nobody can tell which comes first.
        if start < at or start == end == inserted_at:
            return None
        inserted_at = start if start == end else -1
        made += [*base[at:start], *lines]
        at = end
    return "".join([*made, *base[at:]])


def _hunks(one: Sequence[str], other: Sequence[str]) -> list[_Hunk]:
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [(a, b, other[c:d]) for kind, a, b, c, d in codes if kind != "equal"]
