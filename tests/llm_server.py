"""A server on loopback that speaks OpenAI's, Anthropic's, Gemini's and Ollama's chat.

It answers what the script says, in the wire format of the address that it is asked at.
Faults are played once each, in the order given; one that is ``for_ever`` stays.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.embedding_server import Asked, Fault

# Any: requests are checked by the tests, not here.
Json = Any

# Enough of a body to be more than any answer is allowed to be.
HUGE = 17_000_000


@dataclass(slots=True)
class Script:
    """What the model is to say, and how it is to end: done, cut off or filtered.

    ``reply`` makes the text from the prompt.
    """

    text: str = "Sushi was eaten."
    ending: str = "done"
    counts_tokens: bool = True
    reply: Callable[[str], str] | None = None


@dataclass(slots=True)
class LlmServer:
    """What the server was asked, what it answers, and how it is to misbehave."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    script: Script = field(default_factory=Script)
    # The other end of the connection that each request came by.
    ports: list[int] = field(default_factory=list)

    def start_afresh(self) -> None:
        self.asked, self.faults, self.script, self.ports = [], [], Script(), []

    def follow(self, script: Script) -> None:
        self.script = script

    def fail(self, said: str) -> None:
        """Refuse the next request in these words."""
        body = json.dumps({"error": {"message": said}}).encode()
        self.faults = [Fault(403, body)]

    def texts(self) -> list[tuple[str, str]]:
        """System and prompt of each request, whatever protocol it was in."""
        return [_texts(asked.body) for asked in self.asked]


@contextmanager
def running_server() -> Iterator[LlmServer]:
    state = LlmServer()

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave as two packets, and the second would wait 40 ms for the first.
    disable_nagle_algorithm = True
    server_state: LlmServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        # A client may have had enough.
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        state.ports.append(self.client_address[1])
        state.asked.append(Asked(self.path, headers, body))
        if state.faults:
            fault = state.faults[0] if state.faults[0].for_ever else state.faults.pop(0)
            time.sleep(fault.delay_s)
            if fault.status != 200 or fault.body is not None:
                self._send(fault.status, fault.body or b"", fault)
                return
        script = state.script
        if script.reply is not None:
            script = replace(script, text=script.reply(_texts(body)[1]))
        self._send(200, json.dumps(_answer(self.path, script)).encode())

    def _send(self, status: int, body: bytes, fault: Fault | None = None) -> None:
        announced = len(body) + (100 if fault and fault.cut_off else 0)
        headers = dict(fault.headers) if fault else {}
        # With a date of its own where the fault is about one.
        self.send_response_only(status)
        headers.setdefault("Date", self.date_time_string())
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(announced))
        self.end_headers()
        if fault and fault.drip:
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(0.01)
        else:
            self.wfile.write(body)
        self.close_connection = announced != len(body)


def _texts(body: Json) -> tuple[str, str]:
    if "contents" in body:
        system = body.get("systemInstruction", {"parts": [{"text": ""}]})
        return system["parts"][0]["text"], body["contents"][0]["parts"][0]["text"]
    by_role = {each["role"]: each["content"] for each in body["messages"]}
    return body.get("system", by_role.get("system", "")), by_role["user"]


def _answer(path: str, script: Script) -> Json:
    if path.endswith("/chat/completions"):
        return _openai(script)
    if path.endswith("/v1/messages"):
        return _anthropic(script)
    if path.endswith(":generateContent"):
        return _gemini(script)
    return _ollama(script)


def _openai(script: Script) -> Json:
    reasons = {"done": "stop", "cut off": "length", "filtered": "content_filter"}
    message = {"role": "assistant", "content": script.text, "refusal": None}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": reasons[script.ending],
    }
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {"object": "chat.completion", "choices": [choice]} | _if(
        script, {"usage": usage}
    )


def _anthropic(script: Script) -> Json:
    reasons = {"done": "end_turn", "cut off": "max_tokens", "filtered": "refusal"}
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 4,
        "output_tokens": 7,
    }
    return {
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "x"},
            {"type": "text", "text": script.text},
        ],
        "stop_reason": reasons[script.ending],
    } | _if(script, {"usage": usage})


def _gemini(script: Script) -> Json:
    reasons = {"done": "STOP", "cut off": "MAX_TOKENS", "filtered": "RECITATION"}
    parts = [{"text": "Hm.", "thought": True}, {"text": script.text}]
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": reasons[script.ending],
    }
    usage = {
        "promptTokenCount": 11,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 18,
    }
    return {"candidates": [candidate]} | _if(script, {"usageMetadata": usage})


def _ollama(script: Script) -> Json:
    reasons = {"done": "stop", "cut off": "length", "filtered": "stop"}
    return {
        "model": "m",
        "message": {"role": "assistant", "content": script.text},
        "done": True,
        "done_reason": reasons[script.ending],
    } | _if(script, {"prompt_eval_count": 11, "eval_count": 7})


def _if(script: Script, counts: dict[str, Json]) -> dict[str, Json]:
    return counts if script.counts_tokens else {}
