"""An agent on the OpenAI SDK that remembers, in a loop of its own.

Each argument is a prompt of one conversation. Any server that speaks Chat Completions
will do: set OPENAI_BASE_URL.

    pip install openai
    OPENAI_API_KEY=… python examples/openai_sdk.py "What did we decide?"
"""

import sys
import uuid
from typing import Any

import openai

from backstory import Memory, schemas

MODEL = "gpt-6-luna"
INSTRUCTIONS = "You are a helpful assistant."


class Agent:
    """One conversation: every prompt sees what was said before it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.session = str(uuid.uuid4())
        tools = memory.tools(session=self.session)
        self.tools = {tool.name: tool for tool in tools}
        self.definitions: list[Any] = schemas(tools, "openai")
        self.client = openai.OpenAI()
        self.messages: list[Any] = []

    def ask(self, prompt: str) -> str:
        reminders = self.memory.context(prompt, session=self.session)
        system: Any = {"role": "system", "content": f"{INSTRUCTIONS}\n\n{reminders}"}
        self.add({"role": "user", "content": prompt})
        while True:
            completion = self.client.chat.completions.create(
                model=MODEL,
                messages=[system, *self.messages],
                tools=self.definitions,
            )
            reply: Any = completion.choices[0].message
            self.add(reply)
            if not reply.tool_calls:
                return reply.content or ""
            for call in reply.tool_calls:
                result = self.tools[call.function.name].call(call.function.arguments)
                self.add(
                    {"role": "tool", "tool_call_id": call.id, "content": result.text}
                )

    def add(self, message: Any) -> None:
        """Add a message to the conversation, and record it for every later one."""
        self.messages.append(message)
        self.memory.record_messages(self.session, [message])


if __name__ == "__main__":
    with Memory.open() as memory:
        agent = Agent(memory)
        for prompt in sys.argv[1:]:
            print(agent.ask(prompt))
