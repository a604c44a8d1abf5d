"""The days of notes: from the names of daily logs, or when a note was first seen."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime

from backstory.index.chunks import CutNote
from backstory.notes.find import FoundNote, NoteKind
from backstory.notes.first_seen import changes_to_facts, date_facts, date_file
from backstory.store.base.history import HistoryStore
from backstory.values.moments import Moment, to_modified, whole_day
from backstory.values.notes import SeenNote
from backstory.values.structs import FrozenStruct


class NoteDays(FrozenStruct):
    """Dates the parts of notes, and remembers their days in the history.

    If ``is_read_only``, nothing is remembered.
    """

    history: HistoryStore
    clock: Callable[[], datetime]
    is_read_only: bool = False

    def date(self, notes: Sequence[CutNote]) -> list[list[Moment]]:
        """The days of the parts of each note.

        Raises ``StoreProblem`` if the days cannot be remembered.
        """
        today = self.clock().astimezone().date()
        dated: list[list[Moment]] = []

        def change(seen: Mapping[str, SeenNote]) -> list[SeenNote]:
            dated.clear()
            changed: list[SeenNote] = []
            for note in notes:
                days, new = _date_note(note, seen, today)
                dated.append(list(map(whole_day, days)))
                changed += new
            return changed

        if notes:
            self._apply(change)
        return dated

    def _apply(
        self, change: Callable[[Mapping[str, SeenNote]], Sequence[SeenNote]]
    ) -> None:
        if self.is_read_only:
            change(self.history.list_seen_notes())
        else:
            self.history.change_seen_notes(change)


def _date_note(
    cut: CutNote, seen: Mapping[str, SeenNote], today: date
) -> tuple[list[date], list[SeenNote]]:
    """The days of the parts of a note, and what must be remembered."""
    note = cut.note
    if note.day is not None:
        return [note.day] * len(cut.parts), []
    if note.kind is NoteKind.MEMORY:
        facts = date_facts(cut.texts, seen, today=today)
        return [fact.day for fact in facts], changes_to_facts(facts, seen)
    file = date_file(
        str(note.path),
        cut.hash,
        seen,
        changed_on=_day_of_file(note, today),
        today=today,
    )
    is_known = seen.get(file.key) == file
    return [file.day] * len(cut.parts), [] if is_known else [file]


def _day_of_file(note: FoundNote, today: date) -> date:
    """The day of a file's own time; in UTC, so that it is the same in every zone."""
    modified = to_modified(note.mtime_ns)
    return today if modified is None else modified.at.date()
