"""The content of a message for any API: its words, and marks for the rest.

Content is text, a list of blocks, or any JSON value that a loop put there. Blocks are
read by the keys that contain words, so that block types added later lose no text; an
image, a sound or a file becomes a mark such as ``[image]``, and is never read.
"""

from collections.abc import Iterable, Iterator

from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.structs import FrozenStruct

# Blocks with words, by type, and the key of the words. The types are those of the
# packages anthropic 2.8, openai 3.49 and ollama 0.6 (read 2026-11), of servers that
# speak OpenAI's protocol, and of the results of MCP tools.
_TEXT_BLOCKS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "logs": "logs",
    "search_result": "content",
    "tool_reference": "tool_name",
    "browser_state": "tabs",
    "resource": "resource",
    "code_execution_result": "stdout",
    "bash_code_execution_result": "stdout",
}
# Blocks without words, their marks, and the keys that may say where the media is.
_MEDIA_BLOCKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "image": ("image", ("source", "data")),
    "image_url": ("image", ("image_url",)),
    "input_image": ("image", ("image_url", "file_id")),
    "computer_screenshot": ("image", ("image_url", "file_id")),
    "audio": ("audio", ("data",)),
    "audio_url": ("audio", ("audio_url",)),
    "input_audio": ("audio", ("input_audio",)),
    "video": ("video", ("source",)),
    "video_url": ("video", ("video_url",)),
    "document": ("document", ("source",)),
    "file": ("file", ("file",)),
    "input_file": ("file", ("file_id", "file_data", "file_url")),
    "container_upload": ("file", ("file_id",)),
    "code_execution_output": ("file", ("file_id",)),
    "bash_code_execution_output": ("file", ("file_id",)),
}
# The output of a shell has no type.
_SHELL_KEYS = {"stdout", "stderr", "outcome"}
# The keys in which blocks have words, in the order in which they are read.
_WORD_KEYS = (
    "title",
    "source",
    "url",
    "uri",
    "tool_name",
    "text",
    "refusal",
    "thinking",
    "reasoning",
    "content",
    "summary",
    "resource",
    "stdout",
    "stderr",
    "logs",
    "lines",
    "output",
    "tabs",
    "state_changes",
    "tool_references",
    "error",
    "error_code",
    "error_message",
    "message",
)
# The keys that can contain a block's one replaceable text.
_TEXT_KEYS = ("text", "logs", "stdout")
# Neither words nor media: these leave no mark.
_SILENT = {"thinking", "redacted_thinking", "reasoning", "compaction", "fallback"}


class WordsOrMark(FrozenStruct):
    """Some text in content, or the mark of something in it that has no words."""

    text: str
    is_mark: bool = False


# -- reading --------------------------------------------------------------------------


def block_type(value: object) -> str:
    """The type of a block; empty for anything else."""
    return as_text(as_object(value).get("type")) or ""


def block_types(content: object) -> set[str]:
    """The types of all blocks in content."""
    return {block_type(item) for item in as_list(content)} - {""}


def is_block(value: object) -> bool:
    """Whether a value is a known block, not just JSON that has a type."""
    if not isinstance(value, dict):
        return False
    kind = block_type(value)
    _, places = _MEDIA_BLOCKS.get(kind, ("", ()))
    return (
        _TEXT_BLOCKS.get(kind) in value
        or any(key in value for key in places)
        or value.keys() >= _SHELL_KEYS
    )


def iter_words(content: object) -> Iterator[WordsOrMark]:
    """The words of content whose blocks an API defines, in order; never empty ones."""
    if isinstance(content, list):
        for item in content:
            yield from iter_words(item)
    elif block_type(content) or is_block(content):
        yield from _iter_block(as_object(content))
    else:
        yield from _iter_json(content)


def iter_value(value: object) -> Iterator[WordsOrMark]:
    """The words of what a tool returned: from its blocks, or else from its JSON."""
    items = value if isinstance(value, list) else [value]
    if any(map(is_block, items)):
        yield from iter_words(value)
    elif value != []:
        yield from _iter_json(value)


def _iter_json(value: object) -> Iterator[WordsOrMark]:
    if value is not None and value != "":
        yield WordsOrMark(compact_json(value))


def _iter_block(block: JsonObject) -> Iterator[WordsOrMark]:
    kind = block_type(block)
    if kind in _MEDIA_BLOCKS:
        mark, _ = _MEDIA_BLOCKS[kind]
        yield from list(_iter_source(block)) or [_mark(mark, block)]
    elif kind in _TEXT_BLOCKS or kind in _SILENT or block.keys() & set(_WORD_KEYS):
        yield from _iter_keys(block)
    else:
        yield _mark(kind, block)


def _iter_keys(block: JsonObject) -> Iterator[WordsOrMark]:
    for key in _WORD_KEYS:
        value = block.get(key)
        if key != "source" or isinstance(value, str):
            yield from iter_words(value)


def _iter_source(block: JsonObject) -> Iterator[WordsOrMark]:
    """The words of a document that is text, with its title."""
    source = as_object(block.get("source"))
    key = "data" if source.get("type") == "text" else "content"
    words = list(iter_words(source.get(key)))
    if words:
        yield from iter_words([block.get("title"), block.get("context")])
        yield from words


def _mark(kind: str, block: JsonObject) -> WordsOrMark:
    named = (
        block.get("title"),
        block.get("context"),
        block.get("filename"),
        as_object(block.get("file")).get("filename"),
    )
    name = ", ".join(filter(None, map(as_text, named)))
    return WordsOrMark(f"[{kind}: {name}]" if name else f"[{kind}]", is_mark=True)


# -- as one text ----------------------------------------------------------------------


def join_in_order(words: Iterable[WordsOrMark]) -> tuple[str, int]:
    """The words as one text with the marks where they were, and how many marks."""
    read = list(words)
    text = "\n".join(each.text for each in read)
    return text, sum(each.is_mark for each in read)


def join_marks_last(words: Iterable[WordsOrMark]) -> tuple[str, int]:
    """The words as one text that ends with the marks, and how many marks.

    So a text that replaces another one can be distinguished from the media beside it.
    """
    return join_in_order(sorted(words, key=lambda each: each.is_mark))


# -- another text in place ------------------------------------------------------------


def write_text(content: object, text: str, *, text_type: str) -> object:
    """The same content with a different text, given as ``join_marks_last`` returns it.

    Everything that is a mark stays where it is. The first block with text takes the new
    one, and the others are removed. ``text_type`` is the type of a new block, if there
    was none with text.
    """
    if not any(map(is_block, content if isinstance(content, list) else [content])):
        return text
    if isinstance(content, dict) and _has_text(content):
        return _with_text(content, _without(text, _marks(content)), text_type)
    blocks = content if isinstance(content, list) else [content]
    kept = [block for block in blocks if _is_mark(block)]
    texts = [place for place, block in enumerate(blocks) if not _is_mark(block)]
    first = texts[0] if texts else 0
    old = as_object(blocks[first]) if texts else {}
    rest = _without(text, _marks(kept))
    written = [_with_text(old, rest, text_type)] if rest or not kept else []
    return kept[:first] + written + kept[first:]


def _marks(content: object) -> list[str]:
    return [each.text for each in iter_words(content) if each.is_mark]


def _is_mark(block: object) -> bool:
    """Whether a block contains only media."""
    words = list(iter_words(block))
    return bool(words) and all(each.is_mark for each in words)


def _without(text: str, marks: list[str]) -> str:
    """The text without the marks at its end: the media that they stand for are kept."""
    end = "\n".join(marks)
    return "" if text == end else text.removesuffix("\n" + end) if end else text


def _has_text(block: JsonObject) -> bool:
    return any(key in block for key in _TEXT_KEYS)


def _with_text(block: JsonObject, text: str, text_type: str) -> JsonObject:
    for key in _TEXT_KEYS:
        if key in block:
            without_errors = {"stderr": ""} if "stderr" in block else {}
            return {**block, key: text, **without_errors}
    return {"type": text_type, "text": text}
