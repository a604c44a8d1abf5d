"""What a memory adds to an agent's context, within what every host takes."""

from collections.abc import Collection

from backstory.hooks.limits import HookAnswer, write_within_limits
from backstory.memory import Memory


def answer_opening(memory: Memory, *, cwd: str, is_compacted: bool) -> HookAnswer:
    """For the beginning of a session in a folder."""

    def write(max_tokens: int) -> HookAnswer:
        text = memory.opening(
            project=cwd or None, is_compacted=is_compacted, max_tokens=max_tokens
        )
        return text, ()

    return write_within_limits(write, memory.settings.whole("context.max_tokens"))


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

    return write_within_limits(write, memory.settings.whole("context.max_tokens"))
