"""The names under which senders of messages are shown."""

# By role; a task is what an agent asked of a subagent.
SPEAKERS = {
    "user": "User",
    "task": "Task",
    "assistant": "Agent",
    "tool_call": "Tool",
    "tool_result": "Tool",
    "system": "System",
    "summary": "Summary",
    "error": "Error",
}
