"""An agent on the Anthropic SDK that remembers, in a loop of its own.

Each argument is a prompt of one conversation.

    pip install anthropic
    ANTHROPIC_API_KEY=… python examples/anthropic_sdk.py "What did we decide?"
"""

import sys
import uuid
from typing import Any

import anthropic

from backstory import Memory, schemas

MODEL = "claude-haiku-5-5"
INSTRUCTIONS = "You are a helpful assistant."


class Agent:
    """One conversation: every prompt sees what was said before it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.session = str(uuid.uuid4())
        tools = memory.tools(session=self.session)
        self.tools = {tool.name: tool for tool in tools}
        self.definitions: list[Any] = schemas(tools, "anthropic")
        self.client = anthropic.Anthropic()
        self.messages: list[Any] = []

    def ask(self, prompt: str) -> str:
        reminders = self.memory.context(prompt, session=self.session)
        self.add({"role": "user", "content": prompt})
        while True:
            reply = self.client.messages.create(
                model=MODEL,
                max_tokens=4_096,
                system=f"{INSTRUCTIONS}\n\n{reminders}",
                messages=self.messages,
                tools=self.definitions,
            )
            self.add({"role": "assistant", "content": reply.content})
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return "".join(
                    block.text for block in reply.content if block.type == "text"
                )
            self.add(
                {"role": "user", "content": [self.run_tool(call) for call in calls]}
            )

    def run_tool(self, call: Any) -> dict[str, Any]:
        result = self.tools[call.name].call(call.input)
        return {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": result.text,
            "is_error": result.error is not None,
        }

    def add(self, message: Any) -> None:
        """Add a message to the conversation, and record it for every later one."""
        self.messages.append(message)
        self.memory.record_messages(self.session, [message])


if __name__ == "__main__":
    with Memory.open() as memory:
        agent = Agent(memory)
        for prompt in sys.argv[1:]:
            print(agent.ask(prompt))
