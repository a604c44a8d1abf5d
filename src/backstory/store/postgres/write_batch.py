"""Write a batch: what was read from a source, in one transaction.

First outdated records of the source are deleted. Then come facts about sessions,
sessions to be emptied, messages to be hidden, messages, titles, how far sessions were
summarized, and finally how far the source has been read. Each step is done for all
sessions of the batch at once.
"""

from collections.abc import Sequence
from datetime import datetime

from backstory.store.base.batch_steps import (
    BatchSteps,
    by_session,
    iter_outdated_problems,
)
from backstory.store.base.history import Batch, Written
from backstory.store.base.message_ids import SessionMessages
from backstory.store.postgres import changes, message_titles, sessions, sources
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import take_numbers
from backstory.store.postgres.forgotten import leave_out_forgotten
from backstory.store.postgres.sessions import StoredSession
from backstory.store.postgres.write_messages import (
    WrittenMessages,
    find_places,
    hide_messages,
    write_messages,
)
from backstory.values.moments import Moment
from backstory.values.structs import replace


def write_batch(db: Connection, batch: Batch, *, now: datetime) -> Written:
    """Write all of a batch but what was forgotten; must run in a transaction."""
    writing = _BatchWriting(db, leave_out_forgotten(db, batch))
    writing.delete_outdated()
    writing.write_facts()
    writing.empty_sessions()
    writing.hide_messages()
    writing.write_messages()
    writing.write_titles()
    writing.note_logged()
    writing.save()
    writing.write_progress(now)
    return writing.written


class _BatchWriting(BatchSteps):
    """The steps of writing one batch into this database."""

    def __init__(self, db: Connection, batch: Batch) -> None:
        super().__init__(batch)
        self._db = db
        self._of_messages = by_session(batch.messages)
        named = {facts.native_id for facts in batch.facts}.union(
            batch.emptied,
            (native_id for native_id, _ in batch.hidden),
            (native_id for native_id, _ in batch.logged),
            self._of_messages,
        )
        self._sessions = sessions.find_stored(db, batch.host, named)
        self._saved = {id_: replace(each) for id_, each in self._sessions.items()}
        self._numbers = self._take_session_numbers()
        self._file_times: dict[str, Moment] = {}
        self._changes: list[changes.NewChange] = []
        self._titled: set[int] = set()

    def _take_session_numbers(self) -> dict[str, int]:
        """Numbers for the sessions that have to be made, in the order of the steps."""
        batch = self._batch
        facts = [] if batch.is_companion else [each.native_id for each in batch.facts]
        named = dict.fromkeys([*facts, *batch.emptied, *self._of_messages])
        new = [native_id for native_id in named if native_id not in self._sessions]
        if not new:
            return {}
        first = take_numbers(self._db, "last_session_id", len(new))
        return {native_id: first + at for at, native_id in enumerate(new)}

    def delete_outdated(self) -> None:
        """Delete the source's former name, and problems in what is read again."""
        if self._batch.moved_from is not None:
            sources.delete_source(self._db, self._batch.moved_from)
        for key, after_line in iter_outdated_problems(self._batch):
            sources.delete_problems(self._db, key, after_line)

    # -- facts ---

    def write_facts(self) -> None:
        # In order; a session stands for all its messages.
        changed: list[tuple[StoredSession, bool]] = []
        for facts in self._batch.facts:
            native_id = facts.native_id
            if self._batch.is_companion and native_id not in self._sessions:
                self._wait_for_session()
                continue
            session = self._find_or_make(native_id)
            if facts.saved is not None:
                self._file_times[native_id] = facts.saved
            title, with_messages = session.indexed_title, session.indexed_with_messages
            session.update(facts)
            if session.indexed_with_messages != with_messages:
                changed += [(session, True), (session, False)]
            elif session.indexed_title != title:
                changed.append((session, False))
        whole = {session.session_id for session, is_whole in changed if is_whole}
        spans = changes.find_spans(self._db, whole - self._made_ids())
        for session, is_whole in changed:
            number = session.session_id
            if not is_whole:
                self._changes.append(changes.of_session(number))
            elif number in spans:
                self._changes.append(spans[number])

    def _made_ids(self) -> set[int]:
        return {self._sessions[native_id].session_id for native_id in self._made}

    # -- what must go ---

    def empty_sessions(self) -> None:
        emptied = [self._find_or_make(native_id) for native_id in self._batch.emptied]
        sessions.empty_sessions(self._db, emptied)
        self._changes += [changes.of_emptying(each.session_id) for each in emptied]

    def hide_messages(self) -> None:
        named = [
            (self._sessions[native_id], message_id)
            for native_id, message_id in self._batch.hidden
            if native_id in self._sessions
        ]
        if not named:
            return
        names = {(session.session_id, message_id) for session, message_id in named}
        hidden = hide_messages(self._db, names)
        for session, message_id in named:
            found = hidden.pop((session.session_id, message_id), None)
            if found is not None:
                number = session.session_id
                self._changes.append((number, found, found))
                self._changes.append(changes.of_session(number))
                self._changed_messages += 1
        sessions.refresh_excerpts(self._db, [session for session, _ in named])

    # -- messages ---

    def write_messages(self) -> None:
        if not self._of_messages:
            return
        batch = self._batch
        # All are there before their messages are.
        concerned = [self._find_or_make(native_id) for native_id in self._of_messages]
        self._save_sessions()
        new = [
            SessionMessages(
                session.session_id,
                kept,
                is_new_session=native_id in self._made,
                replaces=batch.replaces,
                reread=batch.reread,
            )
            for session, (native_id, kept) in zip(
                concerned, self._of_messages.items(), strict=True
            )
        ]
        done = write_messages(self._db, new)
        timeless = self._widen(concerned, new, done)
        grown = [s for s, each in zip(concerned, done, strict=True) if each.runs]
        titles = {each.session_id: each.indexed_title for each in concerned}
        for session, each in zip(concerned, done, strict=True):
            if each.runs and not session.message_count:
                session.read_from = batch.read_from
            session.message_count += len(each.new_ids)
        # Earlier versions made other excerpts of the messages.
        sessions.refresh_excerpts(
            self._db, grown if batch.reread is None else concerned
        )
        for session, each in zip(concerned, done, strict=True):
            number = session.session_id
            if number in timeless:
                self._changes.append(timeless[number])
            self._changes += [(number, *run) for run in each.runs]
            if not each.runs and session.indexed_title != titles[number]:
                self._changes.append(changes.of_session(number))
            self._count(each)
        self._find_titled(concerned, done)

    def _widen(
        self,
        concerned: Sequence[StoredSession],
        new: Sequence[SessionMessages],
        done: Sequence[WrittenMessages],
    ) -> dict[int, changes.NewChange]:
        """Extend time spans; returns the messages that are now of another time.

        Messages without a time count as sent when the session began.
        """
        moved = []
        for session, each, written in zip(concerned, new, done, strict=True):
            before = session.started_at
            session.widen(k.message.sent for k in each.kept if k.message.sent)
            if written.runs and session.native_id in self._file_times:
                session.note_saving(self._file_times[session.native_id])
            if session.started_at != before:
                moved.append(session.session_id)
        return changes.find_spans(self._db, moved, is_timeless_only=True)

    def _count(self, done: WrittenMessages) -> None:
        self._new_messages += len(done.new_ids)
        self._changed_messages += len(done.updated)
        self._note_given_twice(done.given_twice)
        self._last_message_id = done.last_message_id

    # -- titles that are known by a message ---

    def _find_titled(
        self, concerned: Sequence[StoredSession], done: Sequence[WrittenMessages]
    ) -> None:
        """Note the sessions that have new messages with a title."""
        titled = message_titles.find_titled(
            self._db, self._batch.host, (id_ for each in done for id_ in each.new_ids)
        )
        for session, each in zip(concerned, done, strict=True):
            if titled and not titled.isdisjoint(each.new_ids):
                self._titled.add(session.session_id)

    def write_titles(self) -> None:
        """Write titles that are known by a message, and apply those that concern us."""
        titles, host = self._batch.titles, self._batch.host
        if titles:
            self._titled.update(message_titles.insert_titles(self._db, host, titles))
        if not self._titled:
            return
        known = {each.session_id: each for each in self._sessions.values()}
        others = sessions.get_stored(self._db, self._titled - known.keys())
        for each in others.values():
            self._sessions[each.native_id] = each
            self._saved[each.native_id] = replace(each)
        known |= others
        found = message_titles.find_titles(self._db, self._titled)
        for number in sorted(self._titled):
            session = known[number]
            before = session.indexed_title
            session.message_title = found.get(number)
            if session.indexed_title != before:
                self._changes.append(changes.of_session(number))

    # -- the rest ---

    def note_logged(self) -> None:
        """Record how far sessions were summarized, if that is further on."""
        named = [
            (self._sessions[native_id], message_id)
            for native_id, message_id in self._batch.logged
            if native_id in self._sessions
        ]
        if not named:
            return
        places = find_places(
            self._db, {(session.session_id, each) for session, each in named}
        )
        positions = sessions.find_logged_positions(
            self._db, [session.session_id for session, _ in named]
        )
        for session, message_id in named:
            number = session.session_id
            found, position = places.get((number, message_id), (None, -1))
            if position > positions.get(number, -1):
                session.last_logged_message_id = found
                positions[number] = position

    def save(self) -> None:
        """Save what changed about sessions, and say what changed at all."""
        self._save_sessions()
        changes.insert_changes(self._db, self._changes)

    def _save_sessions(self) -> None:
        changed = {
            native_id: session
            for native_id, session in self._sessions.items()
            if session != self._saved.get(native_id)
        }
        sessions.replace_sessions(self._db, changed.values())
        self._saved.update((id_, replace(each)) for id_, each in changed.items())

    def write_progress(self, now: datetime) -> None:
        """Write how far the source has been read, and what was wrong with it."""
        if self._progress is None:
            return
        sources.insert_problems(
            self._db,
            [*self._batch.problems, *self._problems],
            self._batch.host,
            part=self._progress.key.part,
            now=now,
        )
        sources.replace_source(self._db, self._progress, now=now)

    def _find_or_make(self, native_id: str) -> StoredSession:
        if native_id not in self._sessions:
            self._made.add(native_id)
            self._sessions[native_id] = StoredSession(
                self._numbers[native_id],
                self._batch.host,
                native_id,
                read_from=self._batch.read_from,
            )
        return self._sessions[native_id]
