"""Tell on which day a note was first seen, however its file changes.

A file's own time says little about a note in it: copying the file or editing another
note changes it. So the day is remembered by what the note says. A fact that was moved,
or reworded so that it says the same, keeps its day.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from backstory.notes.duplicates import adds_nothing, normalize_fact
from backstory.values.identity import content_id
from backstory.values.notes import SeenNote
from backstory.values.structs import replace

# With more to compare, the file was rewritten rather than edited.
_MAX_COMPARISONS = 100_000
# West of where a note was seen, its day may be tomorrow. Later than that, it was seen
# while the clock was wrong.
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
    """What to write so that these are the facts that MEMORY.md has.

    The words of facts that it has no more are not kept.
    """
    by_key = {fact.key: fact for fact in reversed(list(facts))}
    changed = [fact for key, fact in by_key.items() if seen.get(key) != fact]
    return changed + [replace(each, text=None) for each in list_gone(by_key, seen)]


def date_file(
    path: str, hash: str, seen: Mapping[str, SeenNote], *, changed_on: date, today: date
) -> SeenNote:
    """A whole file, with the day on which its text came to have this hash.

    ``changed_on`` is the day of the file's own time, which counts only when its text is
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
