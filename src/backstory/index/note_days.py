"""The days of notes: those in the names of daily logs, and those first seen on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from backstory.notes.find import FoundNote, NoteKind
from backstory.notes.first_seen import changes_to_facts, date_facts, date_file
from backstory.store.base.history import HistoryStore
from backstory.values.moments import Moment, to_modified, whole_day
from backstory.values.notes import SeenNote


@dataclass(frozen=True, slots=True)
class NoteDays:
    """Dates the parts of notes, and remembers their days in the history.

    With ``is_read_only``, nothing is remembered.
    """

    history: HistoryStore
    clock: Callable[[], datetime]
    is_read_only: bool = False

    def date_parts(
        self, note: FoundNote, text: str, parts: Sequence[str]
    ) -> list[Moment]:
        """The day of each of the parts that a note was split into.

        Raises ``StoreProblem`` if the days cannot be remembered.
        """
        if note.day is not None:
            days = [note.day] * len(parts)
        elif note.kind is NoteKind.MEMORY:
            days = self.date_facts(parts)
        else:
            days = [self._date_file(note, text)] * len(parts)
        return list(map(whole_day, days))

    def date_facts(self, facts: Sequence[str]) -> list[date]:
        """The days of all the facts of MEMORY.md."""
        dated: list[SeenNote] = []

        def change(seen: Mapping[str, SeenNote]) -> list[SeenNote]:
            dated[:] = date_facts(facts, seen, today=self._today())
            return changes_to_facts(dated, seen)

        self._apply(change)
        return [fact.day for fact in dated]

    def _date_file(self, note: FoundNote, text: str) -> date:
        today = self._today()
        dated: list[SeenNote] = []

        def change(seen: Mapping[str, SeenNote]) -> list[SeenNote]:
            changed_on = _day_of_file(note, today)
            dated[:] = [
                date_file(
                    str(note.path), text, seen, changed_on=changed_on, today=today
                )
            ]
            return [each for each in dated if seen.get(each.key) != each]

        self._apply(change)
        return dated[0].day

    def _apply(
        self, change: Callable[[Mapping[str, SeenNote]], Sequence[SeenNote]]
    ) -> None:
        if self.is_read_only:
            change(self.history.list_seen_notes())
        else:
            self.history.change_seen_notes(change)

    def _today(self) -> date:
        return self.clock().astimezone().date()


def _day_of_file(note: FoundNote, today: date) -> date:
    """The day of a file's own time; in UTC, so that it is one day in every zone."""
    modified = to_modified(note.mtime_ns)
    return today if modified is None else modified.at.date()
