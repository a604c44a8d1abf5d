"""Copies of MEMORY.md: backups of ours, an editor's, and texts that were set aside.

They are never searched. What is forgotten goes from them too.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from backstory.errors import FactAmbiguous, FactNotFound, StoreUnwritable
from backstory.notes import facts
from backstory.notes.note_versions import encode, read_version
from backstory.system.files import make_private_folder, storing, write_new
from backstory.values.structs import FrozenStruct

MAX_BACKUPS = 20


class FoundFact(FrozenStruct):
    """A fact as MEMORY.md or a copy has it, and the copies that have it too."""

    text: str
    copies: tuple[Path, ...]


class MemoryCopies:
    """The copies beside one MEMORY.md; whoever writes has the lock of the notes."""

    def __init__(self, memory_path: Path) -> None:
        self._memory_path = memory_path
        self._folder = memory_path.parent

    # -- making ---

    def back_up(self, text: str) -> None:
        """Keep the text of MEMORY.md, named after the time it was saved."""
        folder = self._folder / "backups"
        make_private_folder(folder)
        with storing(folder):
            stem = f"MEMORY-{_saved_at(self._memory_path):%Y%m%d-%H%M%S}"
            same = sorted(folder.glob(f"{stem}*.md"), key=_age_of_backup)
            number = _age_of_backup(same[-1])[1] + 1 if same else 1
            name = f"{stem}-{number}.md" if same else f"{stem}.md"
            write_new(folder / name, encode(text))
            kept = sorted(folder.glob("MEMORY-*.md"), key=_age_of_backup)
            for old in kept[:-MAX_BACKUPS]:
                old.unlink()

    def write_aside(self, text: str, name: str) -> Path:
        """Write a text to a new file, with a number after the name's stem."""
        stem, dot, suffix = name.partition(".")
        with storing(self._folder / name):
            for number in range(1, 10_000):
                path = self._folder / (f"{stem}-{number}{dot}{suffix}")
                with suppress(FileExistsError):
                    write_new(path, encode(text))
                    return path
        raise StoreUnwritable(f"{self._folder}: too many files named {stem}")

    # -- forgetting ---

    def find_fact(self, memory: str, fact: str) -> FoundFact:
        """The whole fact in MEMORY.md or, if it has none, in a copy.

        Raises ``FactNotFound`` and ``FactAmbiguous``.
        """
        copies = {path: self._read(path) for path in self._list()}
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
        """Remove a fact from all copies; one from which it cannot be is deleted."""
        for path in fact.copies:
            seen = read_version(path, self._folder)
            without = _without_fact(seen.text, fact.text)
            if without is None:
                with storing(path):
                    path.unlink(missing_ok=True)
            elif without != seen.text:
                seen.replace(encode(without))

    def _list(self) -> list[Path]:
        with storing(self._folder):
            return sorted(
                [
                    *self._folder.glob("backups/MEMORY-*.md"),
                    *self._folder.glob("MEMORY-edited-*.md"),
                    *self._folder.glob("MEMORY.md.bak"),
                    *self._folder.glob("MEMORY.md~"),
                ]
            )

    def _read(self, path: Path) -> str:
        return read_version(path, self._folder).text


def _find_whole(memory: str, fact: str, copies: Iterable[str]) -> str:
    try:
        return facts.get_fact(memory, fact)
    except FactNotFound:
        for text in copies:
            with suppress(FactNotFound, FactAmbiguous):
                return facts.get_fact(text, fact)
        raise


def _without_fact(text: str, fact: str) -> str | None:
    """A text without a fact; None if the fact cannot be told from the rest."""
    text, _ = facts.remove_repeats(text)
    with suppress(FactNotFound, FactAmbiguous):
        text = facts.remove_fact(text, fact)
    is_left = " ".join(fact.split()) in " ".join(text.split())
    return None if is_left else text


def _saved_at(path: Path) -> datetime:
    """The local time of a file, which may be out of a date's range."""
    with suppress(OverflowError, ValueError):
        return datetime.fromtimestamp(path.stat().st_mtime)
    return datetime.min.replace(year=1000)  # four digits on every system


def _age_of_backup(path: Path) -> tuple[str, int]:
    """Its time, then its number among those of the same second."""
    stem = path.stem.split("-")
    number = stem[3] if len(stem) > 3 else "1"
    return "-".join(stem[:3]), int(number) if number.isdigit() else 0
