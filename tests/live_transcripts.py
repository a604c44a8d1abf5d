"""The transcripts that four programs write as they go, and what is asked of them."""

from pathlib import Path

import orjson
import pytest

from backstory.runs.live import LiveRun
from backstory.text.cut import one_line
from backstory.tools import ToolResult
from tests.builders import (
    SESSION,
    a_line,
    session_file,
)

AT = "2026-11-15T17:52:05.137Z"
PROJECT = "/home/dev/demo"
OTHER = SESSION[:-1] + "2"


# -- the transcripts of four programs ---


def json_line(**fields: object) -> bytes:
    return orjson.dumps(fields) + b"\n"


class Claude:
    """What Claude Code writes (2.1.325)."""

    def file(self, home: Path, session: str) -> Path:
        return session_file(home, session)

    def start(self, session: str) -> bytes:
        self.session = session
        return json_line(type="mode", mode="normal", sessionId=session)

    def prompt(self, text: str, uuid: str) -> bytes:
        injected = {"type": "hook_additional_context", "content": ["MEMCTX-submit"]}
        return a_line(text, uuid=uuid, session=self.session) + json_line(
            type="attachment",
            attachment=injected,
            uuid=f"{uuid}-hook",
            sessionId=self.session,
        )

    def answer(self, text: str, uuid: str) -> bytes:
        return a_line(text, uuid=uuid, role="assistant", session=self.session)

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        block = {"type": "tool_use", "id": call, "name": name, "input": arguments}
        return self._blocks("assistant", block, f"{call}-call")

    def result(self, name: str, call: str, text: str) -> bytes:
        text += "\n\n<system-reminder>\nMEMCTX-reminder\n</system-reminder>\n"
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self._blocks("user", block, f"{call}-result")

    def compaction(self, summary: str) -> bytes:
        return a_line(
            summary, uuid="summary", session=self.session, isCompactSummary=True
        )

    def _blocks(self, role: str, block: object, uuid: str) -> bytes:
        return json_line(
            type=role,
            message={"role": role, "content": [block]},
            uuid=uuid,
            timestamp=AT,
            cwd=PROJECT,
            sessionId=self.session,
        )


class Codex:
    """What Codex writes (0.166.0)."""

    def file(self, home: Path, session: str) -> Path:
        folder = home / ".codex" / "sessions" / "2026" / "11" / "15"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"rollout-2026-11-15T17-52-05-{session}.jsonl"

    def start(self, session: str) -> bytes:
        return self._record("session_meta", id=session, cwd=PROJECT)

    def prompt(self, text: str, uuid: str) -> bytes:
        parts = [
            {"type": "input_text", "text": text},
            {"type": "input_text", "text": "MEMCTX-submit"},
        ]
        kinds = ["user.text", "hooks.additional_context"]
        return self._record(
            "response_item",
            type="message",
            id=uuid,
            role="user",
            content=parts,
            internal_chat_message_metadata_passthrough={"content_item_kinds": kinds},
        )

    def answer(self, text: str, uuid: str) -> bytes:
        part = {"type": "output_text", "text": text}
        return self._record(
            "response_item", type="message", id=uuid, role="assistant", content=[part]
        ) + self._record("event_msg", type="agent_message", message=text)

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        return self._record(
            "response_item",
            type="function_call",
            id=f"fc_{call}",
            name=name,
            arguments=orjson.dumps(arguments).decode(),
            call_id=call,
        )

    def result(self, name: str, call: str, text: str) -> bytes:
        return self._record(
            "response_item", type="function_call_output", call_id=call, output=text
        )

    def compaction(self, summary: str) -> bytes:
        return self._record("compacted", message=summary)

    def _record(self, kind: str, /, **payload: object) -> bytes:
        return json_line(timestamp=AT, ordinal=0, **{"type": kind, "payload": payload})


class Gemini:
    """What Gemini CLI writes (0.61.0): a message again whenever it has changed."""

    def __init__(self) -> None:
        self.calls: dict[str, dict[str, object]] = {}

    def file(self, home: Path, session: str) -> Path:
        folder = home / ".gemini" / "tmp" / "demo" / "chats"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"session-2026-11-15T17-53-{session[:8]}.jsonl"

    def start(self, session: str) -> bytes:
        return json_line(sessionId=session, projectHash="c6", directories=[PROJECT])

    def prompt(self, text: str, uuid: str) -> bytes:
        context = "<hook_context>MEMCTX-submit</hook_context>"
        content = [{"text": text}, {"text": context}]
        return json_line(id=uuid, timestamp=AT, type="user", content=content)

    def answer(self, text: str, uuid: str) -> bytes:
        return json_line(id=uuid, timestamp=AT, type="gemini", content=text)

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        self.calls[call] = {"id": call, "name": name, "args": arguments}
        return self._calling(self.calls[call])

    def result(self, name: str, call: str, text: str) -> bytes:
        text += "\n\n<hook_context>MEMCTX-after</hook_context>"
        part = {"functionResponse": {"id": call, "response": {"output": text}}}
        return self._calling({**self.calls[call], "result": [part]})

    def compaction(self, summary: str) -> bytes:
        snapshot = f"<state_snapshot>{summary}</state_snapshot>"
        return json_line(id="summary", timestamp=AT, type="user", content=snapshot)

    def _calling(self, call: dict[str, object]) -> bytes:
        return json_line(
            id=f"calls-{call['id']}",
            timestamp=AT,
            type="gemini",
            content="",
            toolCalls=[call],
        )


class Copilot:
    """What Copilot CLI writes (1.0.102)."""

    def file(self, home: Path, session: str) -> Path:
        folder = home / ".copilot" / "session-state" / session
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "events.jsonl"

    def start(self, session: str) -> bytes:
        return self._event(
            "session.start",
            "start",
            sessionId=session,
            copilotVersion="1.0.102",
            context={"cwd": PROJECT},
        )

    def prompt(self, text: str, uuid: str) -> bytes:
        sent = f"{text}\n\n<system_reminder>\nMEMCTX-submit\n</system_reminder>"
        return self._event(
            "user.message", uuid, content=text, transformedContent=sent
        ) + self._event("hook.end", "h", output={"additionalContext": "MEMCTX-submit"})

    def answer(self, text: str, uuid: str) -> bytes:
        return self._event("assistant.message", uuid, content=text, toolRequests=[])

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        request = {"toolCallId": call, "name": name, "arguments": arguments}
        return self._event(
            "assistant.message", f"{call}-call", content="", toolRequests=[request]
        )

    def result(self, name: str, call: str, text: str) -> bytes:
        return self._event(
            "tool.execution_complete",
            f"{call}-result",
            toolCallId=call,
            success=True,
            result={"content": text},
        )

    def compaction(self, summary: str) -> bytes:
        return self._event(
            "session.compaction_complete", "summary", summaryContent=summary
        )

    def _event(self, kind: str, event: str, /, **data: object) -> bytes:
        return json_line(type=kind, data=data, id=event, timestamp=AT)


Log = Claude | Codex | Gemini | Copilot
each_program = pytest.mark.parametrize(
    "log", [Claude(), Codex(), Gemini(), Copilot()], ids=lambda log: type(log).__name__
)


# -- asking ---


def ask(run: LiveRun, name: str, **arguments: object) -> ToolResult:
    return next(tool for tool in run.tools() if tool.name == name).call(arguments)


def search(run: LiveRun, query: str) -> ToolResult:
    return ask(run, "search_conversation_history", query=query)


def failed(path: Path, reason: str) -> list[object]:
    """What takes the place of the ids when a search fails; a long path is cut."""
    return [f"Search failed: {one_line(f'{path}: {reason}', 200)}"]


def found(run: LiveRun, query: str) -> list[object]:
    """The ids of what a search finds; what went wrong if it did."""
    answer = search(run, query)
    if not isinstance(answer.data, list):
        return [answer.text]
    return [hit["id"] for hit in answer.data]


def items(run: LiveRun) -> list[tuple[int, str, str | None, str, str]]:
    return [
        (item.iteration, item.source.value, item.tool_name, item.item_id, item.text)
        for item in run.items()
    ]


def texts(run: LiveRun) -> list[str]:
    return [item.text for item in run.items()]


def whole(run: LiveRun, item_id: str) -> str:
    """An item as a model reads it, page after page."""
    pages: list[str] = []
    while True:
        offset = sum(map(len, pages))
        answer = ask(run, "get_conversation_item", id=item_id, offset=offset)
        assert isinstance(answer.data, dict), answer.text
        pages.append(answer.data["text"])
        if sum(map(len, pages)) == answer.data["length"]:
            return "".join(pages)
