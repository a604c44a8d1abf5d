"""Leave out what must not be kept: private passages and the results of recall itself.

A passage between ``<private>`` and ``</private>`` is never stored. An opening mark
without a closing one hides the rest of the message: to hide too much is mended by
saying it again, to store too much is not.
"""

import re

PRIVATE = "[private]"

# Also as JSON texts write it: \u003cprivate\u003e, <\/private>.
_MARK = re.compile(r"(?:<|\\u003c)\\?(/?)private\s*(?:>|\\u003e)", re.IGNORECASE)

# What an agent recalls is a copy of a memory. Stored again, it would be found again,
# and memory would feed on itself.
RECALL_TOOLS = frozenset(
    {
        "search_history",
        "memory_search",
        "search_conversation_history",
        "get_conversation_item",
        "save_memory",
        "update_memory",
    }
)
# Hosts put the server's name before the tool's: mcp__backstory__search_history,
# backstory-search_history, backstory.search_history, backstory/search_history. Other
# servers have tools of these names too; what they find is not ours to leave out.
_RECALL_NAME = re.compile(
    r"(?:^|backstory[^a-z0-9]+)(?:" + "|".join(sorted(RECALL_TOOLS)) + r")$",
    re.IGNORECASE,
)
# The same recall through a shell: backstory search "…", python -m backstory show …
# Hosts write the command as text, or in JSON: with \n for a line end, or word by word.
_RECALL_COMMAND = re.compile(
    r"(?:^|[\s;&|(\"'/\\]|\\[nrt])backstory(?:\.exe)?"
    r"(?:[\s\"',]+(?:--home|--set)[\s\"',=]+[^\s\"',=][^\s\"',]*)*"
    r"[\s\"',]+(?:search|show|call|context)\b"
)


def drop_private(text: str) -> str:
    """Put ``[private]`` in place of every private passage."""
    return hide_private(text, 0)[0]


def hide_private(text: str, depth: int) -> tuple[str, int]:
    """The same for a piece of a longer text; ``depth`` passages are open before it.

    Returns the piece and how many are open behind it.
    """
    kept: list[str] = [PRIVATE] if depth else []
    kept_to = 0
    for mark in _MARK.finditer(text):
        closing = bool(mark.group(1))
        if not closing:
            if depth == 0:
                kept.append(text[kept_to : mark.start()])
                kept.append(PRIVATE)
            depth += 1
        elif depth:
            depth -= 1
            kept_to = mark.end()
    if depth == 0:
        kept.append(text[kept_to:])
    return "".join(kept), depth


def is_recall(tool_name: str | None, call_text: str = "") -> bool:
    """Whether a tool call asks Backstory, or a tool of the same name, for memories."""
    if tool_name and _RECALL_NAME.search(tool_name):
        return True
    return "backstory" in call_text and bool(_RECALL_COMMAND.search(call_text))
