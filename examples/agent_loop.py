"""An agent loop that forgets nothing, although its window is small.

It runs offline: the model is a script that knows only the messages it is given, and
answers in the format of OpenAI's Chat Completions. With a real model only
``ScriptedModel`` changes: ``openai.OpenAI().chat.completions`` has the same ``create``.

    python examples/agent_loop.py
"""

import json
import re
from typing import Any

from backstory import RunHistory, schemas

WINDOW_TOKENS = 6_000
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
    """The text of a service file, of which one line matters here."""
    number = SERVICES.index(path.removeprefix("services/").removesuffix(".toml"))
    lines = [
        f'limit_{line} = {{ soft = {line * 64}, hard = {line * 128}, unit = "MB" }}'
        for line in range(1, 13)
    ]
    lines.insert(6, f"port = {7_410 + number}")
    return "\n".join([f'service = "{SERVICES[number]}"', *lines])


class ScriptedModel:
    """Takes the place of a language model, and like one sees only its window."""

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
    """The port, if the window still has the line that says it."""
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
        run_tools = {tool.name: tool for tool in run.tools()}
        tools = [READ_FILE, *schemas(run.tools(), "openai")]
        # Messages and answers are recorded in full, then messages are made to fit.
        create = run.wrap(ScriptedModel().create, budget=WINDOW_TOKENS)
        messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
        while True:
            message = create(messages=messages, tools=tools)["choices"][0]["message"]
            messages.append(message)
            for call in message.get("tool_calls", []):
                name = call["function"]["name"]
                arguments = json.loads(call["function"]["arguments"])
                if name in run_tools:
                    result = run_tools[name].call(arguments).text
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
    """Print what is interesting about a step."""
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
