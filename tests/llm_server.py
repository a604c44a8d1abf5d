"""A server on loopback that speaks OpenAI's, Anthropic's, Gemini's and Ollama's chat.

It answers what the script says, in the wire format of the address that it is asked at.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.faulty_server import Fault, FaultyHandler, FaultyServer, Json, serving

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
class LlmServer(FaultyServer):
    """What the server was asked, what it answers, and how it is to misbehave."""

    script: Script = field(default_factory=Script)

    def start_afresh(self) -> None:
        self.forget()
        self.script = Script()

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
    with serving(_Handler, state):
        yield state


class _Handler(FaultyHandler):
    server_state: LlmServer

    def answer(self, body: Json) -> None:
        script = self.server_state.script
        if script.reply is not None:
            script = replace(script, text=script.reply(_texts(body)[1]))
        self.send(200, _answer(self.path, script))


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
