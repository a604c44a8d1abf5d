"""Claude.ai: the export of an account, conversations as lists of messages.

Messages that were edited or regenerated are in the list with those that replaced them,
and nothing says which are current; so all are kept, in the order of the list.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Origin,
    ReadBeside,
    made_id,
    unknown_record,
)
from backstory.ingest.parsing.json_lists import (
    ListItem,
    is_export,
    parse_each,
)
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
    plain_text,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.structs import Struct, field

_MARKS = (b'"chat_messages"', b'"uuid"')
_ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}
# The model's thinking, and the program's bookkeeping.
_NOT_SAID = frozenset({"thinking", "redacted_thinking", "token_budget", "flag"})

# Role, text, tool name and call id.
_Said = tuple[Role, str, str | None, str | None]


class ClaudeAi:
    """``conversations.json`` of a Claude.ai export.

    The shape was learnt in November 2026 from public descriptions and from records
    quoted verbatim from exports of 2025 and 2026: brandtcormorant/claude-json-schema,
    Sinity/polylogue (docs/providers/claude-ai.md), and the tests of several converters.
    ``text`` repeats ``content`` with thinking mixed in and placeholders for tools, so
    it is read only where there is no content. ``summary`` repeats the conversation.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return is_export(path, head, _MARKS)

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        return parse_each(file, _Reading(origin).take)


class _Reading(Struct):
    """One pass over an export; an unknown kind is reported once."""

    origin: Origin
    reported: set[str] = field(default_factory=set)

    def take(self, conversation: ListItem) -> Iterator[Item]:
        name, fields = conversation
        session_id = as_text(fields.get("uuid"))
        messages = fields.get("chat_messages")
        if session_id is None or not isinstance(messages, list):
            yield Problem(f"{name} has no id or no messages")
            return
        yield SessionFacts(
            session_id,
            title=as_text(fields.get("name")),
            started=self.origin.moment(fields.get("created_at")),
            last_active=self.origin.moment(fields.get("updated_at")),
        )
        for ordinal, message in enumerate(messages):
            yield from self._message(session_id, as_object(message), ordinal)

    def _message(
        self, session_id: str, message: JsonObject, ordinal: int
    ) -> Iterator[Item]:
        sender = as_text(message.get("sender"))
        role = _ROLES.get(sender or "")
        if role is None:
            yield from self._unknown(sender)
            return
        sent = self.origin.moment(message.get("created_at"))
        blocks = _with_files(_blocks(message), _file_texts(message))
        uuid = as_text(message.get("uuid")) or made_id(
            session_id, role, compact_json(blocks), sent, ordinal
        )
        for index, block in enumerate(blocks):
            kind = as_text(block.get("type"))
            if kind in _NOT_SAID:
                continue
            said = _said(block, kind, role)
            if said is None:
                yield from self._unknown(kind)
            elif said[1]:
                # The first block keeps the message's own id, to be looked up by it.
                native_id = uuid if index == 0 else f"{uuid}/{index}"
                yield NewMessage(session_id, native_id, *said, sent)

    def _unknown(self, kind: str | None) -> Iterator[Problem]:
        if str(kind) not in self.reported:
            self.reported.add(str(kind))
            yield unknown_record(kind, None)


def _said(block: JsonObject, kind: str | None, role: Role) -> _Said | None:
    match kind:
        case "text":
            return role, as_text(block.get("text")) or "", None, None
        case "tool_use":
            text = compact_json(block.get("input"))
            return Role.TOOL_CALL, text, *_tool(block, "id")
        case "tool_result":
            text = plain_text(block.get("content"))
            return Role.TOOL_RESULT, text, *_tool(block, "tool_use_id")
        case "image" | "document":
            return role, f"[{kind}]", None, None
        case _:
            text = as_text(block.get("text")) or ""
            return (role, text, None, None) if text else None


def _tool(block: JsonObject, id_field: str) -> tuple[str | None, str | None]:
    return as_text(block.get("name")), as_text(block.get(id_field))


def _blocks(message: JsonObject) -> list[JsonObject]:
    """The content of a message; its plain text where the content says nothing."""
    blocks = [as_object(block) for block in as_list(message.get("content"))]
    if all(block.get("type") == "text" and not block.get("text") for block in blocks):
        text = as_text(message.get("text"))
        return [{"type": "text", "text": text}] if text else []
    return blocks


def _with_files(blocks: list[JsonObject], files: list[str]) -> list[JsonObject]:
    """The blocks, with the text of files after the words they came with."""
    if not files:
        return blocks
    place = next(
        (at for at, block in enumerate(blocks) if as_text(block.get("text"))), None
    )
    if place is None:
        return [*blocks, {"type": "text", "text": "\n\n".join(files)}]
    text = "\n\n".join([blocks[place]["text"], *files])
    return [*blocks[:place], {**blocks[place], "text": text}, *blocks[place + 1 :]]


def _file_texts(message: JsonObject) -> list[str]:
    """A mark for each file that came with the message, and its text if there is any.

    A long text that was pasted is an attachment without a name.
    """
    texts: list[str] = []
    names: set[str | None] = set()
    for attachment in map(as_object, as_list(message.get("attachments"))):
        name = as_text(attachment.get("file_name"))
        names.add(name)
        mark = f"[file: {name}]" if name else "[pasted text]"
        extracted = as_text(attachment.get("extracted_content"))
        texts.append(f"{mark}\n{extracted}" if extracted else mark)
    for file in map(as_object, as_list(message.get("files"))):
        name = as_text(file.get("file_name"))
        if name not in names:
            names.add(name)
            texts.append(f"[file: {name}]" if name else "[file]")
    return texts
