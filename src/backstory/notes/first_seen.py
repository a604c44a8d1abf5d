"""Determine the day on which a note was first seen, however its file changes.

A file's own time says little about a note in it, as it changes when the file is copied
or another note is edited. So the day is remembered by the note's words. A fact that was
moved, or reworded without changing its meaning, keeps its day.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from backstory.notes.duplicates import adds_nothing, normalize_fact
from backstory.values.identity import content_id
from backstory.values.notes import SeenNote
from backstory.values.structs import replace

# If there is more to compare, the file was rewritten rather than edited.
_MAX_COMPARISONS = 100_000
# Further west than where a note was seen, its day may still be tomorrow. If it is later
# than that, the clock was wrong when the note was seen.
_AHEAD = timedelta(days=1)


def date_facts(
    texts: Sequence[str], seen: Mapping[str, SeenNote], *, today: date
) -> list[SeenNote]:
    """The facts of MEMORY.md, in the order of ``texts``, each with its first day.

    ``seen`` is everything seen before, by key.
    """
    keys = {text: _key_of(text) for text in texts}
    new = {key: text for text, key in keys.items() if key not in seen}
    gone = list_gone(keys.values(), seen)
    days = {key: each.day for key, each in seen.items()} | _find_reworded(new, gone)
    return [
        SeenNote(keys[text], _possible(days.get(keys[text], today), today), text)
        for text in texts
    ]


def list_gone(keys: Iterable[str], seen: Mapping[str, SeenNote]) -> list[SeenNote]:
    """The facts that MEMORY.md had when it was last seen, but no longer has."""
    still_there = set(keys)
    return [
        each
        for key, each in seen.items()
        if each.text is not None and key not in still_there
    ]


def changes_to_facts(
    facts: Iterable[SeenNote], seen: Mapping[str, SeenNote]
) -> list[SeenNote]:
    """The changes to record so that exactly these are the facts of MEMORY.md.

    The words of facts that it no longer has are not kept.
    """
    by_key = {fact.key: fact for fact in reversed(list(facts))}
    changed = [fact for key, fact in by_key.items() if seen.get(key) != fact]
    return changed + [replace(each, text=None) for each in list_gone(by_key, seen)]


def date_file(
    path: str, hash: str, seen: Mapping[str, SeenNote], *, changed_on: date, today: date
) -> SeenNote:
    """A whole file, with the day on which its text first had this hash.

    ``changed_on`` is the day of the file's own time, which only counts if its text is
    seen for the first time.
    """
    key = content_id("file", path, hash)
    day = seen[key].day if key in seen else min(changed_on, today)
    return SeenNote(key, _possible(day, today))


def _find_reworded(new: Mapping[str, str], gone: Sequence[SeenNote]) -> dict[str, date]:
    """The days of new facts that say the same as one that is gone."""
    if not 0 < len(new) * len(gone) <= _MAX_COMPARISONS:
        return {}
    known = [(normalize_fact(each.text or ""), each.day) for each in gone]
    found: dict[str, date] = {}
    for key, text in new.items():
        fact = normalize_fact(text)
        days = [
            day
            for other, day in known
            if adds_nothing(fact, other) or adds_nothing(other, fact)
        ]
        if days:
            found[key] = min(days)
    return found


def _key_of(fact: str) -> str:
    return content_id("fact", " ".join(fact.split()))


def _possible(day: date, today: date) -> date:
    return day if day <= today + _AHEAD else today
