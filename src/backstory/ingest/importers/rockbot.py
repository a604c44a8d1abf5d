"""RockBot: a log of all turns in JSON lines, and one JSON file per conversation.

Both hold the same turns for a while. A turn has no id, but it has the same time and
text in both files, so it gets the same made id and is stored once.
"""

import re
from collections.abc import Iterator, Mapping
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
from backstory.ingest.parsing.json_lists import iter_items
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL_RESULT,
}
_CONVERSATIONS = "conversations"
_FIRST_LOGGED = re.compile(rb'\s*\{\s*"sessionId"\s*:\s*"')
_FIRST_TURN = re.compile(rb'\s*\[\s*\{\s*"role"\s*:\s*"')


class RockBotLog:
    """``conversation-log/turns.jsonl``, and older logs that were moved aside.

    Shape as in ``FileConversationLog`` of github.com/MarimerLLC/rockbot (read
    2026-11).
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name.startswith("turns")
            and ".jsonl" in path.name
            and _FIRST_LOGGED.match(head) is not None
            and b'"role"' in head
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        untimed = memo.setdefault("untimed", {})
        line, value = record
        session_id = as_text(value.get("sessionId"))
        role = _ROLES.get(as_text(value.get("role")) or "")
        if role is None:
            yield unknown_record(value.get("role"), line)
        elif session_id is None:
            yield Problem("a turn without a session", line)
        else:
            if memo.get("session") != session_id:
                memo["session"] = session_id
                yield SessionFacts(session_id)
            ordinal = untimed.get(session_id, 0)
            message = _message(session_id, role, value, origin, ordinal)
            if message is None:
                yield Problem("a turn without content", line)
                return
            if message.sent is None:
                untimed[session_id] = ordinal + 1
            yield message


class RockBotConversation:
    """``conversations/{sessionId}.json``: the newest turns of one conversation.

    Shape as in ``FileConversationMemory`` and ``ConversationTurn`` of
    github.com/MarimerLLC/rockbot (read 2026-11). Turns dropped from it are kept.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.suffix == ".json"
            and _CONVERSATIONS in path.parts[:-1]
            and _FIRST_TURN.match(head) is not None
            and b'"timestamp"' in head
            and (b'"agentName"' in head or _has_log_beside(path))
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        session_id = _session_id(origin.path)
        untimed = 0
        yield SessionFacts(session_id)
        for item in iter_items(file, noun="turn"):
            if isinstance(item, Problem):
                yield item
                continue
            name, turn = item
            role = _ROLES.get(as_text(turn.get("role")) or "")
            if role is None:
                yield unknown_record(turn.get("role"), None)
                continue
            message = _message(session_id, role, turn, origin, untimed)
            if message is None:
                yield Problem(f"{name} has no content")
                continue
            untimed += message.sent is None
            yield message
            yield from _attachments(message, turn)


def _has_log_beside(path: Path) -> bool:
    """Whether RockBot's log is beside the folder; an archive has nothing beside it."""
    return path.is_absolute() and any(
        folder.name == _CONVERSATIONS and (folder.parent / "conversation-log").is_dir()
        for folder in path.parents
    )


def _session_id(path: Path) -> str:
    """The session id; one with slashes in it is a path of folders."""
    parts = path.with_suffix("").parts
    if _CONVERSATIONS not in parts[:-1]:
        return parts[-1]
    last = len(parts) - 1 - parts[::-1].index(_CONVERSATIONS)
    return "/".join(parts[last + 1 :])


def _message(
    session_id: str, role: Role, turn: JsonObject, origin: Origin, ordinal: int
) -> NewMessage | None:
    text = turn.get("content")
    if not isinstance(text, str):
        return None
    sent = origin.moment(turn.get("timestamp"))
    native_id = made_id(session_id, role, text, sent, ordinal)
    return NewMessage(session_id, native_id, role, text, sent=sent)


def _attachments(message: NewMessage, turn: JsonObject) -> Iterator[NewMessage]:
    """A separate mark for every attached file, because the log has none of them."""
    for index, attachment in enumerate(as_list(turn.get("attachments")), start=1):
        file = as_object(attachment)
        kind = (as_text(file.get("mime")) or "").partition("/")[0]
        kind = kind if kind in ("image", "audio", "video") else "file"
        name = as_text(file.get("fileName")) or as_text(file.get("path"))
        yield NewMessage(
            message.session_id,
            f"{message.native_id}/{index}",
            message.role,
            f"[{kind}: {name}]" if name else f"[{kind}]",
            sent=message.sent,
        )
