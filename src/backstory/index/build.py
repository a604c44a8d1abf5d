"""Keep the index in step with the history and the Markdown files.

The history numbers its changes; the index knows the last one it has taken in, and
both change in one transaction of the index. So it can be killed at any point, an index
that is missing is one that has taken in nothing yet, and to rebuild is to catch up.
"""

import bisect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, takewhile
from pathlib import Path

from backstory.errors import SourceUnreadable
from backstory.index.chunks import (
    CHUNKER,
    MAX_CHUNK_TOKENS,
    REACH,
    cut_chunks,
    cut_units,
    session_unit,
)
from backstory.notes.find import (
    FoundNote,
    NoteKind,
    read_note,
)
from backstory.notes.sections import Section, group_blocks, split_sections
from backstory.store.base.history import Change, HistoryStore
from backstory.store.base.index import IndexedFile, IndexWriter, SearchIndex
from backstory.system.files import is_inside
from backstory.text.dates import day_words
from backstory.text.tokens import rough_tokens
from backstory.values.history import Message, Problem, Session
from backstory.values.identity import content_id
from backstory.values.moments import Moment
from backstory.values.units import NewChunk, NewUnit, UnitKind, session_unit_id

# About so many messages are taken in at once: fewer would be filed slower, and more
# would keep other writers waiting.
_BATCH_MESSAGES = 10_000
_BATCH_CHANGES = 2_000
_UNIT_TOKENS = 200
_CHANGES_DONE = "changes_done"
# Up to which message the change behind those that are done is taken in.
_TAKEN_TO = "taken_to"
_CHUNKER = "chunker"
_HISTORY = "history"

_KINDS = {
    NoteKind.MEMORY: UnitKind.MEMORY,
    NoteKind.DAILY_LOG: UnitKind.DAILY_LOG,
    NoteKind.GUIDANCE: UnitKind.GUIDANCE,
}

# Told how many messages have been taken in, and how many there are.
OnTaken = Callable[[int, int], None]


@dataclass(slots=True)
class Catalogue:
    """Files what the history and the notes hold in an index."""

    history: HistoryStore
    index: SearchIndex
    clock: Callable[[], datetime]

    # -- the history ---

    def is_behind(self) -> bool:
        """Whether the history holds something that the index has not taken in."""
        if self.index.get_state(_CHUNKER) not in (None, CHUNKER):
            return True
        done = int(self.index.get_state(_CHANGES_DONE) or 0)
        if done and self.index.get_state(_HISTORY) != self.history.identity:
            return True
        return done != self.history.last_change_id()

    def catch_up(
        self,
        *,
        until: float | None = None,
        on_taken: OnTaken | None = None,
        timeout_s: float = 30.0,
    ) -> bool:
        """Take in what is new; returns whether that is all of it.

        ``until`` is the time, on the monotonic clock, after which no batch is begun.
        Raises ``StoreLocked`` when another process writes for longer than
        ``timeout_s``.
        """
        total = self.history.count_messages() if on_taken is not None else 0
        taken = 0
        while self.is_behind():
            if until is not None and time.monotonic() >= until:
                return False
            with self.index.writing(timeout_s=timeout_s) as writer:
                taken += self._take_batch(writer)
            if on_taken is not None:
                on_taken(min(taken, total), total)
        return True

    def _take_batch(self, writer: IndexWriter) -> int:
        """Take in the next changes; returns how many messages they hold, about."""
        made_from = {_CHUNKER: CHUNKER, _HISTORY: self.history.identity}
        made_before = {name: writer.get_state(name) for name in made_from}
        done, taken_to = _read_progress(writer)
        # A copy that was put back in the place of the history may be an older one.
        is_ahead = done + bool(taken_to) > self.history.last_change_id()
        if made_before not in (made_from, dict.fromkeys(made_from)) or is_ahead:
            # Everything is cut anew. Vectors are kept by what they are of, and return.
            writer.clear()
            done, taken_to = _read_progress(writer)
        for name, value in made_from.items():
            writer.set_state(name, value)
        changes, is_cut = _first_of(
            self.history.list_changes(done, _BATCH_CHANGES), taken_to
        )
        by_session: dict[int, list[Change]] = {}
        for change in changes:
            by_session.setdefault(change.session_id, []).append(change)
        sessions = self.history.get_sessions(by_session)
        now = self.clock()
        for session_id, of_session in by_session.items():
            session = sessions.get(session_id)
            if session is None or not session.message_count:
                writer.delete_source(session_id)
                continue
            if any(change.is_emptying for change in of_session):
                writer.delete_source(session_id)
            self._take_session(writer, session, of_session)
            if not is_cut:
                writer.note_session(session_id, of_session[-1].change_id, now)
        if is_cut:
            writer.set_state(_TAKEN_TO, str(changes[-1].last_message_id))
        else:
            last = changes[-1].change_id if changes else done
            writer.set_state(_CHANGES_DONE, str(last))
            writer.set_state(_TAKEN_TO, "0")
        return sum(map(_count_messages, changes))

    def _take_session(
        self, writer: IndexWriter, session: Session, changes: Iterable[Change]
    ) -> None:
        for first_id, last_id in _merge_runs(changes):
            places = self.history.find_positions(session.session_id, first_id, last_id)
            if places is not None:
                self._take_run(writer, session, *places)
        unit = session_unit(session)
        if unit is not None:
            writer.replace_units([unit])
        else:
            writer.delete_units([session_unit_id(session.session_id)])

    def _take_run(
        self, writer: IndexWriter, session: Session, first: int, last: int
    ) -> None:
        """Take in the messages from one position to another, and their surroundings."""
        chunks = writer.list_chunks(session.session_id)
        start = _find_start(chunks, first)
        # What follows the run has been cut into chunks that may now begin elsewhere.
        end = max(last, chunks[-1][1] if chunks else 0)
        # The neighbours of the run have other words around them now; to cut those
        # anew, their own neighbours are needed too.
        read_to = last + 2 * REACH
        messages = list(
            self.history.iter_messages(
                session.session_id,
                first=max(0, min(start, first - 2 * REACH)),
                last=read_to,
            )
        )
        cut = list(cut_units(session, messages, first, last))
        # What is empty now, or turned out to be a question to a recall tool.
        gone = set(writer.list_message_units(session.session_id, first, last))
        gone.difference_update(unit.unit_id for unit in cut)
        if gone:
            writer.delete_units(gone)
        writer.replace_units(cut)
        spoken: Iterator[Message] = (m for m in messages if start <= m.position <= end)
        if end > read_to:
            more = self.history.iter_messages(
                session.session_id, first=read_to + 1, last=end
            )
            spoken = chain(spoken, more)
        old_starts = {begins for begins, _ in chunks if begins > last}
        fresh = list(
            takewhile(
                lambda chunk: chunk.first_position not in old_starts,
                cut_chunks(spoken),
            )
        )
        # From where a new chunk begins as an old one did, everything is as it was.
        after = fresh[-1].last_position if fresh else last
        before = min((begins for begins in old_starts if begins > after), default=None)
        writer.replace_chunks(
            "conversation", session.session_id, fresh, first=start, before=before
        )

    # -- Markdown files ---

    def take_notes(
        self,
        found: Iterable[FoundNote | Problem],
        kinds: frozenset[NoteKind],
        *,
        timeout_s: float = 30.0,
    ) -> list[Problem]:
        """Take in the files of some kinds as they are now, and forget those gone.

        Returns what could not be read; what is unreadable stays as it was.
        """
        known = {
            (file.kind, file.path): file
            for file in self.index.list_files()
            if file.kind in {_KINDS[kind] for kind in kinds}
        }
        problems: list[Problem] = []
        changed: list[tuple[FoundNote, str]] = []
        for note in found:
            if isinstance(note, Problem):
                problems.append(note)
                continue
            file = known.pop((_KINDS[note.kind], str(note.path)), None)
            if file is not None and file.signature == note.signature:
                continue
            try:
                changed.append((note, read_note(note)))
            except SourceUnreadable as exc:
                problems.append(Problem(str(exc), path=str(note.path)))
        gone = [file for file in known.values() if not _is_hidden(file, problems)]
        if not changed and not gone:
            return problems
        with self.index.writing(timeout_s=timeout_s) as writer:
            for file in gone:
                writer.delete_file(file.file_id)
            for note, text in changed:
                self._take_note(writer, note, text)
        return problems

    def _take_note(self, writer: IndexWriter, note: FoundNote, text: str) -> None:
        modified_at = note.mtime_ns // 1000
        file = IndexedFile(
            0,
            _KINDS[note.kind],
            str(note.path),
            note.project,
            note.signature,
            content_id(CHUNKER, text),
            modified_at,
        )
        source_id = -writer.replace_file(file, self.clock())
        units, chunks = cut_note(
            note,
            text,
            first_unit_id=writer.next_note_id(),
            source_id=source_id,
            said_at=noted_at(note),
        )
        writer.replace_notes(source_id, units)
        writer.replace_chunks("file", source_id, chunks)


def noted_at(note: FoundNote) -> int:
    """When a note was written, in microseconds: on the day it is named after."""
    if note.day is None:
        return note.mtime_ns // 1000
    # The middle of the local day, so that it is that day in zones nearby too.
    noon = datetime(note.day.year, note.day.month, note.day.day, 12)
    return Moment(noon.astimezone(UTC)).to_microseconds()


def cut_note(
    note: FoundNote, text: str, *, first_unit_id: int, source_id: int, said_at: int
) -> tuple[list[NewUnit], list[NewChunk]]:
    """The units and chunks of a Markdown file.

    In memory, every fact is found by itself; in guidance, some paragraphs at a time.
    """
    day = "" if note.day is None else day_words(note.day)
    units: list[NewUnit] = []
    chunks: list[NewChunk] = []
    for section in split_sections(text):
        for group in group_blocks(section, max_tokens=MAX_CHUNK_TOKENS):
            first = len(units)
            for found in _cut_group(note.kind, section, group):
                units.append(
                    NewUnit(
                        first_unit_id + len(units),
                        _KINDS[note.kind],
                        source_id,
                        len(units),
                        said_at,
                        found,
                        f"{section.heading}\n{day}".strip(),
                        note_meaning(section.heading, found),
                        section.heading,
                    )
                )
            shown = "\n".join(group)
            if section.heading:
                shown = f"{section.heading}\n{shown}"
            chunks.append(NewChunk(first, len(units) - 1, rough_tokens(shown), shown))
    return units, chunks


def note_meaning(heading: str, text: str) -> str:
    """What the vector of a part of a file is made from: a fact says little alone."""
    return f"{heading}: {text}" if heading else text


def _cut_group(
    kind: NoteKind, section: Section, group: tuple[str, ...]
) -> Iterator[str]:
    if kind is not NoteKind.GUIDANCE:
        yield from group
        return
    part = Section(section.heading, group)
    for blocks in group_blocks(part, max_tokens=_UNIT_TOKENS):
        yield "\n".join(blocks)


# -- pieces ---------------------------------------------------------------------------


def _is_hidden(file: IndexedFile, problems: Iterable[Problem]) -> bool:
    """Whether a file, or a folder it is in, is there but cannot be read."""
    path = Path(file.path)
    return any(is_inside(path, Path(each.path)) for each in problems if each.path)


def _read_progress(writer: IndexWriter) -> tuple[int, int]:
    """Up to which change all is taken in, and up to which message of the next one."""
    return (
        int(writer.get_state(_CHANGES_DONE) or 0),
        int(writer.get_state(_TAKEN_TO) or 0),
    )


def _first_of(changes: Iterable[Change], taken_to: int) -> tuple[list[Change], bool]:
    """As many changes as one batch takes, and whether the last of them goes on.

    Of the first, the messages up to the number ``taken_to`` are taken in already. One
    with too many messages is cut, and is a batch by itself.
    """
    taken: list[Change] = []
    room = _BATCH_MESSAGES
    for change in changes:
        if taken_to and not taken:
            change = replace(change, first_message_id=taken_to + 1)
        room -= _count_messages(change)
        if room < 0:
            if taken or change.last_message_id is None:
                break
            last = change.last_message_id + room
            return [replace(change, last_message_id=last)], True
        taken.append(change)
    return taken, False


def _count_messages(change: Change) -> int:
    """How many messages a change holds, at most."""
    if change.first_message_id is None or change.last_message_id is None:
        return 0
    return change.last_message_id - change.first_message_id + 1


def _merge_runs(changes: Iterable[Change]) -> list[tuple[int, int]]:
    """The runs of message numbers that changes hold, joined where they touch."""
    runs: list[tuple[int, int]] = []
    for first, last in sorted(
        (change.first_message_id, change.last_message_id)
        for change in changes
        if change.first_message_id is not None and change.last_message_id is not None
    ):
        if runs and first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(runs[-1][1], last))
        else:
            runs.append((first, last))
    return runs


def _find_start(chunks: Sequence[tuple[int, int]], position: int) -> int:
    """Where the chunk begins that a position belongs to, or may belong to.

    What begins a chunk now may fit into the one before it when it is shorter.
    """
    index = bisect.bisect_left(chunks, position, key=lambda chunk: chunk[0])
    return chunks[index - 1][0] if index else 0
