"""Notebook: MEMORY.md and the daily logs of a home, read and changed safely.

What a person saves is never overwritten. A change is applied to the current text.
Before the new text replaces the file, the file is read again, and if somebody has saved
it since, the change is applied to that version. After a crash, there is either the old
text or the new one.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path

from backstory.errors import (
    BackstoryError,
    BadQuery,
    FactNotFound,
    NotesConflict,
    SourceUnreadable,
)
from backstory.notes import facts
from backstory.notes.copies import FoundFact, MemoryCopies
from backstory.notes.daily_logs import (
    add_block,
    has_blocks,
    merge_logs,
    remove_blocks,
    split_blocks,
)
from backstory.notes.facts import DEFAULT_TOPIC, check_fact
from backstory.notes.find import (
    FoundNote,
    NoteKind,
    read_note,
)
from backstory.notes.masked_facts import find_behind_masks, find_known, reword
from backstory.notes.merge import merge_memories
from backstory.notes.note_versions import encode_note
from backstory.notes.origins_record import OriginsRecord, facts_only_in
from backstory.notes.places import MEMORY_NAME, FileNotes, NotesPlace, ReadNote
from backstory.notes.removed import Removed, RemovedRecord, leave_out_removed
from backstory.text.arguments import check_text, to_date
from backstory.text.escape import replace_surrogates
from backstory.text.markdown.lines import split_lines
from backstory.text.private import drop_private
from backstory.text.redaction import mask_secrets
from backstory.values.identity import bytes_hash
from backstory.values.notes import FactOrigin
from backstory.values.reports import ListedLog
from backstory.values.structs import FrozenStruct

logger = logging.getLogger(__name__)

_ATTEMPTS = 10


class NoteFile(FrozenStruct):
    """One file of the notes: its name in the memory folder, and its content."""

    name: str
    raw: bytes
    mtime_ns: int


class NotesSummary(FrozenStruct):
    """How much the notes contain; ``facts`` is the number of facts by topic."""

    files: int
    size_bytes: int
    logs: int
    first_day: date | None
    last_day: date | None
    memory_lines: int
    facts: Mapping[str, int]


class Notebook:
    """The long-term memory and the daily logs of one home.

    Several processes and a person's editor may write at once. Texts are the exact
    content of a file, with its line ends and, if there is one, a byte order mark.
    ``place`` is where the notes are, unless they are files in the home.
    """

    def __init__(self, home: Path, place: NotesPlace | None = None) -> None:
        local = FileNotes(home)
        self._place: NotesPlace = place or local
        self.folder = self._place.folder
        self.memory_path = self._place.path(MEMORY_NAME)
        self._origins = OriginsRecord(self._place)
        self._copies = MemoryCopies(self._place, local)
        self._removed = RemovedRecord(self._place)
        self._is_closed = False

    def close(self) -> None:
        """Refuse every further use; the memory that it belongs to is closed."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise BadQuery("the memory is closed", hint="open it again: Memory.open()")

    def log_path(self, day: date | str) -> Path:
        """The path of a day's log; a day given as text is a date like 2026-02-25."""
        return self.folder / "daily" / f"{to_date(day, 'day').isoformat()}.md"

    # -- reading ---

    def read_memory(self) -> str:
        """The text of MEMORY.md; empty if there is none.

        Raises ``SourceUnreadable``.
        """
        return self._read(self.memory_path) or ""

    def read_beginning(self) -> str:
        """MEMORY.md as it is searched: cut if too large, with invalid bytes replaced.

        Raises ``SourceUnreadable``.
        """
        for note in self._notes():
            if note.kind is NoteKind.MEMORY:
                return read_note(note)
        return ""

    def memory_stamp(self) -> str:
        """A hash of MEMORY.md as it is now; empty if there is none."""
        raw = self._look_at(self.memory_path).raw
        return "" if raw is None else bytes_hash(raw)

    def list_logs(self) -> list[date]:
        """The days that have a daily log, earliest first."""
        return [note.day for note in self._notes() if note.day is not None]

    def describe_log(self, day: date) -> ListedLog:
        """The log of a day, or why it could not be read."""
        path = self.log_path(day)
        try:
            return ListedLog(day, path, self.read_log(day) or "")
        except SourceUnreadable as exc:
            return ListedLog(day, path, problem=str(exc))

    def read_log(self, day: date | str) -> str | None:
        """The daily log of a day; None if there is none."""
        return self._read(self.log_path(day))

    def has_memory(self) -> bool:
        """Whether there is a MEMORY.md, readable or not."""
        self._check_open()
        memory = str(self.memory_path)
        return any(str(found.path) == memory for found in self._place.find_notes())

    def read_raw(self, path: Path) -> bytes | None:
        """A file of the notes byte for byte; None if there is none.

        Raises ``SourceUnreadable``.
        """
        return self._look_at(path).raw

    def iter_files(self) -> Iterator[NoteFile]:
        """Every file of the notes, the long-term memory first."""
        for note in self._notes():
            raw = self._look_at(note.path).raw
            if raw is not None:
                name = note.path.relative_to(self.folder).as_posix()
                yield NoteFile(name, raw, note.mtime_ns)

    def summary(self) -> NotesSummary:
        """How much is in the notes, and on which topics."""
        notes = list(self._notes())
        days = [note.day for note in notes if note.day is not None]
        text = self.read_memory()
        return NotesSummary(
            files=len(notes),
            size_bytes=sum(note.size_bytes for note in notes),
            logs=len(days),
            first_day=days[0] if days else None,
            last_day=days[-1] if days else None,
            memory_lines=len(split_lines(text)),
            facts=Counter(fact.topic for fact in facts.list_facts(text)),
        )

    def read_origins(self) -> dict[str, tuple[FactOrigin, ...]]:
        """Where the facts in MEMORY.md come from, by what they say.

        A fact without an entry was written by a person, or before this was recorded.
        """
        return self._origins.read(self.read_memory())

    def _notes(self) -> Iterator[FoundNote]:
        self._check_open()
        for found in self._place.find_notes():
            if isinstance(found, FoundNote) and found.kind is not NoteKind.GUIDANCE:
                yield found

    def _read(self, path: Path) -> str | None:
        seen = self._look_at(path)
        return None if seen.raw is None else seen.text

    # -- facts ---

    def add_fact(
        self,
        fact: str,
        topic: str = DEFAULT_TOPIC,
        *,
        mask: bool = True,
        origin: FactOrigin | None = None,
        unless_removed: bool = False,
    ) -> str | None:
        """Add a fact below its topic in MEMORY.md; returns the fact as it was added.

        None means that the memory already says it or, with ``unless_removed``, that a
        person removed it. Secrets are masked unless ``mask`` is off. A fact without an
        ``origin`` is one of the person whose memory this is. Raises ``BadQuery`` for a
        fact that is empty or too long.
        """
        check_text(fact, "fact")
        check_text(topic, "topic")
        checked = check_fact(mask_secrets(drop_private(fact)) if mask else fact)

        def change(text: str) -> str:
            if find_known(text, checked) is not None:
                return text
            if unless_removed and self._removed.read().seen_in(text).has_fact(checked):
                return text
            changed = facts.add_fact(text, topic, checked)
            self._origins.record_change(text, changed, origin)
            return changed

        before, after = self._change(self.memory_path, change)
        return None if before == after else checked

    def update_fact(
        self,
        old: str,
        new: str,
        *,
        mask: bool = True,
        origin: FactOrigin | None = None,
    ) -> str:
        """Reword a fact, or a part of one; returns the new words.

        Empty new words remove the old ones. With ``mask``, both may have masks in place
        of the fact's own secrets, which stay; other secrets are masked. Raises
        ``FactNotFound`` and ``FactAmbiguous`` unless the old words are in exactly one
        place, and ``BadQuery`` if a secret of the fact would be replaced.
        """
        check_text(old, "old")
        words = check_text(new, "new").strip()

        def change(text: str) -> str:
            nonlocal words
            named = find_behind_masks(text, old) if mask else old
            if mask:
                words = reword(facts.get_fact(text, named), new.strip())
            if words:
                check_fact(words)
            changed = facts.replace_fact(text, named, words)
            self._origins.record_change(text, changed, origin)
            return changed

        self._change(self.memory_path, change, by_person=not new.strip())
        return words

    def find_fact(self, fact: str) -> FoundFact:
        """The fact that ``forget_fact`` would remove; raises the same errors."""
        check_text(fact, "fact")
        return self._copies.find_fact(self.read_memory(), fact)

    def forget_fact(self, fact: str) -> str:
        """Remove the fact that says this or contains it; returns the whole fact.

        It is removed from backups and edited copies, too, and no model adds it again
        unless a person does. Raises ``FactNotFound`` and ``FactAmbiguous`` as
        ``update_fact`` does.
        """
        found = self.find_fact(fact)

        def change(text: str) -> str:
            with suppress(FactNotFound):  # it may be in a copy only
                return facts.remove_fact(text, found.text)
            return text

        self._change(self.memory_path, change, by_person=True)
        self.number_removed_fact(found.text, None)
        with self._place.changing():
            self._copies.remove_fact(found)
        return found.text

    def number_removed_fact(self, fact: str, forgetting: int | None) -> None:
        """Record the number of the forgetting that removed a fact, to undo it by."""
        self._change_removed(lambda held: held.with_fact(fact, forgetting))

    def allow_facts_of(self, forgetting: int) -> None:
        """Let facts return that this forgetting removed."""
        self._change_removed(lambda held: held.without_forgetting(forgetting))

    def was_removed(self, fact: str) -> bool:
        """Whether a person removed this from MEMORY.md, here or in an editor."""
        return self._removed.read().seen_in(self.read_memory()).has_fact(fact)

    def _change_removed(self, change: Callable[[Removed], Removed]) -> None:
        self._check_open()
        with self._place.changing():
            self._removed.change(change)

    # -- writing ---

    def change_memory(self, change: Callable[[str], str]) -> str:
        """Apply a change to MEMORY.md; returns the new text.

        ``change`` gets the current text, and is called again with the newer one if
        somebody saves in between. If it raises, nothing is changed. Raises
        ``NotesConflict`` if somebody keeps saving, and ``StoreFull`` or
        ``StoreUnwritable`` if the file cannot be written.
        """
        return self._change(self.memory_path, change)[1]

    def replace_memory(
        self,
        text: str,
        expected: str,
        *,
        keep_backup: bool = False,
        origins: Mapping[str, Iterable[FactOrigin]] | None = None,
        by_person: bool = False,
    ) -> None:
        """Replace the whole text; ``expected`` is the text that was read.

        Raises ``NotesConflict`` if MEMORY.md is no longer the same. A backup of the old
        text is named after the time it was saved; the last twenty are kept. ``origins``
        are the origins of new facts, by what they say. What is removed ``by_person`` is
        not added again by a model.
        """
        check_text(text, "text")

        def change(current: str) -> str:
            if current != expected:
                raise NotesConflict(
                    f"{self.memory_path} was changed by someone else in the meantime"
                )
            if keep_backup and current and current != text:
                self._copies.back_up(current)
            self._origins.record(text, origins or {})
            return text

        self._change(self.memory_path, change, by_person=by_person)

    def append_log(self, day: date | str, block: str, marker: str) -> bool:
        """Add a block at the end of a day's log; returns whether it is new.

        A block is identified by its marker, so this can be repeated after a crash.
        Secrets in the block are masked.
        """
        on_day = to_date(day, "day")
        masked = mask_secrets(drop_private(check_text(block, "block")))
        check_text(marker, "marker")

        def change(text: str) -> str:
            return add_block(text, on_day, masked, marker=marker)

        before, after = self._change(self.log_path(day), change)
        return before != after

    def remove_log_blocks(
        self, day: date | str, is_meant: Callable[[str], bool]
    ) -> None:
        """Remove blocks of a day's log by marker, and the log if no block is left."""
        path = self.log_path(day)
        blocks = split_blocks(self._read(path) or "")
        markers = [each.marker for each in blocks if each.marker]
        meant = list(filter(is_meant, markers))
        self._change_removed(lambda held: held.with_entries(meant))
        _, after = self._change(path, lambda text: remove_blocks(text, is_meant))
        if not has_blocks(after):
            self._place.delete(self._name_of(path))

    def merge_memory(
        self,
        theirs: str,
        *,
        origins: Mapping[str, Iterable[FactOrigin]] | None = None,
        dry_run: bool = False,
    ) -> int:
        """Add what only another MEMORY.md says; returns the number of blocks added.

        ``origins`` are the origins of its facts, by what they say; only facts that are
        new here get them. ``dry_run`` only counts.
        """
        check_text(theirs, "theirs")
        told = origins or {}
        added = 0

        def change(text: str) -> str:
            nonlocal added
            removed = self._removed.read().seen_in(text)
            merged, added = merge_memories(text, leave_out_removed(theirs, removed))
            new = facts_only_in(merged, text) if told and not dry_run else ()
            of_new = {fact: told[fact] for fact in new if fact in told}
            if of_new:
                self._origins.record(merged, of_new)
            return text if dry_run else merged

        if dry_run:
            change(self.read_memory())
        else:
            self.change_memory(change)
        return added

    def merge_log(self, day: date | str, theirs: str, *, dry_run: bool = False) -> int:
        """Add the blocks that only another log of the day has; returns their number.

        ``dry_run`` only counts.
        """
        on_day = to_date(day, "day")
        check_text(theirs, "theirs")
        added = 0

        def change(text: str) -> str:
            nonlocal added
            wanted = remove_blocks(theirs, self._removed.read().has_entry)
            if wanted != theirs and not has_blocks(wanted):
                return text
            merged, added = merge_logs(text, wanted, on_day)
            return merged

        if dry_run:
            change(self.read_log(day) or "")
        else:
            self._change(self.log_path(day), change)
        return added

    def drop_origins(self, is_meant: Callable[[FactOrigin], bool]) -> None:
        """Remove what is recorded about where facts come from; the facts stay."""
        self._check_open()
        if self._origins.exists():
            with self._place.changing():
                self._origins.drop(is_meant)

    def write_aside(self, text: str, name: str) -> Path:
        """Write a text to a new file in the memory folder, which is not searched."""
        self._check_open()
        return self._copies.write_aside(text, name)

    def _change(
        self,
        path: Path,
        change: Callable[[str], str],
        *,
        by_person: bool = False,
    ) -> tuple[str, str]:
        """Apply a change to a file; returns its text before and after.

        What a person removes from MEMORY.md in this way is recorded.
        """
        self._check_open()
        with self._place.changing(self._name_of(path)):
            for _ in range(_ATTEMPTS):
                seen = self._look_at(path)
                old = seen.text
                new = replace_surrogates(change(old))
                if new == old:
                    return old, new
                raw = encode_note(new, path)
                if path == self.memory_path:
                    self._removed.change(
                        partial(
                            Removed.before_change,
                            before=old,
                            after=new,
                            by_person=by_person,
                        )
                    )
                if seen.replace(raw):
                    if path == self.memory_path:
                        self._note_facts(new)
                    return old, new
        raise NotesConflict(f"{path}: somebody else keeps saving it")

    def _note_facts(self, text: str) -> None:
        """Remember the current facts, to notice which ones are removed in an editor."""
        try:
            self._removed.change(partial(Removed.after_change, after=text))
        except BackstoryError as exc:
            # The notes themselves have been written, which is what was asked for.
            logger.warning("%s", exc)

    def _look_at(self, path: Path) -> ReadNote:
        self._check_open()
        return self._place.read(self._name_of(path))

    def _name_of(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()
