"""A conversation as JSON lines with everything about it, and back.

The lines are in Backstory's own format, which ``docs/reference/jsonl-format.md``
describes: first one about the session, then one for each message.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import orjson

from backstory.ingest.importers.backstory_jsonl import (
    VERSION,
    is_export_head,
    parse_line,
)
from backstory.ingest.importers.base import Memo, Origin, Record
from backstory.ingest.parsing.lines import LineReader
from backstory.text.json_values import JsonObject, as_text
from backstory.values.history import (
    Item,
    Message,
    NewMessage,
    Problem,
    Session,
    SessionFacts,
    SessionKind,
)
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct

Mask = Callable[[str], str]

# The longest line that is read. It is long because messages are exported whole.
_MAX_LINE_BYTES = 256 * 1024 * 1024
# From here on, a number is read as microseconds.
_LEAST_MICROSECONDS = 10**14


# -- writing --------------------------------------------------------------------------


def session_line(
    session: Session, *, title: str | None, logged_to: str | None
) -> bytes:
    """The first line. ``title`` is the one that the session was given, if any.

    ``logged_to`` is the id of the last message that is in a daily log.
    """
    kind = session.kind
    return _to_line(
        {
            "backstory": VERSION,
            "host": session.host,
            "session": session.native_id,
            "title": title,
            "project": session.project,
            "git_branch": session.git_branch,
            "parent": session.parent_id,
            "kind": None if kind is SessionKind.CONVERSATION else kind.value,
            **_when("started", session.started),
            **_when("last_active", session.last_active),
            "logged_to": logged_to,
            "read_from": session.read_from,
        }
    )


def message_line(message: Message, session: Session, *, mask: Mask) -> bytes:
    return _to_line(
        {
            "session": session.native_id,
            "id": message.native_id,
            "role": message.role.value,
            "tool_name": message.tool_name,
            "call_id": message.call_id,
            **_when("sent", message.sent),
            "full_bytes": message.full_bytes,
            "text": mask(message.text),
        }
    )


def _to_line(fields: JsonObject) -> bytes:
    """A line without the fields that are unknown."""
    known = {name: value for name, value in fields.items() if value is not None}
    return orjson.dumps(known, option=orjson.OPT_APPEND_NEWLINE)


def _when(name: str, moment: Moment | None) -> JsonObject:
    """A time as it was written: with its offset, without one, or only the day."""
    if moment is None:
        return {}
    if moment.is_day:
        return {f"{name}_on": moment.at.date().isoformat()}
    if moment.utc_offset_min is None:
        microseconds = moment.to_microseconds()
        if microseconds >= _LEAST_MICROSECONDS:
            return {f"{name}_at": microseconds}
    return {f"{name}_at": moment.in_own_zone().isoformat()}


# -- reading --------------------------------------------------------------------------


class ExportedSession(FrozenStruct):
    """What the first line says about a session."""

    host: str
    facts: SessionFacts
    logged_to: str | None
    read_from: str | None


class ExportedMessage(FrozenStruct):
    """A message, and how long its text was before it was cut, if it was."""

    message: NewMessage
    full_bytes: int | None
    line: int


ExportedLine = ExportedSession | ExportedMessage | Problem


def iter_lines(file: IO[bytes], path: Path) -> Iterator[ExportedLine]:
    """What the lines of a conversation say: first the session, then its messages.

    A line that cannot be read is a problem. If the first line is not about a session,
    nothing follows.
    """
    origin = Origin(path, any_year=True)
    memo: Memo = {}
    session: ExportedSession | None = None
    for record in LineReader(file, max_line_bytes=_MAX_LINE_BYTES).records():
        if isinstance(record, Problem):
            yield record
        elif session is None:
            items = list(parse_line(record, origin, memo))
            yield from (item for item in items if isinstance(item, Problem))
            session = _find_head(record, items)
            if session is None:
                yield Problem("the first line is not about a session", record.line)
                return
            yield session
        else:
            yield from _parse_message(record, origin, memo, session)


def _find_head(record: Record, items: Sequence[Item]) -> ExportedSession | None:
    fields = record.value
    host, named = as_text(fields.get("host")), as_text(fields.get("session"))
    if not is_export_head(fields) or host is None or named is None:
        return None
    for item in items:
        if isinstance(item, SessionFacts):
            read_from = as_text(fields.get("read_from"))
            return ExportedSession(
                host, item, as_text(fields.get("logged_to")), read_from
            )
    return None


def _parse_message(
    record: Record, origin: Origin, memo: Memo, session: ExportedSession
) -> Iterator[ExportedLine]:
    for item in parse_line(record, origin, memo):
        match item:
            case Problem():
                yield item
            case NewMessage() if item.session_id == session.facts.native_id:
                yield ExportedMessage(item, _to_size(record.value), record.line)
            case NewMessage():
                yield Problem("a message of another session", record.line)


def _to_size(fields: JsonObject) -> int | None:
    size = fields.get("full_bytes")
    # No database has a larger number.
    return size if type(size) is int and 0 <= size < 2**63 else None
