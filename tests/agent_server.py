"""A model on loopback that calls tools as a script says.

It speaks OpenAI's Chat Completions and Responses and Anthropic's Messages, and writes
down what each request gave to the model, whatever the format.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.faulty_server import FaultyHandler, FaultyServer, Json, serving


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls a tool instead of saying something."""

    name: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class Given:
    """What one request gave to the model.

    ``tools`` are name, description and parameters; ``results`` are of all calls so far.
    """

    system: str
    tools: list[tuple[str, str, Json]]
    results: list[str]


@dataclass(slots=True)
class AgentServer(FaultyServer):
    """``script`` is what the model does at each request, in order."""

    script: Sequence[str | ToolCall] = field(default_factory=list)

    def given(self) -> list[Given]:
        return [_FORMATS[_format(asked.path)].read(asked.body) for asked in self.asked]


@contextmanager
def running_agent_server(*script: str | ToolCall) -> Iterator[AgentServer]:
    state = AgentServer(script=script)
    with serving(_Handler, state):
        yield state


class _Handler(FaultyHandler):
    server_state: AgentServer

    def answer(self, body: Json) -> None:
        number = len(self.server_state.asked)
        if number > len(self.server_state.script):
            self.send(400, {"error": {"message": "the script is over"}})
            return
        does = self.server_state.script[number - 1]
        self.send(200, _FORMATS[_format(self.path)].write(body["model"], number, does))


def _format(path: str) -> str:
    return path.rpartition("/")[2]


# -- formats --------------------------------------------------------------------------


class _Chat:
    """``POST /chat/completions``, as the package openai 3.49 reads and writes it."""

    def write(self, model: str, number: int, does: str | ToolCall) -> Json:
        message: Json = {"role": "assistant", "content": None, "refusal": None}
        if isinstance(does, str):
            message["content"] = does
        else:
            function = {"name": does.name, "arguments": json.dumps(does.arguments)}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            message["tool_calls"] = [call]
        reason = "stop" if isinstance(does, str) else "tool_calls"
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1_770_000_000,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
        }

    def read(self, body: Json) -> Given:
        messages = body["messages"]
        return Given(
            "\n".join(each["content"] for each in messages if each["role"] == "system"),
            [_tool(each["function"], "parameters") for each in body["tools"]],
            [each["content"] for each in messages if each["role"] == "tool"],
        )


class _Responses:
    """``POST /responses``, as the package openai 3.49 reads and writes it."""

    def write(self, model: str, number: int, does: str | ToolCall) -> Json:
        if isinstance(does, str):
            block = {"type": "output_text", "text": does, "annotations": []}
            item = {"type": "message", "role": "assistant", "content": [block]}
        else:
            item = {
                "type": "function_call",
                "call_id": f"call_{number}",
                "name": does.name,
                "arguments": json.dumps(does.arguments),
            }
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_770_000_000,
            "status": "completed",
            "model": model,
            "output": [{"id": f"item_{number}", "status": "completed", **item}],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 3,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 12,
            },
        }

    def read(self, body: Json) -> Given:
        items = body["input"]
        prompts = [each["content"] for each in items if each.get("role") == "system"]
        return Given(
            "\n".join(filter(None, [body.get("instructions"), *prompts])),
            [_tool(each, "parameters") for each in body["tools"]],
            [
                each["output"]
                for each in items
                if each.get("type") == "function_call_output"
            ],
        )


class _Messages:
    """``POST /v1/messages``, as the package anthropic 2.8 reads and writes it."""

    def write(self, model: str, number: int, does: str | ToolCall) -> Json:
        block: Json = {"type": "text", "text": does}
        if isinstance(does, ToolCall):
            block = {
                "type": "tool_use",
                "id": f"toolu_{number}",
                "name": does.name,
                "input": does.arguments,
            }
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": "end_turn" if isinstance(does, str) else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 3},
        }

    def read(self, body: Json) -> Given:
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return Given(
            body["system"],
            [_tool(each, "input_schema") for each in body["tools"]],
            [each["content"] for each in blocks if each["type"] == "tool_result"],
        )


_FORMATS: dict[str, _Chat | _Responses | _Messages] = {
    "completions": _Chat(),
    "responses": _Responses(),
    "messages": _Messages(),
}


def _tool(described: Json, parameters: str) -> tuple[str, str, Json]:
    return described["name"], described["description"], described[parameters]
