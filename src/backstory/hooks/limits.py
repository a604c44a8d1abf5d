"""How much a hook may add to an agent's context, and how long it may take.

Claude Code moves context of more than 10,000 characters to a file, Codex of about 2,500
tokens. Both end a hook at a session's end after little more than a second.
"""

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CHARS = 9_000
MAX_TOKENS = 2_500

# More than any host passes; the prompt itself is cut.
MAX_PAYLOAD_BYTES = 32 * 1024 * 1024
# And than a server is asked about.
MAX_REQUEST_BYTES = 1024 * 1024
MAX_ANSWER_BYTES = 1024 * 1024

# A host that waits for a hook waits no longer than this.
DEADLINE_S = 4.0
ENDING_DEADLINE_S = 0.9
# How long a hook waits for its input, and for a server.
INPUT_S = 1.0
ANSWER_S = 1.5
# How long a server waits for a hook to send its request.
REQUEST_S = 2.0

# The text, and the keys of the memories in it.
HookAnswer = tuple[str, tuple[str, ...]]


def write_within_limits(
    write: "Callable[[int], HookAnswer]", max_tokens: int
) -> HookAnswer:
    """What ``write`` makes of a number of tokens, in as many characters as may be."""
    max_tokens = min(MAX_TOKENS, max_tokens)
    while max_tokens > 0:
        text, keys = write(max_tokens)
        if len(text) <= MAX_CHARS:
            return text, keys
        max_tokens = int(0.95 * max_tokens * MAX_CHARS / len(text))
    return "", ()
