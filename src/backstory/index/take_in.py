"""Cut what is new into units and chunks, and put them into the index."""

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, takewhile

from backstory.index.chunks import (
    REACH,
    CutNote,
    cut_chunks,
    cut_note,
    cut_units,
    session_unit,
)
from backstory.index.note_days import NoteDays
from backstory.notes.find import UNIT_KINDS, FoundNote
from backstory.store.base.history import Change, HistoryStore
from backstory.store.base.index import IndexedFile, IndexWriter
from backstory.values.history import Message, Session
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct
from backstory.values.units import FileRef, SessionRef, session_unit_id

# -- conversations ---


def take_session(
    writer: IndexWriter,
    history: HistoryStore,
    session_id: int,
    session: Session | None,
    changes: Sequence[Change],
    *,
    is_new: bool,
) -> None:
    """Take in what changed in a session; what is gone from it is deleted.

    ``is_new``: the index has nothing of this session yet.
    """
    if session is None or not session.message_count:
        writer.delete_container(SessionRef(session_id))
        return
    if not is_new and any(change.is_emptying for change in changes):
        writer.delete_container(SessionRef(session_id))
    is_empty = is_new
    for first_id, last_id in _merge_ranges(changes):
        positions = history.find_positions(session_id, first_id, last_id)
        if positions is not None:
            _take_messages(writer, history, session, *positions, is_new=is_empty)
            is_empty = False
    unit = session_unit(session)
    if unit is not None:
        writer.replace_units([unit], are_new=is_new)
    elif not is_new:
        writer.delete_units([session_unit_id(session_id)])


def _take_messages(
    writer: IndexWriter,
    history: HistoryStore,
    session: Session,
    first: int,
    last: int,
    *,
    is_new: bool,
) -> None:
    """Take in the messages from one position to another, and their neighbours."""
    chunks = [] if is_new else writer.list_chunks(session.session_id)
    start = _find_start(chunks, first)
    # The units of neighbours contain words of these messages and are cut again; this
    # requires the neighbours' own neighbours.
    read_to = last + 2 * REACH
    messages = list(
        history.iter_messages(
            session.session_id,
            first=max(0, min(start, first - 2 * REACH)),
            last=read_to,
        )
    )
    if is_new:
        new = cut_units(session, messages, first, last)
        writer.replace_units(new, are_new=True)
    else:
        _replace_units(writer, session, messages, first, last)
    # The chunks that follow may now begin elsewhere.
    end = max(last, chunks[-1][1] if chunks else 0)
    spoken: Iterator[Message] = (m for m in messages if start <= m.position <= end)
    if end > read_to:
        more = history.iter_messages(session.session_id, first=read_to + 1, last=end)
        spoken = chain(spoken, more)
    old_starts = {begins for begins, _ in chunks if begins > last}
    # As soon as a new chunk begins where an old one did, the rest is unchanged.
    fresh = list(
        takewhile(
            lambda chunk: chunk.first_position not in old_starts,
            cut_chunks(spoken),
        )
    )
    after = fresh[-1].last_position if fresh else last
    before = min((begins for begins in old_starts if begins > after), default=None)
    writer.replace_chunks(
        SessionRef(session.session_id),
        fresh,
        first=start,
        before=before,
        are_new=is_new,
    )


def _replace_units(
    writer: IndexWriter,
    session: Session,
    messages: Sequence[Message],
    first: int,
    last: int,
) -> None:
    units = list(cut_units(session, messages, first, last))
    # Messages that are now empty, or turned out to be calls of our own tools.
    gone = set(writer.list_message_units(session.session_id, first, last))
    gone.difference_update(unit.unit_id for unit in units)
    if gone:
        writer.delete_units(gone)
    writer.replace_units(units)


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

    A message that began a chunk may now be shorter, and fit into the chunk before it.
    """
    index = bisect.bisect_left(chunks, position, key=lambda chunk: chunk[0])
    return chunks[index - 1][0] if index else 0


# -- Markdown files ---


class DatedNote(FrozenStruct):
    """A note in parts, and the day of each."""

    cut: CutNote
    days: Sequence[Moment]


def date_notes(
    notes: Iterable[tuple[FoundNote, str]],
    history: HistoryStore,
    clock: Callable[[], datetime],
) -> list[DatedNote]:
    """Cut notes, given with their texts, and date their parts.

    Raises ``StoreProblem`` if the days cannot be remembered.
    """
    cuts = [cut_note(note, text) for note, text in notes]
    return list(map(DatedNote, cuts, NoteDays(history, clock).date(cuts)))


def write_note(writer: IndexWriter, dated: DatedNote, now: datetime) -> None:
    """Replace a note in the index."""
    note = dated.cut.note
    file = IndexedFile(
        file_id=0,
        kind=UNIT_KINDS[note.kind],
        path=str(note.path),
        project=note.project,
        signature=note.signature,
        hash=dated.cut.hash,
        modified_at=note.mtime_ns // 1000,
    )
    container = FileRef(writer.replace_file(file, now))
    units = dated.cut.to_units(
        dated.days, first_unit_id=writer.next_note_id(), container=container
    )
    writer.replace_notes(container, units)
    writer.replace_chunks(container, dated.cut.chunks)
