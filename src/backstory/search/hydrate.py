"""What units say, fetched from the history and the index as it is needed."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from backstory.store.base.history import HistoryStore
from backstory.store.base.index import IndexedFile, Note, Unit
from backstory.values.history import Message, Session
from backstory.values.hits import Hit, HitSource, Strength
from backstory.values.moments import Moment, from_microseconds
from backstory.values.units import UnitKind, is_message

SOURCES = {
    UnitKind.USER: HitSource.MESSAGE,
    UnitKind.ASSISTANT: HitSource.MESSAGE,
    UnitKind.SUMMARY: HitSource.MESSAGE,
    UnitKind.OTHER: HitSource.MESSAGE,
    UnitKind.SESSION: HitSource.SESSION,
    UnitKind.MEMORY: HitSource.MEMORY,
    UnitKind.DAILY_LOG: HitSource.DAILY_LOG,
    UnitKind.GUIDANCE: HitSource.GUIDANCE,
}


class NoteSource(Protocol):
    """Whoever knows what units of Markdown files say, such as an index."""

    def get_notes(self, unit_ids: Collection[int]) -> Mapping[int, Note]: ...

    def get_files(self, source_ids: Collection[int]) -> Mapping[int, IndexedFile]: ...


class Shown:
    """Makes hits of some units, without their scores."""

    def __init__(
        self, history: HistoryStore, notes: NoteSource, units: Mapping[int, Unit]
    ) -> None:
        self._history = history
        self._note_source = notes
        self._units = units
        self._messages: dict[int, Message] = {}
        self._sessions: dict[int, Session] = {}
        self._notes: dict[int, Note] = {}
        self._files: Mapping[int, IndexedFile] | None = None

    def load(self, unit_ids: Collection[int]) -> None:
        messages = [u for u in unit_ids if is_message(u) and u not in self._messages]
        if messages:
            self._messages |= self._history.get_messages(messages)
        sessions = {
            self._units[u].source_id for u in unit_ids if self._units[u].source_id > 0
        } - self._sessions.keys()
        if sessions:
            self._sessions |= self._history.get_sessions(sessions)
        notes = [u for u in unit_ids if self._units[u].source_id < 0]
        if notes:
            self._notes |= self._note_source.get_notes(notes)
            if self._files is None:
                sources = {
                    each.source_id
                    for each in self._units.values()
                    if each.source_id < 0
                }
                self._files = self._note_source.get_files(sources)

    def to_hit(self, unit_id: int) -> Hit | None:
        """What was found, as yet without a score; None when it is gone."""
        unit = self._units[unit_id]
        said = None if unit.said_at is None else from_microseconds(unit.said_at)
        if unit.source_id < 0:
            return self._note_hit(unit, said)
        session = self._sessions.get(unit.source_id)
        if session is None:
            return None
        base = Hit(
            SOURCES[unit.kind],
            0.0,
            Strength.WEAK,
            "",
            "",
            said=said,
            session=session,
            project=session.project,
        )
        if unit.kind is UnitKind.SESSION:
            text = f"{session.title}\n{session.preview}".strip()
            return replace(base, text=text, said=session.last_active)
        message = self._messages.get(unit_id)
        if message is None:
            return None
        return replace(
            base,
            text=message.text,
            said=message.sent or said,
            role=message.role,
            tool_name=self._tool_name(message),
            message_id=message.message_id,
            position=message.position,
        )

    def _tool_name(self, message: Message) -> str | None:
        """The tool that was called or answered; often only the call names it."""
        if message.tool_name or not message.call_id:
            return message.tool_name
        return self._history.find_tool_name(message.session_id, message.call_id)

    def _note_hit(self, unit: Unit, said: Moment | None) -> Hit | None:
        note = self._notes.get(unit.unit_id)
        file = (self._files or {}).get(unit.source_id)
        if note is None or file is None:
            return None
        return Hit(
            SOURCES[unit.kind],
            0.0,
            Strength.WEAK,
            note.text,
            "",
            said=said,
            position=unit.position,
            path=file.path,
            heading=note.heading,
            project=file.project,
        )
