"""The file beside MEMORY.md that records where its facts come from."""

from collections.abc import Callable, Iterable, Mapping

from backstory.errors import NotesConflict
from backstory.notes.facts import list_facts
from backstory.notes.origins import (
    ORIGINS_NAME,
    carry_over,
    drop,
    origins_of,
    parse_origins,
    write_origins,
)
from backstory.notes.places import NotesPlace, ReadNote
from backstory.values.notes import FactOrigin


class OriginsRecord:
    """The record beside one MEMORY.md; it is changed under the lock of the notes."""

    def __init__(self, place: NotesPlace) -> None:
        self._place = place

    def exists(self) -> bool:
        return self._version().raw is not None

    def read(self, memory: str) -> dict[str, tuple[FactOrigin, ...]]:
        """The origins of the facts in MEMORY.md, by what they say."""
        return origins_of(memory, parse_origins(self._version().raw))

    def record(self, memory: str, new: Mapping[str, Iterable[FactOrigin]]) -> None:
        """Record the origins of ``new`` facts, and drop those of facts that are gone.

        ``memory`` is the next text of MEMORY.md, which is written after this, so that
        no fact lacks its origin.
        """
        seen = self._version()
        if seen.raw is not None or new:
            self._write(seen, carry_over(parse_origins(seen.raw), memory, new))

    def record_change(self, before: str, after: str, origin: FactOrigin | None) -> None:
        """Record the origin of the facts that are only in the second text.

        A fact that was reworded keeps its earlier origins.
        """
        if origin is None:
            self.record(after, {})
            return
        recorded = self.read(before)
        told = [
            each
            for fact in facts_only_in(before, after)
            for each in recorded.get(fact, ())
        ]
        new = facts_only_in(after, before)
        self.record(after, dict.fromkeys(new, (*told, origin)))

    def drop(self, is_meant: Callable[[FactOrigin], bool]) -> None:
        """Remove origins."""
        seen = self._version()
        recorded = parse_origins(seen.raw)
        kept = drop(recorded, is_meant)
        if kept != recorded:
            self._write(seen, kept)

    def _version(self) -> ReadNote:
        return self._place.read(ORIGINS_NAME)

    def _write(
        self, seen: ReadNote, origins: Mapping[str, tuple[FactOrigin, ...]]
    ) -> None:
        raw = write_origins(origins)
        if raw != seen.raw and not seen.replace(raw):
            path = self._place.path(ORIGINS_NAME)
            raise NotesConflict(f"{path}: somebody else keeps saving it")


def facts_only_in(text: str, other: str) -> list[str]:
    """The facts that only the first of two texts has."""
    known = {fact.text for fact in list_facts(other)}
    found = (fact.text for fact in list_facts(text))
    return [fact for fact in found if fact not in known]
