"""Fetch what was found from the history and the index, each kind in one batch."""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from backstory.store.base.history import HistoryStore
from backstory.store.base.index import IndexedFile, Note, Unit
from backstory.values.history import Message, Role, Session
from backstory.values.hits import HIT_SOURCES, Hit, HitSource, Strength
from backstory.values.moments import WHOLE_DAY, Moment, from_microseconds
from backstory.values.structs import replace
from backstory.values.units import (
    OF_A_DAY,
    Container,
    FileRef,
    SessionRef,
    UnitKind,
    is_message,
)


class NoteSource(Protocol):
    """Gives the texts and files of units in Markdown files, as an index does."""

    def get_notes(self, unit_ids: Collection[int]) -> Mapping[int, Note]: ...

    def get_files(self, file_ids: Collection[int]) -> Mapping[int, IndexedFile]: ...


class Hydrator:
    """Turns units into hits; their scores are set later."""

    def __init__(self, history: HistoryStore, notes: NoteSource) -> None:
        self._history = history
        self._note_source = notes
        self._units: dict[int, Unit] = {}
        self._messages: dict[int, Message] = {}
        self._tool_names: dict[tuple[int, str], str] = {}
        self._sessions: dict[int, Session] = {}
        self._notes: dict[int, Note] = {}
        self._files: dict[int, IndexedFile] = {}

    def load(self, units: Iterable[Unit]) -> None:
        """Fetch everything that the hits of these units need, once for each unit."""
        new = {unit.unit_id: unit for unit in units if unit.unit_id not in self._units}
        self._units |= new
        self._load_messages([unit_id for unit_id in new if is_message(unit_id)])
        containers = {unit_id: unit.container for unit_id, unit in new.items()}
        self._load_sessions(set(containers.values()))
        self._load_notes([u for u, c in containers.items() if isinstance(c, FileRef)])
        self._load_files(set(containers.values()))

    def _load_messages(self, unit_ids: Collection[int]) -> None:
        if not unit_ids:
            return
        found = self._history.get_messages(unit_ids)
        self._messages |= found
        # Often, only the call says which tool a result comes from.
        calls = [
            (message.session_id, message.call_id)
            for message in found.values()
            if message.call_id and not message.tool_name
        ]
        if calls:
            self._tool_names |= self._history.find_tool_names(calls)

    def _load_sessions(self, containers: Iterable[Container]) -> None:
        wanted = {c.session_id for c in containers if isinstance(c, SessionRef)}
        if missing := wanted - self._sessions.keys():
            self._sessions |= self._history.get_sessions(missing)

    def _load_notes(self, unit_ids: Collection[int]) -> None:
        if unit_ids:
            self._notes |= self._note_source.get_notes(unit_ids)

    def _load_files(self, containers: Iterable[Container]) -> None:
        wanted = {each.file_id for each in containers if isinstance(each, FileRef)}
        if missing := wanted - self._files.keys():
            self._files |= self._note_source.get_files(missing)

    def to_hit(self, unit_id: int) -> Hit | None:
        """The hit, without a score yet; None if the unit is gone."""
        unit = self._units[unit_id]
        if isinstance(unit.container, FileRef):
            return self._note_hit(unit, unit.container)
        session = self._sessions.get(unit.container.session_id)
        if session is None:
            return None
        if unit.kind is UnitKind.SESSION:
            return _session_hit(session)
        message = self._messages.get(unit_id)
        if message is None:
            return None
        return Hit(
            HIT_SOURCES[unit.kind],
            0.0,
            Strength.WEAK,
            message.text,
            "",
            said=message.sent or _when_said(unit),
            role=message.role,
            tool_name=self._tool_name(message),
            session=session,
            message_id=message.message_id,
            position=message.position,
            project=session.project,
            is_damaged=message.is_damaged,
        )

    def _tool_name(self, message: Message) -> str | None:
        if message.tool_name or not message.call_id:
            return message.tool_name
        return self._tool_names.get((message.session_id, message.call_id))

    def _note_hit(self, unit: Unit, container: FileRef) -> Hit | None:
        note = self._notes.get(unit.unit_id)
        file = self._files.get(container.file_id)
        if note is None or file is None:
            return None
        return Hit(
            HIT_SOURCES[unit.kind],
            0.0,
            Strength.WEAK,
            note.text,
            "",
            said=_when_said(unit),
            position=unit.position,
            path=file.path,
            heading=note.heading,
            project=file.project,
        )


def _session_hit(session: Session) -> Hit:
    text = f"{session.title}\n{session.preview}".strip()
    return Hit(
        HitSource.SESSION,
        0.0,
        Strength.WEAK,
        text,
        "",
        said=session.last_active,
        session=session,
        project=session.project,
    )


def _when_said(unit: Unit) -> Moment | None:
    if unit.said_at is None:
        return None
    is_day = unit.kind in OF_A_DAY
    return from_microseconds(unit.said_at, WHOLE_DAY if is_day else None)


def add_replies(hits: Iterable[Hit], history: HistoryStore) -> tuple[Hit, ...]:
    """Add the agent's reply to each hit that is a message of the user."""
    hits = tuple(hits)
    places = {place for hit in hits if (place := _place_of_question(hit)) is not None}
    if not places:
        return hits
    replies = history.find_replies(places)
    return tuple(
        hit
        if (place := _place_of_question(hit)) is None
        else replace(hit, reply=replies.get(place))
        for hit in hits
    )


def _place_of_question(hit: Hit) -> tuple[int, int] | None:
    if hit.role is not Role.USER or hit.session is None or hit.position is None:
        return None
    return (hit.session.session_id, hit.position)
