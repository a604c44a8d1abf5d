"""Backstory's own format: JSON lines that are easy to write from any other log.

It is described in ``docs/reference/jsonl-format.md``; the two change together. An
export has its conversations in this format, with a few more fields, which ``backstory
import`` reads so that each stays a conversation of its own program.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Literal

from backstory.ingest.importers.base import (
    Memo,
    Origin,
    ReadBeside,
    Record,
    first_records,
    made_id,
    make_unique,
)
from backstory.text.json_values import (
    JsonObject,
    as_text,
    compact_json,
)
from backstory.values.history import (
    Item,
    NewMessage,
    Problem,
    Role,
    SessionFacts,
    SessionKind,
)
from backstory.values.moments import Moment, whole_day

VERSION = 1
SUFFIX = ".backstory.jsonl"
_MARK = re.compile(rb'\s*\{\s*"backstory"\s*:')
_ABOUT_SESSION = frozenset(
    {
        "session",
        "title",
        "project",
        "git_branch",
        "parent",
        "kind",
        "started_at",
        "started_on",
        "last_active_at",
        "last_active_on",
        "backstory",
    }
)
_KINDS = {kind.value: kind for kind in SessionKind}

_OWN_FIELDS = frozenset({"session", "id", "sent_at", "tool_name", "call_id"})
_NAME_END = re.compile(r"(?:\.backstory)?\.jsonl(?:\.zst)?\Z", re.IGNORECASE)


class BackstoryJsonl:
    """Files named ``*.backstory.jsonl``, whose first field is ``"backstory"``, or
    among whose first lines one has a role of ours, a text and another field of ours.

    Every line may say something about its session; a line with a role is a message.
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        name = path.name.lower().removesuffix(".zst")
        if name.endswith(SUFFIX):
            return True
        return name.endswith(".jsonl") and (
            _MARK.match(head) is not None or any(map(_is_message, first_records(head)))
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        if is_export_head(record.value):
            memo["export"] = True
            yield Problem(
                "part of an export; 'backstory import' reads the whole of it",
                record.line,
            )
        if "export" not in memo:
            yield from parse_line(record, origin, memo)


def is_export_head(fields: JsonObject) -> bool:
    """Whether a line is the first of a conversation that was exported."""
    return "backstory" in fields and "host" in fields


def parse_line(record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
    """What a line says, whether it is from an export or not."""
    line, fields = record
    yield from _unreadable_times(fields, origin, line)
    if "role" in fields or "text" in fields:
        yield from _message(fields, line, origin, memo)
    elif _ABOUT_SESSION & fields.keys():
        session_id = _session_id(fields, origin, memo)
        yield from _facts(session_id, fields, origin, line)
    else:
        yield Problem("neither a message nor about a session", line)


def _is_message(fields: JsonObject) -> bool:
    """Whether a line is surely ours: many programs write just a role and a text."""
    return (
        as_text(fields.get("role")) in set(Role)
        and "text" in fields
        and bool(_OWN_FIELDS & fields.keys())
    )


def _session_id(fields: JsonObject, origin: Origin, memo: Memo) -> str:
    """The session of a line; a file that is renamed is still the same session."""
    given = _name(fields.get("session"))
    if given is None:
        given = memo.setdefault("file", _NAME_END.sub("", origin.path.name))
    return given


def _name(value: object) -> str | None:
    """An id as people write them: text or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return as_text(value)


def _facts(
    session_id: str, fields: JsonObject, origin: Origin, line: int
) -> Iterator[Item]:
    version = fields.get("backstory", VERSION)
    if version != VERSION:
        yield Problem(
            f"written for version {compact_json(version):.40} of the format; "
            f"this Backstory knows version {VERSION}",
            line,
        )
    yield SessionFacts(
        session_id,
        title=as_text(fields.get("title")),
        project=as_text(fields.get("project")),
        git_branch=as_text(fields.get("git_branch")),
        parent_id=_name(fields.get("parent")),
        started=_moment(fields, "started", origin),
        last_active=_moment(fields, "last_active", origin),
        kind=_KINDS.get(as_text(fields.get("kind")) or ""),
    )


def _message(
    fields: JsonObject, line: int, origin: Origin, memo: Memo
) -> Iterator[Item]:
    role = _role(fields.get("role"))
    text = fields.get("text")
    if role is None:
        given, known = compact_json(fields.get("role")), ", ".join(Role)
        yield Problem(f"there is no role '{given:.40}'; the roles are: {known}", line)
        return
    if text is None:
        yield Problem("a message without a text", line)
        return
    session_id = _session_id(fields, origin, memo)
    has_facts = bool((_ABOUT_SESSION - {"session"}) & fields.keys())
    if has_facts or memo.get("session") != session_id:
        memo["session"] = session_id
        yield from _facts(session_id, fields, origin, line)
    text = compact_json(text)
    sent = _moment(fields, "sent", origin)
    yield NewMessage(
        session_id,
        _name(fields.get("id")) or _made_id(session_id, role, text, sent, memo),
        role,
        text,
        as_text(fields.get("tool_name")),
        _name(fields.get("call_id")),
        sent,
    )


def _made_id(
    session_id: str, role: Role, text: str, sent: Moment | None, memo: Memo
) -> str:
    """An id from the time and text of a message, or from its place in the session.

    Only messages without a time are counted, so that others leave the memo small.
    """
    if sent is not None:
        made = made_id(session_id, role, text, sent, 0)
        return make_unique(made, sent, memo)
    counts = memo.setdefault("untimed", {})
    counts[session_id] = ordinal = counts.get(session_id, 0) + 1
    return made_id(session_id, role, text, None, ordinal)


def _role(value: object) -> Role | None:
    try:
        return Role(as_text(value) or "")
    except ValueError:
        return None


def _moment(fields: JsonObject, name: str, origin: Origin) -> Moment | None:
    """When something was said: at a time, or on a day if the time is not known."""
    found = origin.moment(fields.get(f"{name}_at"))
    return found or _day(fields.get(f"{name}_on"))


def _day(value: object) -> Moment | None:
    try:
        return whole_day(date.fromisoformat(as_text(value) or ""))
    except ValueError:
        return None


def _unreadable_times(
    fields: JsonObject, origin: Origin, line: int
) -> Iterator[Problem]:
    for name in ("started", "last_active", "sent"):
        at, on = fields.get(f"{name}_at"), fields.get(f"{name}_on")
        if at is not None and origin.moment(at) is None:
            yield Problem(f"{name}_at is not a time: {compact_json(at):.40}", line)
        if on is not None and _day(on) is None:
            yield Problem(f"{name}_on is not a day: {compact_json(on):.40}", line)
