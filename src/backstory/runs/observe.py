"""Record what is new in a list of messages that a loop passes again and again.

Loops append to their list, some to the last message in it, and some remove, edit or
trim older messages. So if a list continues the last one, it is recorded from where that
ended; otherwise, each part is compared with the number of times it was recorded.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from backstory.errors import BadQuery
from backstory.runs.dialects.base import Part
from backstory.runs.record import Recorder, clean_part, part_key
from backstory.runs.text_results import MessageReader
from backstory.values.history import Role


class MessageObserver:
    """Reads lists of messages for one run. Not safe for several threads."""

    def __init__(
        self,
        recorder: Recorder,
        reader: MessageReader,
        is_injected: Callable[[object], bool] | None,
    ) -> None:
        self._recorder = recorder
        self._reader = reader
        self._is_injected = is_injected
        self._start_over()

    def _start_over(self) -> None:
        # What was read at each position in the list.
        self._read: list[list[Part]] = []
        # How often each part is in the list.
        self._counts: Counter[int] = Counter()

    def observe(self, messages: Sequence[object]) -> BadQuery | None:
        """Record what is new; return the error of the first unknown message, if any."""
        read: list[list[Part]] = []
        errors: dict[int, BadQuery] = {}
        # By index: not every sequence can be sliced.
        for place in range(len(messages)):
            try:
                read.append(self._read_parts(messages[place]))
            except BadQuery as exc:
                read.append([])
                errors[place] = exc
        if read[: len(self._read)] != self._read:
            # Messages were removed or edited: a new turn may be anywhere.
            self._start_over()
        first = len(self._read)
        for parts in read[first:]:
            for part in parts:
                self._record_if_new(part)
        self._read = read
        return next((errors[place] for place in errors if place >= first), None)

    def record_all(self, messages: Iterable[object]) -> None:
        """Record messages that are all new, leaving out those in an unknown format."""
        for message in messages:
            with suppress(BadQuery):
                for part in self._read_parts(message):
                    self._recorder.record(part)

    def _read_parts(self, message: object) -> list[Part]:
        if self._is_injected is not None and self._is_injected(message):
            return []
        return [clean_part(part) for part in self._reader.read(message)]

    def _record_if_new(self, part: Part) -> None:
        """Record a part if it is in the list more often than it was recorded."""
        call = self._recorder.calls.match(part)
        key = part_key(part)
        self._counts[key] += 1
        if self._counts[key] <= self._recorder.counts[key]:
            return
        is_result = part.role is Role.TOOL_RESULT
        if is_result and self._recorder.find_original(part, call).was_trimmed:
            return
        self._recorder.record(part, call=call)
