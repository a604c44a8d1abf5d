"""Messages of Gemini CLI and of programs made from it, in all their versions.

A message is an object with a text and the tool calls it led to; its text, and what
tools return, may also be a list of parts as Gemini's API has them.
"""

from collections.abc import Iterator
from typing import IO, NamedTuple

from backstory.ingest.importers.base import Memo, Origin, unknown_record
from backstory.ingest.parsing.json_documents import read_object
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts

_ROLES = {
    "user": Role.USER,
    "gemini": Role.ASSISTANT,
    "qwen": Role.ASSISTANT,
    "info": Role.SYSTEM,
    "warning": Role.SYSTEM,
    "error": Role.ERROR,
}
# What hooks add to a prompt or put after a result; the mark is always closed.
_HOOK_CONTEXT = ("<hook_context>", "</hook_context>")
_SESSION_CONTEXT = ("<session_context>", "</session_context>")
# What the program puts in place of a history that has grown too long.
_COMPRESSED = ("<state_snapshot>", "</state_snapshot>")
# What it puts in place of an old tool result; the result itself was written before.
_MASKED = "<tool_output_masked>"


def is_document(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a session in one document."""
    marks = (b'"sessionId"', b'"projectHash"', b'"messages"')
    return all(mark in head for mark in marks)


def is_by_qwen(head: bytes) -> bool:
    """Whether such a document has an answer of Qwen Code, not of Gemini CLI."""
    return b'"type":"qwen"' in head or b'"type": "qwen"' in head


def parse_document(file: IO[bytes], origin: Origin) -> Iterator[Item]:
    """Parse a session that is one document.

    ``origin.beside`` may hold its ``project``.
    """
    document, problem = read_object(file, with_list="messages")
    if problem is not None:
        yield problem
    if not document:
        return
    if as_text(document.get("sessionId")) is None:
        yield Problem("a document without a session id")
        return
    yield from parse_header(document, None, origin, {})


# -- records ----------------------------------------------------------------------


def parse_header(
    record: JsonObject, line: int | None, origin: Origin, memo: Memo
) -> Iterator[Item]:
    """What a session begins with, again each time it is resumed."""
    session_id = record["sessionId"]
    memo["session"] = session_id
    if memo.get("told") != session_id:
        memo["told"] = session_id
        folder = origin.path.parent.name
        is_subagent = record.get("kind") == "subagent" and folder != "chats"
        folders = as_list(record.get("directories"))
        yield SessionFacts(
            session_id,
            project=origin.beside.get("project")
            or (as_text(folders[0]) if folders else None),
            parent_id=folder if is_subagent else None,
            started=origin.moment(record.get("startTime")),
        )
    yield from parse_changes(record, line, origin, memo)


def parse_changes(
    changes: JsonObject, line: int | None, origin: Origin, memo: Memo
) -> Iterator[Item]:
    """A title and messages, where there are any; the rest is bookkeeping."""
    title = as_text(changes.get("summary"))
    if title is not None:
        yield from _facts(origin, memo)
        yield SessionFacts(memo["told"], title=title)
    for index, message in enumerate(as_list(changes.get("messages"))):
        if as_text(as_object(message).get("id")):
            yield from parse_message(message, line, origin, memo, is_first=index == 0)
        else:
            yield Problem("a message without an id", line)


def _facts(origin: Origin, memo: Memo) -> Iterator[Item]:
    """Name the session before its first message, if no header did."""
    session_id = memo.get("session") or origin.path.stem
    if memo.get("told") != session_id:
        memo["told"] = session_id
        yield SessionFacts(session_id, project=origin.beside.get("project"))


def parse_message(
    record: JsonObject,
    line: int | None,
    origin: Origin,
    memo: Memo,
    *,
    is_first: bool = False,
) -> Iterator[Item]:
    kind = as_text(record.get("type"))
    if kind not in _ROLES:
        yield unknown_record(kind, line)
        return
    yield from _facts(origin, memo)
    # A resumed session repeats its messages with the time it was resumed at; the store
    # keeps the time at which a message was first said.
    is_first = memo.setdefault("first", record["id"]) == record["id"] or is_first
    if is_first:
        record = {**record, "content": _without_session(record.get("content"))}
    for piece in _pieces(record, _ROLES[kind]):
        yield NewMessage(
            memo["told"],
            piece.native_id,
            piece.role,
            piece.text,
            piece.tool_name,
            piece.call_id,
            origin.moment(piece.time),
        )


class _Piece(NamedTuple):
    """One message of ours inside one of Gemini's."""

    native_id: str
    role: Role
    text: str
    time: str | None
    tool_name: str | None = None
    call_id: str | None = None


def _pieces(record: JsonObject, role: Role) -> list[_Piece]:
    """The text of a message, then each tool call and result in it, once."""
    time = as_text(record.get("timestamp"))
    content = record.get("content")
    if role is Role.USER and record.get("displayContent"):
        # What the person typed; ``content`` also has the files that were named in it.
        text = parts_text(record["displayContent"], role)
    else:
        text = parts_text(content, role)
    found: dict[str, _Piece] = {}
    if text:
        is_compressed = text.startswith(_COMPRESSED[0]) and _COMPRESSED[1] in text
        if role is Role.USER and is_compressed:
            role = Role.SUMMARY
        found[record["id"]] = _Piece(record["id"], role, text, time)
    for index, call in enumerate(as_list(record.get("toolCalls"))):
        if isinstance(call, dict):
            _add_call(found, call, f"{record['id']}/{index}", time)
            _add_results(found, call, call.get("result"), time)
    for index, part in enumerate(as_list(content)):
        made_id = f"{record['id']}/part{index}"
        match part:
            case {"functionCall": dict(call)}:
                _add_call(found, call, made_id, time)
            case {"functionResponse": dict(response)}:
                _add_results(found, {"id": made_id, **response}, [part], time)
    return list(found.values())


def _add_call(
    found: dict[str, _Piece], call: JsonObject, made_id: str, time: str | None
) -> None:
    call_id = as_text(call.get("id"))
    native_id = call_id or made_id
    if native_id not in found:
        found[native_id] = _Piece(
            native_id,
            Role.TOOL_CALL,
            compact_json(call.get("args")),
            as_text(call.get("timestamp")) or time,
            as_text(call.get("name")),
            call_id,
        )


def _add_results(
    found: dict[str, _Piece],
    call: JsonObject,
    result: object,
    time: str | None,
) -> None:
    """Add the result of a call, unless only its masked form is left in this record."""
    call_id = as_text(call.get("id"))
    text = result_text(result)
    if text is None or text.startswith(_MASKED):
        text = as_text(call.get("resultDisplay")) or text
    native_id = f"{call_id}/result"
    if call_id is None or text is None or native_id in found:
        return
    if text.startswith(_MASKED):
        return
    found[native_id] = _Piece(
        native_id,
        Role.TOOL_RESULT,
        text,
        as_text(call.get("timestamp")) or time,
        as_text(call.get("name")),
        call_id,
    )


# -- text -------------------------------------------------------------------------


def parts_text(content: object, role: Role) -> str:
    """The text of a message: a string, or parts that are joined without a gap."""
    if isinstance(content, str | dict):
        content = [content]
    texts: list[str] = []
    marks: list[str] = []
    for part in as_list(content):
        match part:
            case {"thought": True}:
                continue
            case str(text) | {"text": str(text)}:
                texts.append(_without_context(text) if role is Role.USER else text)
            case {"inlineData": data} | {"fileData": data}:
                marks.append(_mark(data))
    text = "".join(texts)
    return "\n".join([text, *marks] if text else marks)


def _without_context(text: str) -> str:
    """A part of a prompt without what hooks put into it.

    The blank line that joins a context to the prompt is removed with it.
    """
    opening, closing = _HOOK_CONTEXT
    kept, position = "", 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start)
        if end < 0:
            break
        kept += text[position:start]
        position = end + len(closing)
        if text.startswith("\n\n", position):
            position += 2
        else:
            kept = kept.removesuffix("\n\n")
    return kept + text[position:]


def _without_last_context(text: str) -> str:
    """A tool's result without what a hook put after it."""
    opening, closing = _HOOK_CONTEXT
    if not text.endswith(closing) or opening not in text:
        return text
    return text[: text.rindex(opening)].removesuffix("\n\n")


def _without_session(content: object) -> object:
    """The content of a first message without the description of the machine."""
    if isinstance(content, list):
        return [part for part in content if not _is_session_context(part)]
    return None if _is_session_context(content) else content


def _is_session_context(part: object) -> bool:
    match part:
        case str(text) | {"text": str(text)}:
            opening, closing = _SESSION_CONTEXT
            # The first words are enough to tell; a long context may have been
            # shortened.
            return text.startswith(f"{opening}\nThis is the Gemini CLI.") or (
                text.lstrip().startswith(opening) and text.rstrip().endswith(closing)
            )
        case _:
            return False


def _mark(data: object) -> str:
    kind = (as_text(as_object(data).get("mimeType")) or "file").partition("/")[0]
    return f"[{kind if kind in ('image', 'audio', 'video') else 'file'}]"


def result_text(result: object) -> str | None:
    """What a tool gave back; None if there is nothing."""
    if isinstance(result, str):
        return result
    texts: list[str] = []
    for part in as_list(result):
        match part:
            case {"functionResponse": {"response": response}}:
                texts.append(_response_text(response))
            case {"text": str(text)} | str(text):
                texts.append(text)
            case {"inlineData": data} | {"fileData": data}:
                texts.append(_mark(data))
    return _without_last_context("\n".join(texts)) if texts else None


def _response_text(response: object) -> str:
    match response:
        case {"output": output}:
            return compact_json(output)
        case {"error": error}:
            return compact_json(error)
        case _:
            return compact_json(response)
