"""What the sender of a message is called where its messages are shown."""

# By the names of roles.
SPEAKERS = {
    "user": "User",
    "assistant": "Agent",
    "tool_call": "Tool",
    "tool_result": "Tool",
    "system": "System",
    "summary": "Summary",
    "error": "Error",
}
