"""ChatGPT: the export of an account, conversations as trees of messages.

A tree grows a branch whenever a message is edited or an answer regenerated. The branch
that ends in ``current_node``, the one that ChatGPT shows, is the conversation; what was
said on abandoned branches is left out.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Origin,
    ReadBeside,
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
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id
from backstory.values.structs import Struct, field

_MARKS = (b'"mapping"', b'"message"', b'"parent"')
# The model's thinking, the person's custom instructions, saved memories, bookkeeping.
_NOT_SAID = frozenset(
    {
        "computer_initialize_state",
        "model_editable_context",
        "reasoning_recap",
        "thoughts",
        "user_editable_context",
    }
)
_PART_MARKS = {
    "audio_asset_pointer": "[audio]",
    "image_asset_pointer": "[image]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
}
_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL_RESULT,
    "system": Role.SYSTEM,
}


class ChatGpt:
    """``conversations.json``, or ``conversations-000.json`` and so on since 2026.

    The shape was learnt in November 2026 from public descriptions of exports made
    from 2023 to 2026: the types of pionxzh/chatgpt-exporter, the tests of several
    converters, and daugaard47/ChatGPT_Conversations_To_Markdown#23 for split files.
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
        session_id = _session_id(fields)
        mapping = fields.get("mapping")
        if session_id is None or not isinstance(mapping, dict):
            yield Problem(f"{name} has no id or no messages")
            return
        yield SessionFacts(
            session_id,
            title=as_text(fields.get("title")),
            started=self.origin.moment(fields.get("create_time")),
            last_active=self.origin.moment(fields.get("update_time")),
        )
        branch, missing = _find_branch(mapping, fields.get("current_node"))
        if missing is not None:
            yield Problem(
                f"{name} has no message {missing!r:.80}; "
                "what was said before it is missing too"
            )
        call_id: str | None = None
        for key in branch:
            message = as_object(as_object(mapping[key]).get("message"))
            role, text = _role(message), _text(message)
            if text == "":
                continue
            if role is None or text is None:
                yield from self._unknown(message, role)
                continue
            tool_name = None
            if role is Role.TOOL_CALL:
                # A call has no id of its own; the messages after it are its results.
                tool_name, call_id = as_text(message.get("recipient")), key
            elif role in (Role.TOOL_RESULT, Role.ERROR):
                tool_name = as_text(as_object(message.get("author")).get("name"))
            else:
                call_id = None
            sent = self.origin.moment(message.get("create_time"))
            yield NewMessage(session_id, key, role, text, tool_name, call_id, sent)

    def _unknown(self, message: JsonObject, role: Role | None) -> Iterator[Problem]:
        kind = _author_role(message) if role is None else _content_type(message)
        if str(kind) not in self.reported:
            self.reported.add(str(kind))
            yield unknown_record(kind, None)


def _session_id(fields: JsonObject) -> str | None:
    given = as_text(fields.get("conversation_id")) or as_text(fields.get("id"))
    if given is None and isinstance(fields.get("create_time"), float):
        return content_id("chatgpt", compact_json(fields["create_time"]))
    return given


# -- the tree -------------------------------------------------------------------------


def _find_branch(
    mapping: JsonObject, current_node: object
) -> tuple[list[str], str | None]:
    """The nodes from the root to the current one, and the parent that is missing."""
    key = as_text(current_node)
    if key is None or key not in mapping:
        key = _newest_leaf(mapping)
    branch: list[str] = []
    seen: set[str] = set()
    while key is not None and key not in seen:
        if key not in mapping:
            return branch[::-1], key
        seen.add(key)
        branch.append(key)
        key = as_text(as_object(mapping[key]).get("parent"))
    return branch[::-1], None


def _newest_leaf(mapping: JsonObject) -> str | None:
    """The newest message that nothing answers; the last one, if there are several."""
    parents = {as_text(as_object(node).get("parent")) for node in mapping.values()}
    newest, newest_time = None, float("-inf")
    for key, node in mapping.items():
        message = as_object(as_object(node).get("message"))
        time = message.get("create_time")
        time = time if isinstance(time, int | float) else float("-inf")
        if as_text(key) and message and key not in parents and time >= newest_time:
            newest, newest_time = key, time
    return newest


# -- a message ------------------------------------------------------------------------


def _author_role(message: JsonObject) -> str | None:
    return as_text(as_object(message.get("author")).get("role"))


def _content_type(message: JsonObject) -> str | None:
    return as_text(as_object(message.get("content")).get("content_type"))


def _role(message: JsonObject) -> Role | None:
    role = _ROLES.get(_author_role(message) or "")
    if _content_type(message) == "system_error":
        return Role.ERROR
    if role is Role.ASSISTANT and message.get("recipient") not in (None, "", "all"):
        return Role.TOOL_CALL
    return role


def _text(message: JsonObject) -> str | None:
    """The text of a message; empty if it has none, None if its kind is unknown."""
    metadata = as_object(message.get("metadata"))
    if not message or metadata.get("is_visually_hidden_from_conversation"):
        return ""
    text = _content_text(as_object(message.get("content")))
    if text is None:
        return None
    return "\n".join(filter(None, [text, *_attachment_marks(metadata)]))


def _content_text(content: JsonObject) -> str | None:
    kind = as_text(content.get("content_type"))
    if kind in _NOT_SAID:
        return ""
    match kind:
        case "text" | "multimodal_text" | "code" | "execution_output":
            return _words(content)
        case "system_error":
            return _words(content) or _lines(content, "name")
        case "tether_quote" | "sonic_webpage":
            return _lines(content, "title", "url", "text")
        case "tether_browsing_display":
            return _lines(content, "result") or _lines(content, "summary")
        case "citable_code_output":
            return _lines(content, "output_str")
        case "computer_output":
            return "[screenshot]"
        case _:
            return _words(content) or None


def _words(content: JsonObject) -> str:
    return as_text(content.get("text")) or "\n".join(
        filter(None, map(_part_text, as_list(content.get("parts"))))
    )


def _lines(content: JsonObject, *names: str) -> str:
    return "\n".join(filter(None, (as_text(content.get(name)) for name in names)))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    fields = as_object(part)
    text = as_text(fields.get("text"))
    kind = as_text(fields.get("content_type"))
    if text is not None or kind is None:
        return text or ""
    return _PART_MARKS.get(kind, f"[{kind}]")


def _attachment_marks(metadata: JsonObject) -> Iterator[str]:
    """A mark for each file that came with the message; images are among its parts."""
    for attachment in as_list(metadata.get("attachments")):
        fields = as_object(attachment)
        name = as_text(fields.get("name"))
        media_type = fields.get("mime_type") or fields.get("mimeType")
        if name and not str(media_type).startswith("image/"):
            yield f"[file: {name}]"
