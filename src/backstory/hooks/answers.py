"""What a memory adds to an agent's context, within what every host takes."""

from collections.abc import Callable, Collection

from backstory.hooks.limits import MAX_CHARS, MAX_TOKENS
from backstory.memory import Memory

# The text, and the keys of the memories in it.
HookAnswer = tuple[str, tuple[str, ...]]


def answer_opening(memory: Memory, *, cwd: str, is_compacted: bool) -> HookAnswer:
    """For the beginning of a session in a folder."""

    def write(max_tokens: int) -> HookAnswer:
        text = memory.opening(
            project=cwd or None, is_compacted=is_compacted, max_tokens=max_tokens
        )
        return text, ()

    return _within_limits(memory, write)


def answer_prompt(
    memory: Memory, prompt: str, *, session: str, cwd: str, given: Collection[str]
) -> HookAnswer:
    """For a prompt in a session that has the long-term memory and ``given``."""

    def write(max_tokens: int) -> HookAnswer:
        context = memory.context(
            prompt,
            session=session or None,
            max_tokens=max_tokens,
            project=cwd or None,
            given=given,
        )
        return context.text, context.keys

    return _within_limits(memory, write)


def _within_limits(memory: Memory, write: Callable[[int], HookAnswer]) -> HookAnswer:
    max_tokens = min(MAX_TOKENS, memory.settings.whole("context.max_tokens"))
    while max_tokens > 0:
        text, keys = write(max_tokens)
        if len(text) <= MAX_CHARS:
            return text, keys
        max_tokens = int(0.95 * max_tokens * MAX_CHARS / len(text))
    return "", ()
