"""A model on loopback that speaks the protocols of Anthropic, OpenAI and Gemini.

It answers every prompt with one sentence, except that it answers a prompt with
``CALL_TOOL`` in it with a call of ``search_history``, and one with ``SEARCH_SESSION``
in it with a call of ``search_conversation_history``. It keeps what it was sent, so that
tests see what a model sees.
"""

import gzip
import json
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from backstory.system.zstd import zstd

CALL_TOOL = "CALL_TOOL"
SEARCH_SESSION = "SEARCH_SESSION"
ANSWER = "Understood."
QUERY = {"query": "staging ledger port"}
_TOOLS = {
    CALL_TOOL: "search_history",
    SEARCH_SESSION: "search_conversation_history",
}
# No real model answers at once, and Copilot CLI writes its transcript a bit late.
_THINKING_S = 5.0

# Any: the bodies of four protocols, of which each reader takes what it needs.
Body = Mapping[str, Any]
Event = tuple[str | None, object]


class FakeModel:
    """The server, and the bodies of the requests that it was sent, oldest first."""

    def __init__(self) -> None:
        self.requests: list[Body] = []
        model = self

        class Handler(_Handler):
            requests = model.requests

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> "FakeModel":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests: list[Body]

    def log_message(self, *words: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        models = [{"id": "fake-model", "object": "model", "display_name": "Fake"}]
        self._send_json({"object": "list", "data": models, "models": []})

    def do_POST(self) -> None:
        body: Body = json.loads(self._read() or b"{}")
        path = self.path.partition("?")[0]
        try:
            if path.endswith("/messages"):
                self._answer(body, _anthropic(body))
            elif path.endswith("/responses"):
                self._answer(body, _responses(body))
            elif path.endswith("/chat/completions"):
                self._answer(body, _chat(body))
            elif "enerateContent" in path:
                self._answer(body, _gemini(body, is_stream="stream" in path))
            elif path.endswith("count_tokens"):
                self._send_json({"input_tokens": 100})
            elif path.endswith(":countTokens"):
                self._send_json({"totalTokens": 100})
            else:
                self._send_json({})
        except BrokenPipeError:
            pass

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match self.headers.get("Content-Encoding"):
            case "gzip":
                return gzip.decompress(raw)
            case "zstd":
                return zstd.decompress(raw)
        return raw

    def _answer(self, body: Body, answer: object) -> None:
        self.requests.append(body)
        if isinstance(answer, list):
            self._send(b"".join(map(_event_bytes, answer)), "text/event-stream")
        else:
            self._send_json(answer)

    def _send_json(self, answer: object) -> None:
        self._send(json.dumps(answer).encode(), "application/json")

    def _send(self, raw: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def _event_bytes(event: Event) -> bytes:
    name, value = event
    head = f"event: {name}\n".encode() if name else b""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return head + b"data: " + data + b"\n\n"


def _new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def _pick_tool(prompt: str, has_result: bool, names: Iterable[str]) -> str | None:
    """The tool to call; None for an answer in words."""
    wanted = [tool for word, tool in _TOOLS.items() if word in prompt]
    if has_result or not wanted:
        return None
    if SEARCH_SESSION in prompt:
        time.sleep(_THINKING_S)
    return next((name for name in names if name.endswith(wanted[0])), None)


# -- the protocols --------------------------------------------------------------------


def tool_names(body: Body) -> list[str]:
    """The names of the tools that a request offers, in whichever protocol."""
    names = []
    for tool in body.get("tools") or []:
        inner = tool.get("functionDeclarations") or tool.get("tools") or [tool]
        prefix = tool["name"] if tool.get("type") == "namespace" else ""
        for each in inner:
            name = each.get("name") or each.get("function", {}).get("name") or ""
            names.append(prefix + name)
    return names


def _anthropic(body: Body) -> object:
    users = [each["content"] for each in body["messages"] if each["role"] == "user"]
    content = users[-1]
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    prompt = " ".join(block.get("text", "") for block in blocks)
    has_result = any(block["type"] == "tool_result" for block in blocks)
    tool = _pick_tool(prompt, has_result, tool_names(body))
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {
        "id": _new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "stop_sequence": None,
        "usage": usage,
    }
    block: dict[str, object] = {"type": "text", "text": ANSWER}
    stop = "end_turn"
    if tool is not None:
        block = {"type": "tool_use", "id": _new_id("toolu"), "name": tool}
        block["input"] = QUERY
        stop = "tool_use"
    if not body.get("stream"):
        return {**message, "content": [block], "stop_reason": stop}
    empty = {**block, "text": ""} if tool is None else {**block, "input": {}}
    delta: dict[str, object] = {"type": "text_delta", "text": ANSWER}
    if tool is not None:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(QUERY)}
    started = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]
    return [(str(event["type"]), event) for event in events]


def _responses(body: Body) -> object:
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    users = [item["content"] for item in items if item.get("role") == "user"]
    prompt = users[-1] if users else ""
    if not isinstance(prompt, str):
        prompt = " ".join(part.get("text", "") for part in prompt)
    has_result = str(items[-1].get("type", "")).endswith("_output")
    tool = _pick_tool(prompt, has_result, tool_names(body))
    item: dict[str, object] = {
        "type": "message",
        "id": _new_id("msg"),
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
    }
    if tool is not None:
        item = {
            "type": "function_call",
            "id": _new_id("fc"),
            "call_id": _new_id("call"),
            **_split_namespace(body, tool),
            "arguments": json.dumps(QUERY),
            "status": "completed",
        }
    base = {"id": _new_id("resp"), "object": "response", "model": body.get("model")}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    done = {**base, "status": "completed", "output": [item], "usage": usage}
    if not body.get("stream"):
        return done
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": {**base, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return [
        (str(event["type"]), {**event, "sequence_number": number})
        for number, event in enumerate(events)
    ]


def _split_namespace(body: Body, tool: str) -> dict[str, str]:
    """Codex offers the tools of a server as a namespace, and wants both names back."""
    for each in body.get("tools") or []:
        if each.get("type") == "namespace" and tool.startswith(each["name"]):
            return {
                "name": tool.removeprefix(each["name"]),
                "namespace": each["name"],
            }
    return {"name": tool}


def _chat(body: Body) -> object:
    messages = body["messages"]
    users = [each["content"] for each in messages if each["role"] == "user"]
    prompt = users[-1] if users else ""
    if not isinstance(prompt, str):
        prompt = " ".join(part.get("text", "") for part in prompt)
    tool = _pick_tool(prompt, messages[-1]["role"] == "tool", tool_names(body))
    message: dict[str, object] = {"role": "assistant", "content": ANSWER}
    finish = "stop"
    if tool is not None:
        called = {"name": tool, "arguments": json.dumps(QUERY)}
        call = {"index": 0, "id": _new_id("call"), "type": "function"}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{**call, "function": called}]
        finish = "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base: dict[str, object] = {
        "id": _new_id("chatcmpl"),
        "created": 1,
        "model": body.get("model"),
    }
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            **base,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage,
        }
    base["object"] = "chat.completion.chunk"
    said = {"index": 0, "delta": message, "finish_reason": None}
    end: dict[str, object] = {"index": 0, "delta": {}, "finish_reason": finish}
    events: list[Event] = [
        (None, {**base, "choices": [said]}),
        (None, {**base, "choices": [end]}),
        (None, {**base, "choices": [], "usage": usage}),
        (None, b"[DONE]"),
    ]
    return events


def _gemini(body: Body, *, is_stream: bool) -> object:
    parts = body["contents"][-1].get("parts", [])
    prompt = " ".join(part.get("text", "") for part in parts)
    has_result = any("functionResponse" in part for part in parts)
    tool = _pick_tool(prompt, has_result, tool_names(body))
    part: dict[str, object] = {"text": ANSWER}
    if tool is not None:
        part = {"functionCall": {"name": tool, "args": QUERY}}
    wanted = body.get("generationConfig", {})
    if wanted.get("responseMimeType") == "application/json":
        # Gemini CLI asks the model how hard a prompt is, and who speaks next.
        reply: dict[str, object] = {"reasoning": "x", "next_speaker": "user"}
        reply |= {"model_choice": "flash", "complexity_score": 10}
        reply["complexity_reasoning"] = "x"
        part = {"text": json.dumps(reply)}
    answer = {
        "candidates": [
            {
                "content": {"role": "model", "parts": [part]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "totalTokenCount": 15,
        },
        "modelVersion": "fake",
        "responseId": _new_id("r"),
    }
    return [(None, answer)] if is_stream else answer
