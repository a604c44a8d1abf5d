"""Keep the index in step with the history and the Markdown files.

The history numbers its changes. The index knows the last one it has taken in, and both
change in one transaction of the index. So building can be killed at any time, a missing
index is one that has not taken in anything yet, and rebuilding is catching up.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from backstory.errors import SourceUnreadable
from backstory.index.origin import (
    CHUNKER,
    HISTORY,
    LAST_CHANGE,
    IndexOrigin,
    find_origin,
    name_change,
)
from backstory.notes.find import UNIT_KINDS, FoundNote, NoteKind, read_note
from backstory.store.base.history import Change, HistoryStore
from backstory.store.base.index import (
    PACK_MESSAGES,
    IndexedFile,
    IndexWriter,
    SearchIndex,
)
from backstory.system.files import is_inside
from backstory.text.json_values import compact_json
from backstory.values.history import Problem, Session
from backstory.values.identity import content_id
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, Struct, field, replace

# How many messages are taken in at once, at most: fewer would be slower, and more would
# make other writers wait.
_BATCH_MESSAGES = 20_000
# A smaller batch goes on beyond the end of a pack.
_WORTH_A_BATCH = 1_000
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

    An index whose history is lost is not behind: nothing in it may be deleted.
    """

    origin: IndexOrigin
    is_behind: bool


class IndexBuilder(Struct):
    """Puts the content of the history and the notes into an index.

    ``is_shared``: other machines do so, too, and have projects that are not here.
    """

    history: HistoryStore
    index: SearchIndex
    clock: Callable[[], datetime]
    is_shared: bool = False

    # -- the history ---

    def origin(self) -> IndexOrigin:
        """Whether what the index has taken in comes from this history."""
        return self.compare().origin

    def _find_origin(self, get_state: Callable[[str], str | None]) -> IndexOrigin:
        if _read_progress(get_state) == _Progress():
            return IndexOrigin.SAME
        return find_origin(self.index, self.history, get_state)

    def is_behind(self) -> bool:
        """Whether the history has something that the index has not taken in."""
        return self.compare().is_behind

    def compare(self) -> Standing:
        """Compare the index with the history."""
        # In one view, because every search does this.
        with self.index.one_view():
            get_state = self.index.list_states().get
            origin = self._find_origin(get_state)
            if origin is not IndexOrigin.SAME:
                return Standing(origin, is_behind=origin is IndexOrigin.OTHER)
            done = _read_progress(get_state).changes_done
            is_behind = (
                get_state(_CHUNKER) not in (None, CHUNKER)
                # Indexes made by older versions have no tag.
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
        """Take in what is new, batch by batch; returns whether everything was taken in.

        No batch is started after ``until``, a time on the monotonic clock, but an index
        of another history is always cleared. Raises ``StoreLocked`` if another process
        is writing for longer than ``timeout_s``.
        """
        total = taken = 0
        if on_taken is not None and self.is_behind():
            total = self._count_missing()
            on_taken(0, total)
        while self.is_behind():
            is_late = until is not None and time.monotonic() >= until
            if is_late and self.origin() is IndexOrigin.SAME:
                return False
            with self.index.writing(timeout_s=timeout_s) as writer:
                taken += self._take_batch(writer)
            if on_taken is not None:
                on_taken(min(taken, total), total)
        return True

    def _count_missing(self) -> int:
        """Roughly how many messages are still to be taken in."""
        is_same = self.origin() is IndexOrigin.SAME
        taken = self.index.counts().messages if is_same else 0
        return max(1, self.history.count_messages() - taken)

    def _take_batch(self, writer: IndexWriter) -> int:
        """Take in the next changes; returns roughly how many messages they have."""
        progress = self._start_over_if_stale(writer)
        batch = self._read_batch(progress)
        by_session = batch.by_session()
        sessions = self.history.get_sessions(by_session)
        # Slow to import, and most searches find nothing new.
        from backstory.index.take_in import take_session

        new = writer.find_new_sessions(by_session)
        with self.index.one_view():
            for session_id, changes in by_session.items():
                session = sessions.get(session_id)
                is_new = session_id in new
                take_session(
                    writer, self.history, session_id, session, changes, is_new=is_new
                )
        self._write_progress(writer, progress, batch, sessions)
        return batch.message_count

    def _start_over_if_stale(self, writer: IndexWriter) -> _Progress:
        """Clear the index if it was made from something else; returns its progress.

        Vectors are cached by the text that they were made from, so they are not made
        again.
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
        notes = _FoundNotes()
        with self.index.one_view():
            known = {
                (file.kind, file.path): file
                for file in self.index.list_files()
                if file.kind in {UNIT_KINDS[kind] for kind in kinds}
            }
            for note in found:
                if isinstance(note, Problem):
                    notes.problems.append(note)
                else:
                    key = (UNIT_KINDS[note.kind], str(note.path))
                    notes.add(note, known.pop(key, None))
        hidden = [each for each in known.values() if _is_hidden(each, notes.problems)]
        gone = [
            each
            for each in known.values()
            if each not in hidden and not (self.is_shared and _is_elsewhere(each))
        ]
        if notes.changed or notes.touched or gone:
            # Slow to import, and notes rarely change.
            from backstory.index.take_in import date_notes, write_note

            dated = date_notes(notes.changed, self.history, self.clock)
            with self.index.writing(timeout_s=timeout_s) as writer:
                for file in gone:
                    writer.delete_file(file.file_id)
                for file in notes.touched:
                    writer.set_signature(file.file_id, file.signature)
                for each in dated:
                    write_note(writer, each, self.clock())
        return _say_what_is_searched(notes, hidden)

    def take_guidance(self, found: Iterable[FoundNote | Problem]) -> list[Problem]:
        """Take in the guidance files, and keep their problems.

        Searches report the problems, but have no time to search for the files.
        """
        problems = self.take_notes(found, frozenset({NoteKind.GUIDANCE}))
        kept = compact_json([[each.reason, each.path] for each in problems])
        if (self.index.get_state(_GUIDANCE_PROBLEMS) or "[]") != kept:
            with self.index.writing() as writer:
                writer.set_state(_GUIDANCE_PROBLEMS, kept)
        return problems

    def list_guidance_problems(self) -> list[Problem]:
        """What was wrong with guidance files when they were last searched for."""
        kept = self.index.get_state(_GUIDANCE_PROBLEMS) or "[]"
        if kept == "[]":
            return []
        # Slow to import, and most homes have no such problems.
        import orjson

        return [Problem(reason, path=path) for reason, path in orjson.loads(kept)]


# -- pieces ---------------------------------------------------------------------------


class _FoundNotes(Struct):
    """The files that changed, those with only a different time, and the problems.

    ``unreadable`` are files that stay in the index as they were.
    """

    changed: list[tuple[FoundNote, str]] = field(default_factory=list)
    touched: list[IndexedFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unreadable: list[IndexedFile] = field(default_factory=list)

    def add(self, note: FoundNote, file: IndexedFile | None) -> None:
        """Compare a file with its content in the index."""
        if note.problem is not None:
            self.problems.append(note.problem)
        if file is not None and file.signature == note.signature:
            return
        # Slow to import, and notes rarely change.
        from backstory.text.private import drop_private_lines

        try:
            text = drop_private_lines(read_note(note))
        except SourceUnreadable as exc:
            self.problems.append(Problem(str(exc), path=str(note.path)))
            if file is not None:
                self.unreadable.append(file)
            return
        # An index made by another chunker has been cleared by now.
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
        replace(
            problem, reason=f"{problem.reason}; what was read before is still searched"
        )
        if any(is_inside(path, Path(problem.path)) for path in kept)
        else problem
        for problem in notes.problems
    ]


def _is_elsewhere(file: IndexedFile) -> bool:
    """Whether a file may be on another machine, as its project is not on this one."""
    return file.project is not None and not Path(file.project).is_dir()


def _is_hidden(file: IndexedFile, problems: Iterable[Problem]) -> bool:
    """Whether a file, or a folder it is in, exists but cannot be read."""
    path = Path(file.path)
    return any(is_inside(path, Path(each.path)) for each in problems if each.path)


def _has_messages(session: Session | None) -> bool:
    return session is not None and session.message_count > 0


def _read_progress(get_state: Callable[[str], str | None]) -> _Progress:
    return _Progress(int(get_state(_CHANGES_DONE) or 0), int(get_state(_TAKEN_TO) or 0))


def _choose_batch(changes: Iterable[Change], taken_to: int) -> _ChangeBatch:
    """Choose as many changes as fit into one batch, up to the end of a pack.

    The messages of the first change up to ``taken_to`` have been taken in already. A
    change with too many messages is cut, and is a batch of its own.
    """
    taken: list[Change] = []
    room = _BATCH_MESSAGES
    pack: int | None = None
    for change in changes:
        if taken_to and not taken:
            change = replace(change, first_message_id=taken_to + 1)
        room -= _count_messages(change)
        if room < 0:
            if taken or change.last_message_id is None:
                break
            last = change.last_message_id + room
            return _ChangeBatch([replace(change, last_message_id=last)], True)
        taken.append(change)
        if not change.first_message_id or not change.last_message_id:
            continue
        if pack is None:
            pack = change.first_message_id // PACK_MESSAGES
        ends_pack = (change.last_message_id + 1) // PACK_MESSAGES > pack
        if ends_pack and room <= _BATCH_MESSAGES - _WORTH_A_BATCH:
            break
    return _ChangeBatch(taken, False)


def _count_messages(change: Change) -> int:
    """How many messages a change has, at most."""
    if change.first_message_id is None or change.last_message_id is None:
        return 0
    return change.last_message_id - change.first_message_id + 1
