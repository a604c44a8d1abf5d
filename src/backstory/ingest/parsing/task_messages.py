"""The messages that Cline and Roo Code show for a task, one JSON list per task.

Both rewrite the list whenever it changes, beside the messages that they send to the
model. What they show is the better record: it has the person's own words without the
context that is added to them, a time for each message, and it stays complete when the
context is condensed. It does not have the contents of files that the model read.
"""

import re
from collections.abc import Iterator
from typing import IO, NamedTuple

from backstory.ingest.importers.base import Memo, Origin, make_unique, unknown_record
from backstory.ingest.parsing.json_documents import parse_json
from backstory.ingest.parsing.json_lists import ListItem, iter_items
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.moments import Moment
from backstory.values.structs import Struct, field

# Bookkeeping, thinking, and what the program tells the person about itself.
_NOT_SAID = frozenset(
    {
        "api_req_deleted",
        "api_req_finished",
        "api_req_rate_limit_wait",
        "api_req_rate_limited",
        "api_req_retried",
        "api_req_retry_delayed",
        "auto_approval_max_req_reached",
        "browser_session_status",
        "checkpoint_created",
        "checkpoint_saved",
        "conditional_rules_applied",
        "deleted_api_reqs",
        "error_retry",
        "generate_explanation",
        "hook_output_stream",
        "hook_status",
        "info",
        "load_mcp_documentation",
        "mcp_notification",
        "mcp_server_request_started",
        "reasoning",
        "report_bug",
        "resume_completed_task",
        "resume_task",
        "shell_integration_warning",
        "shell_integration_warning_with_suggestion",
        "sliding_window_truncation",
        "subagent_usage",
        "task_progress",
        "too_many_tools_warning",
        "user_edit_todos",
    }
)
_ERRORS = frozenset(
    {
        "api_req_failed",
        "clineignore_error",
        "command_permission_denied",
        "condense_context_error",
        "diff_error",
        "error",
        "mistake_limit_reached",
        "rooignore_error",
    }
)
# For these tools, "content" is what they found; for others, it is their input.
_FINDING = frozenset(
    {
        "codebaseSearch",
        "listCodeDefinitionNames",
        "listFilesRecursive",
        "listFilesTopLevel",
        "searchFiles",
    }
)
# Marks that the program itself appends to a text.
_HAS_CHANGES = "HAS_CHANGES"
_NEEDS_APPROVAL = "REQ_APP"
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \(([^()\n]+)\) Files")


class _Said(NamedTuple):
    """What a message says. A result answers the last call before it."""

    role: Role
    text: str
    tool_name: str | None = None


def is_task_list(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a list of such messages."""
    first = head[:4000].lstrip().replace(b" ", b"").replace(b"\n", b"")
    return first.startswith(b"[{") and b'"ts":' in first and b'"type":"say"' in first


def begins_with_task(head: bytes) -> bool:
    """Whether the first message is called the task: Cline does that, Roo Code does not.

    What the person wrote may contain anything, but its quotes are escaped.
    """
    first = head[:4000].replace(b" ", b"").replace(b"\n", b"")
    kind = first.partition(b'"say":"')[2].partition(b'"')[0]
    return kind == b"task"


def parse_task(
    file: IO[bytes], origin: Origin, *, session_id: str, most: int | None = None
) -> Iterator[Item]:
    """What the list in ``file`` says; ``most`` is how many of its messages to read.

    ``origin.beside`` may hold the ``project`` and the ``parent`` of the task.
    """
    task = _Task(session_id, origin)
    for ordinal, item in enumerate(iter_items(file, noun="message")):
        if most is not None and ordinal >= most:
            break
        if isinstance(item, Problem):
            yield item
        else:
            yield from task.take(item)
    yield from task.end_output()


class _Task(Struct):
    """One pass over the messages of a task."""

    session_id: str
    origin: Origin
    is_begun: bool = False
    has_folder: bool = False
    # The id of the last call, and the name of its tool.
    call: tuple[str | None, str | None] = (None, None)
    # The output of a command comes in pieces; its first one has the id and the time.
    output: list[str] = field(default_factory=list)
    output_id: str = ""
    output_sent: Moment | None = None
    instants: Memo = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    def take(self, item: ListItem) -> Iterator[Item]:
        fields = item.fields
        sent = self.origin.moment(fields.get("ts"))
        kind = as_text(fields.get("say")) or as_text(fields.get("ask"))
        if sent is None or kind is None:
            yield Problem(f"{item.name} has no time or no kind")
            return
        yield from self._facts(fields, sent)
        native_id = make_unique(compact_json(fields["ts"]), sent, self.instants)
        if kind == "command_output":
            self._take_output(fields, native_id, sent)
            return
        yield from self.end_output()
        if fields.get("partial") is True and kind != "text":
            # A call that is still being written, or was never completed.
            return
        is_task = not self.is_begun and kind in ("task", "text")
        self.is_begun = True
        said = [_Said(Role.USER, _words(fields))] if is_task else _read(kind, fields)
        if said is None:
            if kind not in self.reported:
                self.reported.add(kind)
                yield unknown_record(kind, None)
            return
        for index, each in enumerate(said):
            own_id = f"{native_id}/{index}" if index else native_id
            yield self._message(each, own_id, sent)

    def end_output(self) -> Iterator[Item]:
        """The output of a command, as one result, once all pieces of it are here."""
        if self.output:
            said = _Said(Role.TOOL_RESULT, "\n".join(self.output))
            self.output = []
            yield self._message(said, self.output_id, self.output_sent)

    def _take_output(self, fields: JsonObject, native_id: str, sent: Moment) -> None:
        text = as_text(fields.get("text"))
        if text is not None:
            if not self.output:
                self.output_id, self.output_sent = native_id, sent
            self.output.append(text)

    def _facts(self, fields: JsonObject, sent: Moment) -> Iterator[Item]:
        beside = self.origin.beside
        if not self.is_begun:
            self.has_folder = "project" in beside
            yield SessionFacts(
                self.session_id,
                project=beside.get("project"),
                parent_id=beside.get("parent"),
                started=sent,
            )
        if not self.has_folder and fields.get("say") == "api_req_started":
            request = as_text(_parsed(fields).get("request"))
            found = _FOLDER.search(request or "")
            if found is not None:
                self.has_folder = True
                yield SessionFacts(self.session_id, project=found[1])

    def _message(self, said: _Said, native_id: str, sent: Moment | None) -> NewMessage:
        call_id, tool_name = None, said.tool_name
        if said.role is Role.TOOL_CALL:
            call_id = native_id
            self.call = (call_id, tool_name)
        elif said.role is Role.TOOL_RESULT:
            call_id, tool_name = self.call
        return NewMessage(
            self.session_id, native_id, said.role, said.text, tool_name, call_id, sent
        )


# -- what a message says --------------------------------------------------------------


def _read(kind: str, fields: JsonObject) -> list[_Said] | None:
    """What a message of that kind says; None if the kind is unknown."""
    text = as_text(fields.get("text")) or ""
    if kind in _NOT_SAID:
        return []
    if kind in _ERRORS:
        return _said(Role.ERROR, text)
    match kind:
        case "user_feedback" | "task":
            return _said(Role.USER, _words(fields))
        case "user_feedback_diff":
            # The program reports how the person changed a proposed edit.
            return _said(Role.SYSTEM, text)
        case "text" | "image":
            return _said(Role.ASSISTANT, _words(fields))
        case "completion_result":
            return _said(Role.ASSISTANT, text.removesuffix(_HAS_CHANGES))
        case "followup" | "plan_mode_respond" | "act_mode_respond":
            given = _parsed(fields)
            words = as_text(given.get("question")) or as_text(given.get("response"))
            return _said(Role.ASSISTANT, words or text)
        case "api_req_started":
            failure = as_text(_parsed(fields).get("streamingFailedMessage"))
            return _said(Role.ERROR, failure or "")
        case "condense" | "summarize_task":
            return _said(Role.SUMMARY, text)
        case "condense_context":
            condensed = as_object(fields.get("contextCondense"))
            return _said(Role.SUMMARY, as_text(condensed.get("summary")) or "")
        case _:
            return _read_tool(kind, fields, text)


def _read_tool(kind: str, fields: JsonObject, text: str) -> list[_Said] | None:
    match kind:
        case "command":
            command = text.removesuffix(_NEEDS_APPROVAL)
            return [_Said(Role.TOOL_CALL, command, "execute_command")]
        case "tool":
            return _tool(_parsed(fields))
        case "use_mcp_server":
            return [_mcp_call(_parsed(fields))]
        case "browser_action_launch" | "browser_action" | "new_task" | "use_subagents":
            return [_Said(Role.TOOL_CALL, text, kind)]
        case "mcp_server_response" | "codebase_search_result" | "subtask_result":
            return _said(Role.TOOL_RESULT, text)
        case "browser_action_result":
            return _said(Role.TOOL_RESULT, _page(_parsed(fields)))
        case "subagent":
            items = as_list(_parsed(fields).get("items"))
            results = (as_text(as_object(each).get("result")) for each in items)
            return _said(Role.TOOL_RESULT, "\n\n".join(filter(None, results)))
        case _:
            return None


def _said(role: Role, text: str) -> list[_Said]:
    return [_Said(role, text)] if text.strip() else []


def _parsed(fields: JsonObject) -> JsonObject:
    """The object that is in the text of a message; empty if there is none."""
    text = as_text(fields.get("text")) or ""
    if not text.startswith("{"):
        return {}
    try:
        return as_object(parse_json(text))
    except ValueError:
        return {}


def _words(fields: JsonObject) -> str:
    """The text of a message, and marks for what was attached to it."""
    marks = ["[image]" for _ in as_list(fields.get("images"))]
    marks += [f"[file: {name}]" for name in as_list(fields.get("files"))]
    return "\n".join(filter(None, [as_text(fields.get("text")), *marks]))


def _tool(given: JsonObject) -> list[_Said]:
    """The call of a tool that works on files, and what it found."""
    name = as_text(given.get("tool"))
    content = as_text(given.get("content"))
    if name == "summarizeTask":
        return _said(Role.SUMMARY, content or "")
    left_out = {"tool", "content"} if name in _FINDING else {"tool"}
    rest = {key: value for key, value in given.items() if key not in left_out}
    call = _Said(Role.TOOL_CALL, compact_json(rest), name)
    if name not in _FINDING or content is None:
        return [call]
    return [call, _Said(Role.TOOL_RESULT, content)]


def _mcp_call(given: JsonObject) -> _Said:
    server = as_text(given.get("serverName")) or "mcp"
    name = as_text(given.get("toolName")) or as_text(given.get("uri")) or ""
    text = compact_json(given.get("arguments") or {})
    return _Said(Role.TOOL_CALL, text, f"{server}/{name}")


def _page(result: JsonObject) -> str:
    """What a browser showed, with a mark for the picture of it."""
    lines = [as_text(result.get("currentUrl")), as_text(result.get("logs"))]
    lines += ["[image]"] if result.get("screenshot") else []
    return "\n".join(filter(None, lines))
