"""Keep the index in step with the history and the Markdown files.

The history numbers its changes. The index knows the last one it has taken in, and both
change in one transaction of the index. So building can be killed at any point, a
missing index is one that has taken in nothing yet, and to rebuild is to catch up.
"""

import bisect
import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, takewhile
from pathlib import Path

from backstory.errors import SourceUnreadable
from backstory.index.chunks import (
    CHUNKER,
    REACH,
    UNIT_KINDS,
    CutNote,
    cut_chunks,
    cut_note,
    cut_units,
    session_unit,
)
from backstory.index.note_days import NoteDays
from backstory.index.origin import (
    HISTORY,
    LAST_CHANGE,
    IndexOrigin,
    find_origin,
    name_change,
)
from backstory.notes.find import FoundNote, NoteKind, read_note
from backstory.store.base.history import Change, HistoryStore
from backstory.store.base.index import IndexedFile, IndexWriter, SearchIndex
from backstory.system.files import is_inside
from backstory.text.json_values import compact_json
from backstory.text.redaction import drop_private_lines
from backstory.values.history import Message, Problem, Session
from backstory.values.identity import content_id
from backstory.values.moments import Moment
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, Struct, field, replace
from backstory.values.units import FileRef, SessionRef, session_unit_id

# How many messages are taken in at once: fewer would be slower, and more would keep
# other writers waiting.
_BATCH_MESSAGES = 10_000
_BATCH_CHANGES = 2_000
# The states that the index keeps: how far it has got, and what it was made from.
_CHANGES_DONE = "changes_done"
_TAKEN_TO = "taken_to"
_CHUNKER = "chunker"
_GUIDANCE_PROBLEMS = "guidance_problems"


class _Progress(FrozenStruct):
    """How far the index has got: all changes up to one, and part of the next.

    ``taken_to`` is the last message taken in from the change after ``changes_done``; 0
    if there is none.
    """

    changes_done: int = 0
    taken_to: int = 0


class _ChangeBatch(FrozenStruct):
    """Changes to take in at once; ``is_partial`` if the last of them was cut."""

    changes: Sequence[Change]
    is_partial: bool

    @property
    def message_count(self) -> int:
        """How many messages they have, at most."""
        return sum(map(_count_messages, self.changes))

    def by_session(self) -> dict[int, list[Change]]:
        sessions: dict[int, list[Change]] = {}
        for change in self.changes:
            sessions.setdefault(change.session_id, []).append(change)
        return sessions


class Standing(FrozenStruct):
    """Where an index stands: what it was made from, and whether anything is missing.

    An index whose history is lost is not behind: nothing of it may be deleted.
    """

    origin: IndexOrigin
    is_behind: bool


class IndexBuilder(Struct):
    """Puts what the history and the notes hold into an index."""

    history: HistoryStore
    index: SearchIndex
    clock: Callable[[], datetime]

    # -- the history ---

    def origin(self) -> IndexOrigin:
        """Whether what the index has taken in is from this history."""
        return self.compare().origin

    def _find_origin(self, get_state: Callable[[str], str | None]) -> IndexOrigin:
        if _read_progress(get_state) == _Progress():
            return IndexOrigin.SAME
        return find_origin(self.index, self.history, get_state)

    def is_behind(self) -> bool:
        """Whether the history holds something that the index has not taken in."""
        return self.compare().is_behind

    def compare(self) -> Standing:
        """Compare the index with the history."""
        # All at once, because every search does this.
        get_state = self.index.list_states().get
        origin = self._find_origin(get_state)
        if origin is not IndexOrigin.SAME:
            return Standing(origin, is_behind=origin is IndexOrigin.OTHER)
        done = _read_progress(get_state).changes_done
        is_behind = (
            get_state(_CHUNKER) not in (None, CHUNKER)
            # Indexes of older versions know no tag.
            or (done > 0 and get_state(LAST_CHANGE) is None)
            or done != self.history.last_change_id()
        )
        return Standing(origin, is_behind)

    def catch_up(
        self,
        *,
        until: float | None = None,
        on_taken: OnCount | None = None,
        timeout_s: float = 30.0,
    ) -> bool:
        """Take in what is new, batch by batch; returns whether that is all of it.

        No batch is begun after ``until``, a time on the monotonic clock, but an index
        of another history is always cleared. Raises ``StoreLocked`` if another process
        writes for longer than ``timeout_s``.
        """
        total = self.history.count_messages() if on_taken is not None else 0
        taken = 0
        while self.is_behind():
            is_late = until is not None and time.monotonic() >= until
            if is_late and self.origin() is IndexOrigin.SAME:
                return False
            with self.index.writing(timeout_s=timeout_s) as writer:
                taken += self._take_batch(writer)
            if on_taken is not None:
                on_taken(min(taken, total), total)
        return True

    def _take_batch(self, writer: IndexWriter) -> int:
        """Take in the next changes; returns roughly how many messages they have."""
        progress = self._start_over_if_stale(writer)
        batch = self._read_batch(progress)
        by_session = batch.by_session()
        sessions = self.history.get_sessions(by_session)
        for session_id, changes in by_session.items():
            self._take_session(writer, session_id, sessions.get(session_id), changes)
        self._write_progress(writer, progress, batch, sessions)
        return batch.message_count

    def _start_over_if_stale(self, writer: IndexWriter) -> _Progress:
        """Clear the index if it was made from something else; returns its progress.

        Vectors are cached by the text they were made from, so they are not made again.
        """
        made_from = {_CHUNKER: CHUNKER, HISTORY: self.history.identity}
        is_outdated = writer.get_state(_CHUNKER) not in (None, CHUNKER)
        if is_outdated or self._find_origin(writer.get_state) is IndexOrigin.OTHER:
            writer.clear()
        progress = _read_progress(writer.get_state)
        for name, value in made_from.items():
            writer.set_state(name, value)
        return progress

    def _read_batch(self, progress: _Progress) -> _ChangeBatch:
        changes = self.history.list_changes(progress.changes_done, _BATCH_CHANGES)
        return _choose_batch(changes, progress.taken_to)

    def _write_progress(
        self,
        writer: IndexWriter,
        before: _Progress,
        batch: _ChangeBatch,
        sessions: Mapping[int, Session],
    ) -> None:
        if batch.changes:
            last = batch.changes[-1]
            writer.set_state(LAST_CHANGE, name_change(last.change_id, last.tag))
            if batch.is_partial:
                writer.set_state(_TAKEN_TO, str(last.last_message_id))
                return
            done = last.change_id
        else:
            done = before.changes_done
            tag = self.history.find_tag(done)
            writer.set_state(LAST_CHANGE, name_change(done, tag))
        writer.set_state(_CHANGES_DONE, str(done))
        writer.set_state(_TAKEN_TO, "0")
        now = self.clock()
        for session_id, changes in batch.by_session().items():
            if _has_messages(sessions.get(session_id)):
                writer.note_session(session_id, changes[-1].change_id, now)

    def _take_session(
        self,
        writer: IndexWriter,
        session_id: int,
        session: Session | None,
        changes: Sequence[Change],
    ) -> None:
        """Take in what changed in a session; what is gone from it is deleted."""
        if session is None or not _has_messages(session):
            writer.delete_container(SessionRef(session_id))
            return
        if any(change.is_emptying for change in changes):
            writer.delete_container(SessionRef(session_id))
        for first_id, last_id in _merge_ranges(changes):
            positions = self.history.find_positions(session_id, first_id, last_id)
            if positions is not None:
                self._take_messages(writer, session, *positions)
        unit = session_unit(session)
        if unit is not None:
            writer.replace_units([unit])
        else:
            writer.delete_units([session_unit_id(session_id)])

    def _take_messages(
        self, writer: IndexWriter, session: Session, first: int, last: int
    ) -> None:
        """Take in the messages from one position to another, and their neighbours."""
        chunks = writer.list_chunks(session.session_id)
        start = _find_start(chunks, first)
        # The neighbours' units contain words of these messages and are cut again; for
        # that, their own neighbours are needed too.
        read_to = last + 2 * REACH
        messages = list(
            self.history.iter_messages(
                session.session_id,
                first=max(0, min(start, first - 2 * REACH)),
                last=read_to,
            )
        )
        self._replace_units(writer, session, messages, first, last)
        # The chunks that follow may now begin elsewhere.
        end = max(last, chunks[-1][1] if chunks else 0)
        spoken: Iterator[Message] = (m for m in messages if start <= m.position <= end)
        if end > read_to:
            more = self.history.iter_messages(
                session.session_id, first=read_to + 1, last=end
            )
            spoken = chain(spoken, more)
        old_starts = {begins for begins, _ in chunks if begins > last}
        # Once a new chunk begins where an old one did, the rest is unchanged.
        fresh = list(
            takewhile(
                lambda chunk: chunk.first_position not in old_starts,
                cut_chunks(spoken),
            )
        )
        after = fresh[-1].last_position if fresh else last
        before = min((begins for begins in old_starts if begins > after), default=None)
        writer.replace_chunks(
            SessionRef(session.session_id), fresh, first=start, before=before
        )

    def _replace_units(
        self,
        writer: IndexWriter,
        session: Session,
        messages: Sequence[Message],
        first: int,
        last: int,
    ) -> None:
        units = list(cut_units(session, messages, first, last))
        # Messages that are empty now, or turned out to be calls of our own tools.
        gone = set(writer.list_message_units(session.session_id, first, last))
        gone.difference_update(unit.unit_id for unit in units)
        if gone:
            writer.delete_units(gone)
        writer.replace_units(units)

    # -- Markdown files ---

    def take_notes(
        self,
        found: Iterable[FoundNote | Problem],
        kinds: frozenset[NoteKind],
        *,
        timeout_s: float = 30.0,
    ) -> list[Problem]:
        """Take in the files of some kinds that changed, and remove those that are gone.

        Returns what could not be read; unreadable files stay in the index as they were.
        """
        known = {
            (file.kind, file.path): file
            for file in self.index.list_files()
            if file.kind in {UNIT_KINDS[kind] for kind in kinds}
        }
        notes = _FoundNotes()
        for note in found:
            if isinstance(note, Problem):
                notes.problems.append(note)
            else:
                key = (UNIT_KINDS[note.kind], str(note.path))
                notes.add(note, known.pop(key, None))
        hidden = [each for each in known.values() if _is_hidden(each, notes.problems)]
        gone = [each for each in known.values() if each not in hidden]
        cuts = [cut_note(note, text) for note, text in notes.changed]
        days = NoteDays(self.history, self.clock).date(cuts)
        if cuts or notes.touched or gone:
            with self.index.writing(timeout_s=timeout_s) as writer:
                for file in gone:
                    writer.delete_file(file.file_id)
                for file in notes.touched:
                    writer.set_signature(file.file_id, file.signature)
                for cut, dated in zip(cuts, days, strict=True):
                    self._write_note(writer, cut, dated)
        return _say_what_is_searched(notes, hidden)

    def take_guidance(self, found: Iterable[FoundNote | Problem]) -> list[Problem]:
        """Take in the guidance files, and keep their problems.

        Searches tell about the problems, but have no time to look for the files.
        """
        problems = self.take_notes(found, frozenset({NoteKind.GUIDANCE}))
        kept = compact_json([[each.reason, each.path] for each in problems])
        if (self.index.get_state(_GUIDANCE_PROBLEMS) or "[]") != kept:
            with self.index.writing() as writer:
                writer.set_state(_GUIDANCE_PROBLEMS, kept)
        return problems

    def list_guidance_problems(self) -> list[Problem]:
        """What was wrong with guidance files when they were last looked for."""
        kept = self.index.get_state(_GUIDANCE_PROBLEMS) or "[]"
        return [Problem(reason, path=path) for reason, path in json.loads(kept)]

    def _write_note(
        self, writer: IndexWriter, cut: CutNote, days: Sequence[Moment]
    ) -> None:
        note = cut.note
        file = IndexedFile(
            file_id=0,
            kind=UNIT_KINDS[note.kind],
            path=str(note.path),
            project=note.project,
            signature=note.signature,
            hash=cut.hash,
            modified_at=note.mtime_ns // 1000,
        )
        container = FileRef(writer.replace_file(file, self.clock()))
        units = cut.to_units(
            days, first_unit_id=writer.next_note_id(), container=container
        )
        writer.replace_notes(container, units)
        writer.replace_chunks(container, cut.chunks)


# -- pieces ---------------------------------------------------------------------------


class _FoundNotes(Struct):
    """The files that changed, those that only have another time, and the problems.

    ``unreadable`` are files that the index holds as they were before.
    """

    changed: list[tuple[FoundNote, str]] = field(default_factory=list)
    touched: list[IndexedFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unreadable: list[IndexedFile] = field(default_factory=list)

    def add(self, note: FoundNote, file: IndexedFile | None) -> None:
        """Compare a file with what the index has of it."""
        if note.problem is not None:
            self.problems.append(note.problem)
        if file is not None and file.signature == note.signature:
            return
        try:
            text = drop_private_lines(read_note(note))
        except SourceUnreadable as exc:
            self.problems.append(Problem(str(exc), path=str(note.path)))
            if file is not None:
                self.unreadable.append(file)
            return
        # An index of another chunker was cleared before.
        if file is not None and file.hash == content_id(text):
            self.touched.append(replace(file, signature=note.signature))
        else:
            self.changed.append((note, text))


def _say_what_is_searched(
    notes: _FoundNotes, hidden: Iterable[IndexedFile]
) -> list[Problem]:
    """The problems; each says whether the index still has the file."""
    kept = [Path(file.path) for file in (*hidden, *notes.unreadable)]
    return [
        replace(problem, reason=f"{problem.reason}; what was read before is searched")
        if any(is_inside(path, Path(problem.path)) for path in kept)
        else problem
        for problem in notes.problems
    ]


def _is_hidden(file: IndexedFile, problems: Iterable[Problem]) -> bool:
    """Whether a file, or a folder it is in, exists but cannot be read."""
    path = Path(file.path)
    return any(is_inside(path, Path(each.path)) for each in problems if each.path)


def _has_messages(session: Session | None) -> bool:
    return session is not None and session.message_count > 0


def _read_progress(get_state: Callable[[str], str | None]) -> _Progress:
    return _Progress(int(get_state(_CHANGES_DONE) or 0), int(get_state(_TAKEN_TO) or 0))


def _choose_batch(changes: Iterable[Change], taken_to: int) -> _ChangeBatch:
    """Choose as many changes as fit into one batch.

    The messages of the first change up to ``taken_to`` have been taken in already. A
    change with too many messages is cut, and is a batch of its own.
    """
    taken: list[Change] = []
    room = _BATCH_MESSAGES
    for change in changes:
        if taken_to and not taken:
            change = dataclasses.replace(change, first_message_id=taken_to + 1)
        room -= _count_messages(change)
        if room < 0:
            if taken or change.last_message_id is None:
                break
            last = change.last_message_id + room
            return _ChangeBatch(
                [dataclasses.replace(change, last_message_id=last)], True
            )
        taken.append(change)
    return _ChangeBatch(taken, False)


def _count_messages(change: Change) -> int:
    """How many messages a change has, at most."""
    if change.first_message_id is None or change.last_message_id is None:
        return 0
    return change.last_message_id - change.first_message_id + 1


def _merge_ranges(changes: Iterable[Change]) -> list[tuple[int, int]]:
    """The ranges of message numbers in some changes, joined where they touch."""
    ranges: list[tuple[int, int]] = []
    for first, last in sorted(
        (change.first_message_id, change.last_message_id)
        for change in changes
        if change.first_message_id is not None and change.last_message_id is not None
    ):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
        else:
            ranges.append((first, last))
    return ranges


def _find_start(chunks: Sequence[tuple[int, int]], position: int) -> int:
    """The start of the chunk that a position belongs to, or may belong to.

    A message that began a chunk may fit into the one before it if it is shorter now.
    """
    index = bisect.bisect_left(chunks, position, key=lambda chunk: chunk[0])
    return chunks[index - 1][0] if index else 0
