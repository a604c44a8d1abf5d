"""Copies of MEMORY.md: our backups, an editor's, and texts that were set aside.

They are never searched. What is forgotten is removed from them, too.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from backstory.errors import FactAmbiguous, FactNotFound
from backstory.notes import facts
from backstory.notes.note_versions import encode
from backstory.notes.places import MEMORY_NAME, FileNotes, NotesPlace
from backstory.values.structs import FrozenStruct

MAX_BACKUPS = 20


class FoundFact(FrozenStruct):
    """A fact in the words of MEMORY.md or a copy, and the copies that also have it."""

    text: str
    copies: tuple[Path, ...]


class MemoryCopies:
    """The copies of one MEMORY.md; writers must hold the lock of the notes.

    Backups are kept where the notes are; an editor's leftovers are on this machine.
    """

    def __init__(self, place: NotesPlace, local: FileNotes) -> None:
        self._place = place
        self._local = local

    # -- making ---

    def back_up(self, text: str) -> None:
        """Keep the text of MEMORY.md, named after the time it was saved."""
        stem = f"backups/MEMORY-{self._place.saved_at(MEMORY_NAME):%Y%m%d-%H%M%S}"
        kept = sorted(self._place.list_backups(), key=_age_of_backup)
        same = [name for name in kept if name.startswith(stem)]
        number = _age_of_backup(same[-1])[1] + 1 if same else 1
        made = f"{stem}-{number}.md" if same else f"{stem}.md"
        self._place.add(made, encode(text))
        for old in sorted([*kept, made], key=_age_of_backup)[:-MAX_BACKUPS]:
            self._place.delete(old)

    def write_aside(self, text: str, name: str) -> Path:
        """Write a text to a new file, with a number after the name's stem."""
        return self._local.write_aside(encode(text), name)

    # -- forgetting ---

    def find_fact(self, memory: str, fact: str) -> FoundFact:
        """The whole fact in MEMORY.md or, if it has none, in a copy.

        Raises ``FactNotFound`` and ``FactAmbiguous``.
        """
        copies = {
            place.path(name): place.read(name).text for place, name in self._list()
        }
        whole = _find_whole(memory, fact, copies.values())
        return FoundFact(
            whole,
            tuple(
                path
                for path, text in copies.items()
                if _without_fact(text, whole) != text
            ),
        )

    def remove_fact(self, fact: FoundFact) -> None:
        """Remove a fact from all copies; a copy from which that fails is deleted."""
        for place, name in self._list():
            if place.path(name) not in fact.copies:
                continue
            seen = place.read(name)
            without = _without_fact(seen.text, fact.text)
            if without is None:
                place.delete(name)
            elif without != seen.text:
                seen.replace(encode(without))

    def _list(self) -> list[tuple[NotesPlace, str]]:
        found: list[tuple[NotesPlace, str]] = [
            *((self._place, name) for name in self._place.list_backups()),
            *((self._local, name) for name in self._local.list_loose_copies()),
        ]
        return sorted(found, key=lambda each: each[0].path(each[1]))


def _find_whole(memory: str, fact: str, copies: Iterable[str]) -> str:
    try:
        return facts.get_fact(memory, fact)
    except FactNotFound:
        for text in copies:
            with suppress(FactNotFound, FactAmbiguous):
                return facts.get_fact(text, fact)
        raise


def _without_fact(text: str, fact: str) -> str | None:
    """A text without a fact; None if the fact cannot be separated from the rest."""
    text, _ = facts.remove_repeats(text)
    with suppress(FactNotFound, FactAmbiguous):
        text = facts.remove_fact(text, fact)
    is_left = " ".join(fact.split()) in " ".join(text.split())
    return None if is_left else text


def _age_of_backup(name: str) -> tuple[str, int]:
    """The time of a backup, then its number among those of the same second."""
    stem = PurePosixPath(name).stem.split("-")
    number = stem[3] if len(stem) > 3 else "1"
    return "-".join(stem[:3]), int(number) if number.isdigit() else 0
