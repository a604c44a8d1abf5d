"""Record what is new in a list of messages that a loop shows again and again.

Loops add to their list, some to the last message in it, and some remove or trim older
messages. So a list that continues the last one is read from where that ended; in any
other, each part is compared with how often it was recorded.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from backstory.errors import BadQuery
from backstory.runs.dialects import parts_of
from backstory.runs.dialects.base import Part
from backstory.runs.record import Recorder, clean_part, part_key
from backstory.values.history import Role


class MessageObserver:
    """Reads lists of messages for one run. Not safe for several threads."""

    def __init__(
        self, recorder: Recorder, is_injected: Callable[[object], bool]
    ) -> None:
        self._recorder = recorder
        self._is_injected = is_injected
        self._start_over()

    def _start_over(self) -> None:
        self._read_count = 0
        self._last_message: object = None
        self._last_parts: list[Part] = []
        # How often the list has each part.
        self._counts: Counter[int] = Counter()

    def observe(self, messages: Sequence[object]) -> BadQuery | None:
        """Record what is new; return the error of the first unknown message, if any."""
        if not self._continues(messages):
            self._start_over()
        error: BadQuery | None = None
        # By index: not every sequence can be sliced.
        for place in range(self._read_count, len(messages)):
            message = messages[place]
            try:
                parts = self._read_parts(message)
            except BadQuery as exc:
                parts, error = [], error or exc
            for part in parts:
                self._record_if_new(part)
            self._read_count = place + 1
            self._last_message, self._last_parts = message, parts
        return error

    def record_all(self, messages: Iterable[object]) -> None:
        """Record messages that are all new, leaving out those in an unknown format."""
        for message in messages:
            with suppress(BadQuery):
                for part in self._read_parts(message):
                    self._recorder.record(part)

    def _read_parts(self, message: object) -> list[Part]:
        if self._is_injected(message):
            return []
        return [clean_part(part) for part in parts_of(message)]

    def _continues(self, messages: Sequence[object]) -> bool:
        """Whether a list begins with the last one, going by its last message."""
        count = self._read_count
        if count == 0 or count > len(messages):
            return False
        if messages[count - 1] is not self._last_message:
            return False
        with suppress(BadQuery):
            return self._read_parts(self._last_message) == self._last_parts
        return True

    def _record_if_new(self, part: Part) -> None:
        """Record a part if the list has it more often than it was recorded."""
        call = self._recorder.calls.match(part)
        key = part_key(part)
        self._counts[key] += 1
        if self._counts[key] <= self._recorder.counts[key]:
            return
        is_result = part.role is Role.TOOL_RESULT
        if is_result and self._recorder.find_original(part, call).was_trimmed:
            return
        self._recorder.record(part, call=call)
