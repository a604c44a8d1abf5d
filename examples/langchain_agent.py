"""An agent of LangChain that remembers.

Each argument is a prompt of one conversation. Any chat model of LangChain will do.

    pip install langchain langchain-openai
    OPENAI_API_KEY=… python examples/langchain_agent.py "What did we decide?"
"""

import sys
import uuid
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from backstory import Memory, Tool

MODEL = "openai:gpt-6-luna"
INSTRUCTIONS = "You are a helpful assistant."


def to_structured_tool(tool: Tool) -> StructuredTool:
    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.parameters,
        func=lambda **arguments: tool.call(arguments).text,
    )


def main(memory: Memory, prompts: list[str]) -> None:
    session = str(uuid.uuid4())
    tools = [to_structured_tool(tool) for tool in memory.tools(session=session)]
    conversation: list[Any] = []
    for prompt in prompts:
        reminders = memory.context(prompt, session=session)
        agent = create_agent(
            MODEL, tools, system_prompt=f"{INSTRUCTIONS}\n\n{reminders}"
        )
        given = [*conversation, HumanMessage(prompt)]
        messages = agent.invoke({"messages": given})["messages"]
        memory.record_messages(session, messages[len(conversation) :])
        conversation = messages
        print(messages[-1].text)


if __name__ == "__main__":
    with Memory.open() as memory:
        main(memory, sys.argv[1:])
