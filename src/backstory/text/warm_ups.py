"""Recognize warm-ups: sessions that an agent program starts by itself, to be ready.

Claude Code 2.0 (seen in 2.0.37 to 2.0.44, 2025-11) starts subagents before anybody asks
for anything, so that the first real one starts quickly. Their only prompt is "Warmup",
or is not recorded at all; their only answer is that they are ready.
"""

from collections.abc import Sequence

_HOST = "claude-code"
_PROMPT = "warmup"
# The prompt and the answer.
_MAX_MESSAGES = 2


def may_be_warm_up(
    host: str, title: str, message_count: int, *, is_subagent: bool
) -> bool:
    """Whether a session may be a warm-up, as far as can be told without reading it."""
    is_short = host == _HOST and message_count <= _MAX_MESSAGES
    return is_short and (is_subagent or title.casefold() == _PROMPT)


def is_warm_up(said: Sequence[tuple[str, str]], *, is_subagent: bool) -> bool:
    """Whether a session that may be a warm-up is one, by its roles and texts."""
    prompts = [text for role, text in said if role == "user"]
    answers = [text for role, text in said if role == "assistant"]
    if len(prompts) + len(answers) < len(said):
        return False
    if not prompts:
        return is_subagent and len(answers) == 1
    return all(text.strip().casefold() == _PROMPT for text in prompts)
