"""An agent loop that forgets nothing, although its window is small.

It runs offline: the model is a script that knows what is in the messages it is given
and nothing else, and answers in the shape of OpenAI's Chat Completions. With a real
model only ``ScriptedModel`` changes: ``openai.OpenAI().chat.completions`` has the same
``create``.

    python examples/agent_loop.py
"""

import json
import re
from typing import Any

from backstory import RunHistory, schemas

WINDOW_TOKENS = 5_000
TASK = (
    "Read all the service files, one by one. Then tell me on which port the service "
    "'billing' listens."
)
NAMES = [
    f"{area}-{part}"
    for area in ("auth", "cart", "mail", "search", "stock", "users")
    for part in ("api", "cache", "db", "jobs", "logs", "proxy", "queue", "web", "stats")
]
SERVICES = [*NAMES[:2], "billing", *NAMES[2:], "audit", "backup", "cron", "metrics"]

READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file of the project.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
}


def read_file(path: str) -> str:
    """The text of a service file: one line of it matters here, the others do not."""
    number = SERVICES.index(path.removeprefix("services/").removesuffix(".toml"))
    lines = [
        f'limit_{line} = {{ soft = {line * 64}, hard = {line * 128}, unit = "MB" }}'
        for line in range(1, 13)
    ]
    lines.insert(6, f"port = {7_410 + number}")
    return "\n".join([f'service = "{SERVICES[number]}"', *lines])


class ScriptedModel:
    """Stands for a language model. It sees its window, as a real one does."""

    def create(
        self, *, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
    ) -> dict[str, Any]:
        asked = [
            call["function"]
            for message in messages
            for call in message.get("tool_calls", [])
        ]
        read = [call for call in asked if call["name"] == "read_file"]
        if len(read) < len(SERVICES):
            path = f"services/{SERVICES[len(read)]}.toml"
            return _reply(call=("read_file", {"path": path}))
        port = _find_port(messages)
        if port:
            return _reply(text=f"The service 'billing' listens on port {port}.")
        known = {tool["function"]["name"] for tool in tools}
        if "search_conversation_history" in known and len(asked) == len(read):
            query = {"query": "billing service port", "max_results": 2}
            return _reply(call=("search_conversation_history", query))
        return _reply(text="I have read it, but I can no longer see it.")


def _find_port(messages: list[dict[str, Any]]) -> str | None:
    """What the window says about the port: nothing, once that part is elided."""
    for message in messages:
        found = re.search(
            r'service = "billing".*?^>? ?port = (\d+)',
            message.get("content") or "",
            re.DOTALL | re.MULTILINE,
        )
        if found and message["role"] == "tool":
            return found[1]
    return None


_calls = iter(range(1, 1_000))


def _reply(
    text: str | None = None, call: tuple[str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call:
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [
            {"id": f"call_{next(_calls)}", "type": "function", "function": function}
        ]
    return {"choices": [{"message": message}]}


def main() -> None:
    with RunHistory() as run:
        recall = {tool.name: tool for tool in run.tools()}
        tools = [READ_FILE, *schemas(run.tools(), "openai")]
        # Everything that goes in and comes out is recorded, whole, and made to fit.
        create = run.wrap(ScriptedModel().create, budget=WINDOW_TOKENS)
        messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
        while True:
            message = create(messages=messages, tools=tools)["choices"][0]["message"]
            messages.append(message)
            for call in message.get("tool_calls", []):
                name = call["function"]["name"]
                arguments = json.loads(call["function"]["arguments"])
                if name in recall:
                    result = recall[name].call(arguments).text
                else:
                    result = read_file(**arguments)
                messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": result}
                )
                show(run, messages, name, arguments, result)
            if message["content"]:
                print(f"iteration {run.iteration}: {message['content']}")
                return


def show(
    run: RunHistory,
    messages: list[dict[str, Any]],
    name: str,
    arguments: dict[str, Any],
    result: str,
) -> None:
    """Print what a person would want to see of a step."""
    if name == "read_file":
        if run.iteration in (1, 2, 3, len(SERVICES)):
            path = arguments["path"]
            print(f"iteration {run.iteration}: read {path}, {len(result)} characters")
        if run.iteration == len(SERVICES):
            fitted = run.fit(messages, WINDOW_TOKENS)
            print(
                f"the window: {fitted.tokens:,} tokens, "
                f"{len(fitted.trimmed)} of {len(SERVICES)} results trimmed"
            )
        return
    print(f"iteration {run.iteration}: {name} {json.dumps(arguments)}")
    print("\n".join(f"    {line}" for line in result.splitlines()))


if __name__ == "__main__":
    main()
