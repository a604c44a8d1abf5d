"""opencode: all sessions in one SQLite database, messages as JSON in it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import apsw

from backstory.ingest.importers.base import (
    Conversation,
    Origin,
    unknown_record,
)
from backstory.ingest.parsing.json_documents import parse_json
from backstory.ingest.parsing.rows import (
    ForeignTable,
    decode,
    iter_rows,
    lenient,
    report_long,
)
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
# Steps and snapshots are bookkeeping; agents that are mentioned are in the text, too.
_NOT_CONVERSATION = frozenset(
    {
        "agent",
        "compaction",
        "patch",
        "reasoning",
        "retry",
        "snapshot",
        "step-finish",
        "step-start",
    }
)
# What a session is called until it has a title.
_NO_TITLE = re.compile(r"(New|Child) session - \d{4}-\d\d-\d\dT")


class Opencode:
    """The database of opencode.

    Tables, text and tool parts seen in 1.18.33 (2026-11); the other parts, errors and
    compaction as https://github.com/anomalyco/opencode has them in ``message-v2.ts``
    (read 2026-11). ``session_message``, a newer table, was empty there and is not read.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"session", "message", "part"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name.startswith("opencode")
            and path.suffix == ".db"
            and head.startswith(b"SQLite format 3\0")
        )

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        rows = db.execute(
            f"""
            WITH {_sizes_of("message")}, {_sizes_of("part")}
            SELECT {lenient("session.id")}, {lenient("session.title")},
                   {lenient("session.directory")}, {lenient("session.parent_id")},
                   {lenient("session.time_updated")},
                   messages.count, {lenient("messages.newest")}, messages.size,
                   parts.count, {lenient("parts.newest")}, parts.size
              FROM session
              LEFT JOIN (SELECT session_id, COUNT(*) AS count,
                                MAX(time_updated) AS newest,
                                SUM(size) AS size
                           FROM message_sizes GROUP BY session_id) AS messages
                     ON messages.session_id = session.id
              LEFT JOIN (SELECT session_id, COUNT(*) AS count,
                                MAX(time_updated) AS newest,
                                SUM(size) AS size
                           FROM part_sizes GROUP BY session_id) AS parts
                     ON parts.session_id = session.id
             ORDER BY session.time_created, session.id
            """
        )
        for row in rows:
            found, *state = map(decode, row)
            session_id = as_text(found)
            if session_id is not None:
                yield Conversation(session_id, content_id(*map(str, state)))

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        yield from _facts(db, session_id, origin)
        parts = ForeignTable(db, "part", ("id", "data"))
        for row in iter_rows(
            db,
            "message",
            ("id", "time_created", "data"),
            rest="WHERE session_id = ? ORDER BY time_created, id",
            params=(session_id,),
        ):
            message_id, message = as_text(row["id"]), _decode(row["data"])
            yield from report_long(row, f"the message {message_id}")
            if message is None or message_id is None:
                yield Problem(
                    f"the message {row['id']!r:.80} is not a JSON object with an id"
                )
            else:
                created = origin.moment(row["time_created"])
                place = _Place(session_id, message_id, created, origin)
                yield from _message(message, place, parts)


class _Place(FrozenStruct):
    """The message that parts belong to, and when it began."""

    session_id: str
    message_id: str
    created: Moment | None
    origin: Origin


def _sizes_of(table: str) -> str:
    """SQL for the sizes of rows: sorting sizes is cheap, sorting content is not."""
    return f"""{table}_sizes AS MATERIALIZED (
        SELECT session_id, time_updated, octet_length(data) AS size FROM {table})"""


def _facts(db: apsw.Connection, session_id: str, origin: Origin) -> Iterator[Item]:
    for row in iter_rows(
        db,
        "session",
        ("title", "directory", "parent_id", "time_created"),
        rest="WHERE id = ?",
        params=(session_id,),
    ):
        name = as_text(row["title"])
        yield SessionFacts(
            session_id,
            title=None if name and _NO_TITLE.match(name) else name,
            project=as_text(row["directory"]),
            parent_id=as_text(row["parent_id"]),
            started=origin.moment(row["time_created"]),
        )


def _decode(data: object) -> JsonObject | None:
    if not isinstance(data, str):
        return None
    try:
        value = parse_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _message(message: JsonObject, place: _Place, parts: ForeignTable) -> Iterator[Item]:
    role = _ROLES.get(as_text(message.get("role")) or "")
    if role is None:
        yield unknown_record(message.get("role"), None)
        return
    if role is Role.ASSISTANT and message.get("summary") is True:
        role = Role.SUMMARY
    for row in parts.rows("WHERE message_id = ? ORDER BY id", (place.message_id,)):
        part_id, part = as_text(row["id"]), _decode(row["data"])
        yield from report_long(row, f"the part {part_id}")
        if part is None or part_id is None:
            yield Problem(f"the part {row['id']!r:.80} is not a JSON object with an id")
        else:
            yield from _part(part, part_id, role, place)
    error = _error_text(message.get("error"))
    if error is not None:
        ended = as_object(message.get("time")).get("completed")
        yield NewMessage(
            place.session_id,
            f"{place.message_id}/error",
            Role.ERROR,
            error,
            sent=place.origin.moment(ended) or place.created,
        )


def _part(part: JsonObject, part_id: str, role: Role, place: _Place) -> Iterator[Item]:
    kind = as_text(part.get("type"))
    if kind == "tool":
        yield from _tool(part, part_id, place)
        return
    text: str | None = None
    match part:
        case {"type": "text", "synthetic": True} | {"type": "text", "ignored": True}:
            # Written by the program: contents of files that were mentioned, nudges to
            # continue.
            return
        case {"type": "text"}:
            text = as_text(part.get("text"))
        case {"type": "subtask"}:
            text = as_text(part.get("prompt"))
        case {"type": "file"}:
            text = _mark(part)
        case _ if kind not in _NOT_CONVERSATION:
            yield unknown_record(kind, None)
    if text is not None:
        begun = as_object(part.get("time")).get("start")
        sent = place.origin.moment(begun) or place.created
        yield NewMessage(place.session_id, part_id, role, text, sent=sent)


def _tool(part: JsonObject, part_id: str, place: _Place) -> Iterator[Item]:
    """A call, and its result once there is one."""
    name, call_id = as_text(part.get("tool")), as_text(part.get("callID"))
    state = as_object(part.get("state"))
    time = as_object(state.get("time"))
    begun = place.origin.moment(time.get("start")) or place.created
    yield NewMessage(
        place.session_id,
        part_id,
        Role.TOOL_CALL,
        compact_json(state.get("input")),
        name,
        call_id,
        begun,
    )
    result = _result_text(state)
    if result is not None:
        yield NewMessage(
            place.session_id,
            f"{part_id}/result",
            Role.TOOL_RESULT,
            result,
            name,
            call_id,
            place.origin.moment(time.get("end")) or begun,
        )


def _result_text(state: JsonObject) -> str | None:
    match state:
        case {"status": "completed"}:
            marks = [
                _mark(as_object(file)) for file in as_list(state.get("attachments"))
            ]
            return "\n".join([compact_json(state.get("output")), *marks])
        case {"status": "error"}:
            return compact_json(state.get("error"))
        case _:
            return None


def _mark(file: JsonObject) -> str:
    """The mark for an attached file: its kind and its name."""
    kind = (as_text(file.get("mime")) or "file").partition("/")[0]
    kind = kind if kind in ("image", "audio", "video") else "file"
    name = as_text(file.get("filename"))
    return f"[{kind}: {name}]" if name else f"[{kind}]"


def _error_text(error: object) -> str | None:
    value = as_object(error)
    return as_text(as_object(value.get("data")).get("message")) or as_text(
        value.get("name")
    )
