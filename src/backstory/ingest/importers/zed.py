"""Zed: all agent threads in one SQLite database, each a compressed JSON document.

Threads of other agents that run inside Zed are kept by those agents.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import apsw

from backstory.ingest.importers.base import (
    Conversation,
    Origin,
    made_id,
    unknown_record,
)
from backstory.ingest.parsing.databases import list_columns
from backstory.ingest.parsing.json_documents import read_object
from backstory.ingest.parsing.rows import ForeignTable, LongText, decode, lenient
from backstory.system.zstd import Unpacked, ZstdError
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

_COLUMNS = (
    "summary",
    "updated_at",
    "created_at",
    "data_type",
    "data",
    "parent_id",
    "folder_paths",
    "folder_paths_order",
)
# What a thread is called until it has a title.
_NO_TITLE = frozenset({"New Agent Thread", "New Thread"})


class Zed:
    """The database of Zed's own agent.

    As https://github.com/zed-industries/zed writes it in ``crates/agent/src/db.rs``,
    with messages as in ``thread.rs`` and, before version 0.3.0 of a thread, as in
    ``legacy_thread.rs`` (read 2026-11). Not seen with the program itself.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"threads"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        is_database = head.startswith(b"SQLite format 3\0")
        return path.name == "threads.db" and is_database

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        known = list_columns(db, "threads")
        about = ("summary", "parent_id", "folder_paths")
        chosen = [lenient(f"threads.{each}") for each in about if each in known]
        rows = db.execute(
            f"""
            SELECT {lenient("threads.id")}, {", ".join(chosen)},
                   {lenient("threads.updated_at")}, octet_length(threads.data)
              FROM threads ORDER BY threads.updated_at, threads.id
            """
        )
        for found, *state in rows:
            session_id = as_text(decode(found))
            if session_id is not None:
                version = content_id(*(str(decode(each)) for each in state))
                yield Conversation(session_id, version)

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        threads = ForeignTable(db, "threads", _COLUMNS, blobs=("data",))
        for row in threads.rows("WHERE id = ?", (session_id,)):
            thread, problem = _unpack(row["data"], row["data_type"])
            if problem is not None:
                yield Problem(f"the thread {session_id}: {problem.reason}")
            if not thread:
                continue
            title = as_text(row["summary"])
            yield SessionFacts(
                session_id,
                title=None if title in _NO_TITLE else title,
                project=_find_project(row, thread),
                git_branch=_find_branch(thread),
                parent_id=as_text(row["parent_id"]),
                started=origin.moment(row["created_at"])
                or origin.moment(_snapshot(thread).get("timestamp")),
                last_active=origin.moment(row["updated_at"]),
            )
            reading = _Reading(session_id)
            for message in as_list(thread.get("messages")):
                yield from reading.take(message)


# -- a thread -------------------------------------------------------------------------


# Any: whatever the column holds.
def _unpack(data: Any, kind: object) -> tuple[JsonObject, Problem | None]:
    if isinstance(data, LongText):
        return {}, Problem(f"{data.size:,} bytes, too long to read")
    content = data.encode() if isinstance(data, str) else data
    if not isinstance(content, bytes):
        return {}, Problem("it has no content")
    if kind == "json":
        return read_object(io.BytesIO(content))
    if kind != "zstd":
        return {}, Problem(f"unknown data type {kind!r:.80}")
    stream = io.BufferedReader(Unpacked(io.BytesIO(content)))
    try:
        # A thread that is too long is not unpacked to its end.
        thread, problem = read_object(stream)
    except ZstdError as exc:
        return {}, Problem(f"it cannot be unpacked ({exc})")
    if not thread and problem is None:
        problem = Problem("nothing in it can be read; it may be incomplete")
    return thread, problem


def _snapshot(thread: JsonObject) -> JsonObject:
    return as_object(thread.get("initial_project_snapshot"))


def _find_worktree(thread: JsonObject) -> JsonObject:
    found = as_list(_snapshot(thread).get("worktree_snapshots"))
    return as_object(found[0]) if found else {}


def _find_project(row: dict[str, Any], thread: JsonObject) -> str | None:
    """The first of the folders that were open, in the order the person gave them."""
    folders = (as_text(row["folder_paths"]) or "").split("\n")
    order = (as_text(row["folder_paths_order"]) or "").split(",")
    if len(order) == len(folders) and "0" in order:
        return folders[order.index("0")] or None
    return folders[0] or as_text(_find_worktree(thread).get("worktree_path"))


def _find_branch(thread: JsonObject) -> str | None:
    state = as_object(_find_worktree(thread).get("git_state"))
    return as_text(state.get("current_branch"))


# -- messages -------------------------------------------------------------------------


class _Reading(Struct):
    """One pass over the messages of a thread.

    Zed gives the person's messages new ids when it brings an old thread up to date. So
    these are identified by their text and a count, and answers by their place after
    them.
    """

    session_id: str
    prompts: int = 0
    prompt_id: str = "start"
    # Since the last prompt. A call may be added while another has its result already.
    texts: int = 0
    calls: int = 0
    # By the id of a call: our id for it, and the name of its tool.
    known: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def take(self, message: object) -> Iterator[Item]:
        match message:
            case "Resume":
                return
            case {"User": dict(said)}:
                yield from self._prompt(_prompt_text(said.get("content")))
            case {"Agent": dict(said)}:
                yield from self._answer(said)
            case dict() if "role" in message:
                yield from self._older(message)
            case _:
                kind = next(iter(as_object(message)), None)
                yield unknown_record(kind, None)

    def _prompt(self, text: str) -> Iterator[Item]:
        if not text.strip():
            return
        self.prompts += 1
        self.texts = self.calls = 0
        self.prompt_id = made_id(self.session_id, Role.USER, text, None, self.prompts)
        yield NewMessage(self.session_id, self.prompt_id, Role.USER, text)

    def _text(self, text: str) -> Iterator[Item]:
        if text.strip():
            self.texts += 1
            native_id = f"{self.prompt_id}/text{self.texts}"
            yield NewMessage(self.session_id, native_id, Role.ASSISTANT, text)

    def _call(self, call: JsonObject) -> NewMessage:
        self.calls += 1
        native_id = f"{self.prompt_id}/call{self.calls}"
        call_id, name = as_text(call.get("id")), as_text(call.get("name"))
        self.known[call_id or ""] = native_id, name
        text = compact_json(call.get("input") or {})
        return NewMessage(
            self.session_id, native_id, Role.TOOL_CALL, text, name, call_id
        )

    def _result(self, result: JsonObject) -> NewMessage:
        call_id = as_text(result.get("tool_use_id"))
        unknown = f"{self.prompt_id}/{call_id}", as_text(result.get("tool_name"))
        native_id, name = self.known.get(call_id or "", unknown)
        text = _result_text(result.get("content"))
        return NewMessage(
            self.session_id,
            f"{native_id}/result",
            Role.TOOL_RESULT,
            text,
            name,
            call_id,
        )

    def _answer(self, said: JsonObject) -> Iterator[Item]:
        for block in as_list(said.get("content")):
            match block:
                case {"Text": str(text)}:
                    yield from self._text(text)
                case {"ToolUse": dict(call)}:
                    yield self._call(call)
                case {"Thinking": _} | {"RedactedThinking": _}:
                    continue
                case _:
                    kind = next(iter(as_object(block)), None)
                    yield unknown_record(kind, None)
        for result in as_object(said.get("tool_results")).values():
            yield self._result(as_object(result))

    def _older(self, said: JsonObject) -> Iterator[Item]:
        """A message of a thread from before version 0.3.0."""
        role = as_text(said.get("role"))
        if said.get("is_hidden") is True or role == "system":
            return
        if role not in ("user", "assistant"):
            yield unknown_record(role, None)
            return
        texts = [
            as_text(segment.get("text")) or ""
            for segment in map(as_object, as_list(said.get("segments")))
            if segment.get("type") == "text"
        ] or [as_text(said.get("text")) or ""]
        results = [as_object(each) for each in as_list(said.get("tool_results"))]
        if role == "assistant":
            for text in texts:
                yield from self._text(text)
            for call in as_list(said.get("tool_uses")):
                yield self._call(as_object(call))
        elif not results:
            # With results, it is what the program answered to the calls.
            yield from self._prompt("".join(texts))
        for result in results:
            yield self._result(result)


def _prompt_text(content: object) -> str:
    """What the person wrote, with the names of what they mentioned in it."""
    texts: list[str] = []
    for part in as_list(content):
        match part:
            case {"Text": str(text)}:
                texts.append(text)
            case {"Mention": dict(mention)}:
                texts.append(_mention(mention.get("uri")))
            case {"Image": _}:
                texts.append("[image]")
    return "".join(texts)


def _mention(uri: object) -> str:
    kind, place = next(iter(as_object(uri).items()), ("context", {}))
    fields = as_object(place)
    path = as_text(fields.get("abs_path")) or as_text(fields.get("path"))
    name = as_text(fields.get("name")) or (path or kind).rstrip("/").rpartition("/")[2]
    return f"@{name}"


def _result_text(content: object) -> str:
    """What a tool gave back, in any of the forms that Zed itself accepts."""
    if isinstance(content, list):
        return "\n".join(map(_result_text, content))
    match content:
        case str(text) | {"Text": str(text)} | {"text": str(text)}:
            return text
        case {"Image": _} | {"image": _} | {"source": _}:
            return "[image]"
        case _:
            return compact_json(content)
