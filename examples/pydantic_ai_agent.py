"""An agent of Pydantic AI that remembers.

Each argument is a prompt of one conversation. Any model of Pydantic AI will do.

    pip install 'pydantic-ai-slim[openai]'
    OPENAI_API_KEY=… python examples/pydantic_ai_agent.py "What did we decide?"
"""

import sys
import uuid
from typing import Any

import pydantic_ai

from backstory import Memory, Tool

MODEL = "openai:gpt-6-luna"
INSTRUCTIONS = "You are a helpful assistant."


def to_pydantic_tool(tool: Tool) -> Any:
    async def invoke(**arguments: Any) -> str:
        return (await tool.acall(arguments)).text

    return pydantic_ai.Tool.from_schema(
        invoke,
        name=tool.name,
        description=tool.description,
        json_schema=tool.parameters,
    )


def main(memory: Memory, prompts: list[str]) -> None:
    session = str(uuid.uuid4())
    tools = [to_pydantic_tool(tool) for tool in memory.tools(session=session)]
    agent = pydantic_ai.Agent(MODEL, tools=tools)
    conversation: list[Any] = []
    for prompt in prompts:
        reminders = memory.context(prompt, session=session)
        result = agent.run_sync(
            prompt,
            instructions=f"{INSTRUCTIONS}\n\n{reminders}",
            message_history=conversation,
        )
        memory.record_messages(session, result.new_messages())
        conversation = result.all_messages()
        print(result.output)


if __name__ == "__main__":
    with Memory.open() as memory:
        main(memory, sys.argv[1:])
