"""Cursor: the agent's transcripts, one JSONL file per chat or subagent.

A transcript has no ids and keeps no tool results; the only times in it are those that
Cursor writes before the person's words.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Memo,
    Origin,
    ReadBeside,
    Record,
    made_id,
    unknown_record,
)
from backstory.ingest.parsing.json_documents import parse_json, read_object
from backstory.text.json_values import (
    JsonObject,
    as_object,
    as_text,
    compact_json,
    plain_text,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts

_TIMESTAMP = ("<timestamp>", "</timestamp>")
_QUERY = ("<user_query>", "</user_query>")
# Tuesday, Jul 28, 2026, 12:06 PM (UTC+2)
_TIME = re.compile(
    r"\w+, ([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}),? (\d{1,2}):(\d{2}) ([AP]M)"
    r"(?: \(UTC([+-]\d{1,2})?(?::(\d{2}))?\))?"
)
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
# What Cursor puts around the person's words, or in their place.
_INJECTED = re.compile(
    r"\s*<(additional_data|agent_skills|attached_files|git_status|manually_attached_skills"
    r"|open_and_recently_viewed_files|rules|system_notification|system[-_]reminder"
    r"|user_info)\b[^>]*>.*</\1>\s*",
    re.DOTALL,
)
_NOT_IN_SLUGS = re.compile(r"[^A-Za-z0-9]+")
_REDACTED = "[REDACTED]"


class Cursor:
    """Agent transcripts of the Cursor editor and its CLI.

    Shape as tools that read them describe it for the editor 3.23 and 3.24 and the CLI
    2026.10 (for example https://github.com/eunomia-bpf/agentsight/issues/24), read in
    2026-11. Chats from before 2026-02 are in a database that is not read.
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".jsonl" and _is_transcript_line(head.partition(b"\n")[0])

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        """The project folder, whose name among the transcripts has lost its slashes.

        Cursor's CLI notes the full path beside the transcripts. Without that, the only
        folder of this machine whose path is shortened to the same text is used.
        """
        for folder in path.parents:
            if folder.name == "agent-transcripts":
                note = _parse_object(read(folder.parent / ".workspace-trusted"))
                project = as_text(note.get("workspacePath"))
                project = project or _find_folder(folder.parent.name, Path(path.anchor))
                return {"project": project} if project else {}
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        line, value = record
        role = as_text(value.get("role"))
        if role in ("user", "assistant"):
            yield from _session_facts(origin, memo)
            yield from _message(record, Role(role), origin, memo)
        elif value.get("type") == "turn_ended":
            error = as_text(value.get("error"))
            if error is not None:
                yield from _session_facts(origin, memo)
                yield _error(error, line, origin, memo)
        else:
            yield unknown_record(role or value.get("type"), line)


class CursorChat:
    """The ``meta.json`` of a chat of Cursor's CLI: its title, its folder, its times.

    Shape as tools that read them describe it for the CLI 2026.10, read in 2026-11. The
    chat itself is read from its transcript, which has the same id.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name == "meta.json"
            and b'"createdAtMs"' in head
            and b'"hasConversation"' in head
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        meta, problem = read_object(file)
        if problem is not None:
            yield problem
        if not meta:
            return
        yield SessionFacts(
            origin.path.parent.name,
            title=as_text(meta.get("title")),
            project=as_text(meta.get("cwd")),
            started=origin.moment(meta.get("createdAtMs")),
            last_active=origin.moment(meta.get("updatedAtMs")),
        )


# -- sessions -------------------------------------------------------------------------


def _is_transcript_line(line: bytes) -> bool:
    """Whether a line is a role and a message of content blocks, and nothing else."""
    record = _parse_object(line)
    return (
        set(record) == {"role", "message"}
        and record["role"] in ("user", "assistant")
        and isinstance(as_object(record["message"]).get("content"), list)
    )


def _parse_object(content: bytes) -> JsonObject:
    try:
        return as_object(parse_json(content))
    except ValueError:
        return {}


def _shorten(name: str) -> str:
    """A path as Cursor writes it in names: ``/home/dev/a_b`` is ``home-dev-a-b``."""
    return _NOT_IN_SLUGS.sub("-", name).strip("-")


def _find_folder(short: str, root: Path) -> str | None:
    """The only folder below ``root`` whose path is shortened to ``short``, if any."""
    drive = _shorten(str(root))
    if drive:
        letter, _, short = short.partition("-")
        if letter.lower() != drive.lower():
            return None
    found = list(_iter_folders(short, root, set()))
    return str(found[0]) if len(found) == 1 else None


def _iter_folders(
    short: str, folder: Path, looked: set[tuple[Path, str]]
) -> Iterator[Path]:
    """The folders whose path below ``folder`` is shortened to ``short``.

    ``looked`` keeps links between folders from being followed over and over.
    """
    try:
        place = (folder.resolve(), short)
        if place in looked:
            return
        looked.add(place)
        children = [child for child in folder.iterdir() if _shorten(child.name)]
        for child in children:
            name = _shorten(child.name)
            if short == name and child.is_dir():
                yield child
            elif short.startswith(f"{name}-") and child.is_dir():
                yield from _iter_folders(short.removeprefix(f"{name}-"), child, looked)
    # RuntimeError: a link that leads to itself.
    except (OSError, RuntimeError):
        return


def _session_facts(origin: Origin, memo: Memo) -> Iterator[Item]:
    if "session" in memo:
        return
    session_id = _session_id(origin)
    memo["session"] = session_id
    folder = origin.path.parent
    yield SessionFacts(
        session_id,
        project=origin.beside.get("project"),
        parent_id=folder.parent.name if folder.name == "subagents" else None,
    )


def _session_id(origin: Origin) -> str:
    return origin.path.stem


# -- messages -------------------------------------------------------------------------


def _message(record: Record, role: Role, origin: Origin, memo: Memo) -> Iterator[Item]:
    line, value = record
    content = as_object(value.get("message")).get("content")
    if not isinstance(content, str | list):
        yield Problem("a message without content", line)
        return
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    if role is Role.USER:
        _remember_time(blocks, origin, memo)
    sent = origin.moment(memo.get("sent"))
    session_id = _session_id(origin)
    own_id = made_id(session_id, role, compact_json(content), None, line)
    for index, block in enumerate(blocks):
        found = _read_block(block, role)
        if found is None:
            continue
        block_role, text, tool_name, call_id = found
        native_id = f"{own_id}/{index}" if index else own_id
        yield NewMessage(
            session_id, native_id, block_role, text, tool_name, call_id, sent
        )


def _error(text: str, line: int, origin: Origin, memo: Memo) -> NewMessage:
    session_id = _session_id(origin)
    return NewMessage(
        session_id,
        made_id(session_id, Role.ERROR, text, None, line),
        Role.ERROR,
        text,
        sent=origin.moment(memo.get("sent")),
    )


def _read_block(
    block: object, role: Role
) -> tuple[Role, str, str | None, str | None] | None:
    """Role, text, tool name and call id of a block; None if nobody says anything."""
    match block:
        case {"type": "text", "text": str(text)}:
            text = _own_words(text) if role is Role.USER else _without_redacted(text)
            return (role, text, None, None) if text else None
        case {"type": "tool_use", **call}:
            text = compact_json(call.get("input") or {})
            name, call_id = as_text(call.get("name")), as_text(call.get("id"))
            return Role.TOOL_CALL, text, name, call_id
        case {"type": "tool_result", **result}:
            text = plain_text(result.get("content"))
            return Role.TOOL_RESULT, text, None, as_text(result.get("tool_use_id"))
        case {"type": "thinking" | "reasoning"}:
            return None
        case {"type": str(kind)}:
            return role, f"[{kind}]", None, None
        case _:
            return None


def _own_words(text: str) -> str:
    """The person's own words in a user message."""
    queries, _ = _split(text, _QUERY)
    if queries:
        return "\n".join(
            query.removeprefix("\n").removesuffix("\n") for query in queries
        )
    _, outside = _split(text, _TIMESTAMP)
    rest = outside[0] + "".join(part.lstrip() for part in outside[1:])
    return "" if _INJECTED.fullmatch(rest) else rest


def _split(text: str, marks: tuple[str, str]) -> tuple[list[str], list[str]]:
    """All texts between these marks, and all texts outside them."""
    opening, closing = marks
    inside: list[str] = []
    outside: list[str] = []
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start)
        if end < 0:
            break
        outside.append(text[position:start])
        inside.append(text[start + len(opening) : end])
        position = end + len(closing)
    return inside, [*outside, text[position:]]


def _without_redacted(text: str) -> str:
    """An answer without the mark for thinking that was left out."""
    if not text.endswith(_REDACTED):
        return text
    return text.removesuffix(_REDACTED).rstrip()


# -- times ----------------------------------------------------------------------------


def _remember_time(blocks: list[object], origin: Origin, memo: Memo) -> None:
    """Note when the person spoke, because the answers that follow have no times."""
    for block in blocks:
        written, _ = _split(plain_text([block]), _TIMESTAMP)
        found = _parse_time(written[0]) if written else None
        if found is not None:
            memo["sent"] = found.isoformat()
            return


def _parse_time(written: str) -> datetime | None:
    found = _TIME.fullmatch(written.strip())
    if found is None:
        return None
    month, day, year, hour, minute, half, zone_hours, zone_minutes = found.groups()
    try:
        moment = datetime(
            int(year),
            _MONTHS.index(month) // 3 + 1,
            int(day),
            int(hour) % 12 + (12 if half == "PM" else 0),
            int(minute),
        )
        if "UTC" not in written:
            return moment
        minutes = int(zone_hours or 0) * 60
        minutes += int(zone_minutes or 0) * (-1 if minutes < 0 else 1)
        return moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    except ValueError:
        return None
