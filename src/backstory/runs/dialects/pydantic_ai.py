"""Messages of Pydantic AI: requests and responses, made of parts of many kinds."""

from collections.abc import Iterator
from typing import Any

from backstory.runs.dialects.base import Dialect, Part, Piece
from backstory.runs.dialects.content import WordsOrMark, iter_value, join_in_order
from backstory.runs.dialects.pieces import iter_said, make_call, make_result
from backstory.text.json_values import JsonObject, as_list, as_object, as_text
from backstory.values.history import Role

_ROLES = {
    "user-prompt": Role.USER,
    "text": Role.ASSISTANT,
    "file": Role.ASSISTANT,
    "compaction": Role.SUMMARY,
}
_SPEAKERS = {"user": Role.USER, "assistant": Role.ASSISTANT}
# Media among the words of a prompt or a result, by kind.
_MEDIA = {
    "image-url": "image",
    "audio-url": "audio",
    "video-url": "video",
    "document-url": "document",
    "uploaded-file": "file",
}


class PydanticAi(Dialect):
    """Messages as in ``pydantic_ai/messages.py`` of pydantic-ai 2.66 (read 2026-11).

    Its agents only accept the framework's own objects, so results are fixed. Parts that
    the framework itself wrote, such as instructions, are nobody's words.
    """

    name = "pydantic-ai"

    def recognizes(self, message: JsonObject) -> bool:
        return (
            message.get("kind") in ("request", "response")
            and isinstance(message.get("parts"), list)
            and not message.keys() & {"role", "type", "content"}
        )

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        for part in as_list(message.get("parts")):
            yield from _iter_part(as_object(part))


def _iter_part(part: JsonObject) -> Iterator[Piece]:
    kind = as_text(part.get("part_kind")) or ""
    name, call_id = part.get("tool_name"), part.get("tool_call_id")
    content = part.get("content")
    if kind.endswith("tool-call"):
        yield make_call(name, call_id, part.get("args"))
    elif kind.endswith("tool-return") or (kind == "retry-prompt" and name):
        yield make_result(_iter_returned(content), name, call_id)
    elif kind == "speech":
        speaker = as_text(part.get("speaker")) or ""
        said = part.get("transcript")
        yield from iter_said(said, _SPEAKERS.get(speaker, Role.SYSTEM))
    else:
        text, media = join_in_order(_iter_items(content))
        yield Piece(Part(_ROLES.get(kind, Role.SYSTEM), text, media=media))


def _iter_returned(content: object) -> Iterator[WordsOrMark]:
    """What a tool returned: any JSON, or words with media among them."""
    has_media = any(_media(item) for item in _to_items(content))
    return _iter_items(content) if has_media else iter_value(content)


def _iter_items(content: object) -> Iterator[WordsOrMark]:
    for item in _to_items(content):
        media = _media(item)
        if media:
            yield WordsOrMark(f"[{media}]", is_mark=True)
        elif _kind(item) == "text-content":
            yield from iter_value(item.get("content"))
        elif _kind(item) != "cache-point":
            yield from iter_value(item)


# Any: whatever a prompt or a result consists of.
def _to_items(content: object) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _media(item: object) -> str | None:
    """The mark for an item without words, such as an image; None if it has words."""
    kind = _kind(item)
    if kind == "binary":
        media, _, _ = str(as_object(item).get("media_type")).partition("/")
        return media if media in _MEDIA.values() else "file"
    return _MEDIA.get(kind)


def _kind(item: object) -> str:
    return as_text(as_object(item).get("kind")) or ""
