"""Write a batch: what was read from a source, in one transaction.

First outdated records of the source are deleted. Then come facts about sessions,
sessions to be emptied, messages to be hidden, messages, titles, how far sessions were
summarized, and finally how far the source has been read.
"""

from collections.abc import Sequence
from datetime import datetime

import apsw

from backstory.store.base.batch_steps import (
    BatchSteps,
    by_session,
    iter_outdated_problems,
)
from backstory.store.base.history import Batch, KeptMessage, Written
from backstory.store.base.message_ids import SessionMessages
from backstory.store.sqlite import changes, message_titles, sessions, sources
from backstory.store.sqlite.forgotten import leave_out_forgotten
from backstory.store.sqlite.write_messages import hide_message, write_messages
from backstory.values.history import SessionFacts
from backstory.values.moments import Moment


def write_batch(db: apsw.Connection, batch: Batch, *, now: datetime) -> Written:
    """Write a batch, except what was forgotten; must run in a transaction."""
    batch = leave_out_forgotten(db, batch)
    writing = _BatchWriting(db, batch)
    writing.delete_outdated()
    for facts in batch.facts:
        writing.write_facts(facts)
    for native_id in batch.emptied:
        writing.empty_session(native_id)
    for native_id, message_id in batch.hidden:
        writing.hide_message(native_id, message_id)
    for native_id, kept in by_session(batch.messages).items():
        writing.write_messages(native_id, kept)
    writing.write_titles()
    for native_id, message_id in batch.logged:
        writing.note_logged(native_id, message_id)
    writing.write_progress(now)
    return writing.written


class _BatchWriting(BatchSteps):
    """The steps of writing one batch into this database."""

    def __init__(self, db: apsw.Connection, batch: Batch) -> None:
        super().__init__(batch)
        self._db = db
        self._session_ids: dict[str, int] = {}
        self._saved: dict[str, Moment] = {}
        self._grown: set[int] = set()

    def delete_outdated(self) -> None:
        """Delete the source's former name, and problems in lines to be read again."""
        if self._batch.moved_from is not None:
            sources.delete_source(self._db, self._batch.moved_from)
        for key, after_line in iter_outdated_problems(self._batch):
            sources.delete_problems(self._db, key, after_line)

    def write_facts(self, facts: SessionFacts) -> None:
        if self._batch.is_companion and self._find(facts.native_id) is None:
            self._wait_for_session()
            return
        session_id = self._find_or_make(facts.native_id)
        if facts.saved is not None:
            self._saved[facts.native_id] = facts.saved
        before = sessions.find_indexed_facts(self._db, session_id)
        sessions.update_facts(self._db, session_id, facts)
        after = sessions.find_indexed_facts(self._db, session_id)
        if after.of_messages != before.of_messages:
            changes.insert_whole_session(self._db, session_id)
        if after != before:
            changes.insert_session_change(self._db, session_id)

    def empty_session(self, native_id: str) -> None:
        session_id = self._find_or_make(native_id)
        sessions.empty_session(self._db, session_id)
        changes.insert_emptying(self._db, session_id)

    def hide_message(self, native_id: str, message_id: str) -> None:
        session_id = self._find(native_id)
        found = session_id and hide_message(self._db, session_id, message_id)
        if session_id and found:
            sessions.refresh_excerpts(self._db, session_id, 0, self._batch.read_from)
            changes.insert_changes(self._db, session_id, [(found, found)])
            changes.insert_session_change(self._db, session_id)
            self._changed_messages += 1

    def write_messages(self, native_id: str, kept: Sequence[KeptMessage]) -> None:
        session_id = self._find_or_make(native_id)
        before = sessions.find_indexed_facts(self._db, session_id)
        done = write_messages(
            self._db,
            SessionMessages(
                session_id,
                kept,
                is_new_session=native_id in self._made,
                replaces=self._batch.replaces,
                reread=self._batch.reread,
            ),
        )
        sessions.widen_activity(
            self._db, session_id, [k.message.sent for k in kept if k.message.sent]
        )
        if done.written and native_id in self._saved:
            sessions.note_saving(self._db, session_id, self._saved[native_id])
        if sessions.find_indexed_facts(self._db, session_id) != before:
            # Messages without a time count as sent when the session began.
            changes.insert_whole_session(self._db, session_id, is_timeless_only=True)
        if done.written:
            sessions.refresh_excerpts(
                self._db, session_id, done.inserted, self._batch.read_from
            )
            changes.insert_changes(self._db, session_id, done.written)
            self._grown.add(session_id)
        elif self._batch.reread is not None:
            self._renew_excerpts(session_id)
        self._new_messages += done.inserted
        self._changed_messages += done.updated
        self._note_given_twice(done.given_twice)
        self._last_message_id = done.last_message_id

    def _renew_excerpts(self, session_id: int) -> None:
        """Make the excerpts again, because earlier versions made different ones."""
        before = sessions.find_indexed_facts(self._db, session_id)
        sessions.refresh_excerpts(self._db, session_id, 0, self._batch.read_from)
        if sessions.find_indexed_facts(self._db, session_id) != before:
            changes.insert_session_change(self._db, session_id)

    def write_titles(self) -> None:
        """Write titles that are known by a message, and apply all that are known."""
        titles, host = self._batch.titles, self._batch.host
        titled = message_titles.insert_titles(self._db, host, titles) if titles else ()
        concerned = sorted(self._grown.union(titled))
        if not concerned:
            return
        before = [sessions.find_indexed_facts(self._db, each) for each in concerned]
        message_titles.refresh_titles(self._db, concerned)
        for session_id, facts in zip(concerned, before, strict=True):
            if sessions.find_indexed_facts(self._db, session_id) != facts:
                changes.insert_session_change(self._db, session_id)

    def note_logged(self, native_id: str, message_id: str) -> None:
        session_id = self._find(native_id)
        if session_id is not None:
            sessions.note_logged(self._db, session_id, message_id)

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

    # -- sessions by id ---

    def _find(self, native_id: str) -> int | None:
        if native_id not in self._session_ids:
            found = sessions.find_session_id(self._db, self._batch.host, native_id)
            if found is None:
                return None
            self._session_ids[native_id] = found
        return self._session_ids[native_id]

    def _find_or_make(self, native_id: str) -> int:
        found = self._find(native_id)
        if found is None:
            self._made.add(native_id)
            found = self._session_ids[native_id] = sessions.insert_session(
                self._db, self._batch.host, native_id, self._batch.read_from
            )
        return found
