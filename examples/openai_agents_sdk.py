"""An agent of the OpenAI Agents SDK that remembers.

Each argument is a prompt of one conversation. The SDK sends traces, with what the tools
returned, to OpenAI; OPENAI_AGENTS_DISABLE_TRACING=1 turns that off.

    pip install openai-agents
    OPENAI_API_KEY=… python examples/openai_agents_sdk.py "What did we decide?"
"""

import sys
import uuid
from typing import Any

from agents import Agent, FunctionTool, Runner

from backstory import Memory, Tool

MODEL = "gpt-6-luna"
INSTRUCTIONS = "You are a helpful assistant."


def to_function_tool(tool: Tool) -> FunctionTool:
    async def invoke(_: Any, arguments: str) -> str:
        return (await tool.acall(arguments)).text

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def main(memory: Memory, prompts: list[str]) -> None:
    session = str(uuid.uuid4())
    tools: list[Any] = [
        to_function_tool(tool) for tool in memory.tools(session=session)
    ]
    conversation: list[Any] = []
    for prompt in prompts:
        reminders = memory.context(prompt, session=session)
        agent = Agent(
            name="Assistant",
            model=MODEL,
            instructions=f"{INSTRUCTIONS}\n\n{reminders}",
            tools=tools,
        )
        given = [*conversation, {"role": "user", "content": prompt}]
        result = Runner.run_sync(agent, given)
        new = result.to_input_list()[len(conversation) :]
        memory.record_messages(session, new)
        conversation += new
        print(result.final_output)


if __name__ == "__main__":
    with Memory.open() as memory:
        main(memory, sys.argv[1:])
