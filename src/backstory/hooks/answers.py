"""What a memory adds to an agent's context, within what every host takes."""

from collections.abc import Callable

from backstory.hooks.hosts import HookCall
from backstory.hooks.limits import HookAnswer, write_within_limits
from backstory.memory import Memory


class MemoryAnswers:
    """What an open memory has to say about one call."""

    def __init__(self, memory: Memory, call: HookCall) -> None:
        self._memory = memory
        self._call = call

    def open_session(self, *, is_compacted: bool) -> str:
        """For the beginning of a session in the call's folder."""

        def write(max_tokens: int) -> HookAnswer:
            text = self._memory.opening(
                project=self._call.cwd or None,
                is_compacted=is_compacted,
                max_tokens=max_tokens,
            )
            return text, ()

        return self._write_within_limits(write)[0]

    def remind(self, given: list[str]) -> HookAnswer:
        """For the prompt of a session that has the long-term memory and ``given``."""

        def write(max_tokens: int) -> HookAnswer:
            context = self._memory.context(
                self._call.prompt,
                session=self._call.session or None,
                max_tokens=max_tokens,
                project=self._call.cwd or None,
                given=given,
            )
            return context.text, context.keys

        return self._write_within_limits(write)

    def _write_within_limits(self, write: Callable[[int], HookAnswer]) -> HookAnswer:
        most = self._memory.settings.whole("context.max_tokens")
        return write_within_limits(write, most)
