"""OpenClaw: a database per agent; before that, one JSONL file per session.

Both hold entries of Pi's format, with the same ids, so a session that moved from its
file into the database is not read twice.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import apsw

from backstory.ingest.importers.base import (
    Conversation,
    Memo,
    Origin,
    ReadBeside,
    Record,
)
from backstory.ingest.importers.pi_entries import (
    is_in_agent_folder,
    is_session_header,
    parse_entry,
    parse_header,
    parse_line,
)
from backstory.ingest.parsing.databases import list_columns
from backstory.ingest.parsing.json_documents import parse_json
from backstory.ingest.parsing.lines import MAX_LINE_BYTES
from backstory.ingest.parsing.rows import (
    ForeignTable,
    LongText,
    decode,
    iter_rows,
    lenient,
    report_long,
)
from backstory.system.zstd import ZstdError, decompress
from backstory.text.json_values import (
    JsonObject,
    as_text,
)
from backstory.values.history import Item, Problem, SessionFacts
from backstory.values.identity import content_id

# What is known about a session is in two tables, which were added and grew over time.
_WINDOW_COLUMNS = ("session_key", "created_at", "display_name")
_NODE_COLUMNS = ("label", "display_name", "parent_session_key", "spawned_by")


class OpenClaw:
    """The database ``openclaw-agent.sqlite`` of one agent.

    Shape as https://github.com/openclaw/openclaw describes it
    (``src/state/openclaw-agent-schema.sql``, ``docs/reference/database-schemas``), read
    in 2026-11; since 2026.9 large events are compressed. Sessions that the person
    deleted (``session_transcript_archives``) and those moved to files in
    ``sessions/cold`` are not read.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"transcript_events"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.name == "openclaw-agent.sqlite" and head.startswith(
            b"SQLite format 3\0"
        )

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        rows = db.execute(
            f"""
            WITH sizes AS MATERIALIZED (
              SELECT session_id, seq, created_at, octet_length(event_json) AS plain,
                     octet_length({_packed_column(db)}) AS packed
                FROM transcript_events)
            SELECT {lenient("session_id")}, COUNT(*), {lenient("MAX(seq)")},
                   {lenient("MAX(created_at)")}, SUM(plain), SUM(packed)
              FROM sizes
             GROUP BY session_id
             ORDER BY MIN(created_at), session_id
            """
        )
        for row in rows:
            found, *state = map(decode, row)
            session_id = as_text(found)
            if session_id is not None:
                told = _told_about(db, session_id).values()
                yield Conversation(session_id, content_id(*map(str, (*state, *told))))

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        told: SessionFacts | None = _session_facts(db, session_id, origin)
        columns = ("seq", "event_json", "event_zstd")
        events = ForeignTable(db, "transcript_events", columns, blobs=("event_zstd",))
        for row in events.rows("WHERE session_id = ? ORDER BY seq", (session_id,)):
            seq = row["seq"]
            yield from report_long(row, f"event {seq} of session {session_id}")
            try:
                event = _read_event(row["event_json"], row["event_zstd"])
            except (ValueError, ZstdError) as exc:
                yield Problem(
                    f"event {seq} of session {session_id} cannot be read ({exc})"
                )
                continue
            if event.get("type") == "session":
                # The header may have the id of an earlier file of the session.
                yield parse_header({**event, "id": session_id}, origin)
            if told is not None:
                # After the header, which says whether the project may be read at all.
                yield told
                told = None
            yield from parse_entry(
                event, session_id=session_id, origin=origin, ordinal=seq, line=None
            )


class OpenClawFile:
    """Session files of OpenClaw before it had a database (``agents/*/sessions``)."""

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.suffix == ".jsonl"
            and is_session_header(head)
            and is_in_agent_folder(path)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        yield from parse_line(record, origin, memo)


# -- pieces of the database -----------------------------------------------------------


def _packed_column(db: apsw.Connection) -> str:
    known = list_columns(db, "transcript_events")
    return "event_zstd" if "event_zstd" in known else "NULL"


def _read_event(plain: object, packed: object) -> JsonObject:
    if isinstance(packed, LongText):
        raise ValueError("too long to be unpacked")
    if isinstance(packed, bytes):
        plain = decode(decompress(packed, MAX_LINE_BYTES))
    event = parse_json(plain if isinstance(plain, str) else "")
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    return event


def _session_facts(
    db: apsw.Connection, session_id: str, origin: Origin
) -> SessionFacts:
    told = _told_about(db, session_id)
    parent_key = told.get("parent_session_key") or told.get("spawned_by")
    return SessionFacts(
        session_id,
        title=as_text(told.get("label")) or as_text(told.get("display_name")),
        parent_id=_current_session(db, parent_key),
        started=origin.moment(told.get("created_at")),
    )


def _told_about(db: apsw.Connection, session_id: str) -> dict[str, object]:
    """What the tables beside the transcript say about a session, by column."""
    told = _row(db, "session_windows", "session_id", session_id, _WINDOW_COLUMNS)
    # A key stands for a conversation across all its sessions, so its name fits them
    # all.
    key = told.get("session_key")
    node = _row(db, "session_nodes", "session_key", key, _NODE_COLUMNS)
    return told | {name: value for name, value in node.items() if value is not None}


def _current_session(db: apsw.Connection, session_key: object) -> str | None:
    """The session in which the conversation of that key continues."""
    columns = ("current_session_id",)
    node = _row(db, "session_nodes", "session_key", session_key, columns)
    return as_text(node.get("current_session_id"))


def _row(
    db: apsw.Connection, table: str, key: str, value: object, columns: tuple[str, ...]
) -> dict[str, object]:
    """The row with that key; empty if there is none, or no such table yet."""
    if not isinstance(value, str) or key not in list_columns(db, table):
        return {}
    rows = iter_rows(db, table, columns, rest=f"WHERE {key} = ?", params=(value,))
    return next(rows, {})
