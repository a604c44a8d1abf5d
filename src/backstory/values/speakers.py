"""What the sender of a message is called where its messages are shown."""

# By the names of roles; a task is what an agent asked of a subagent.
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
