"""What one call of a hook tells its session: nothing that the session knows from us.

The hook itself and a server that answers it do the same here; what there is to tell
comes from ``Answers``.
"""

import json
import os
import zlib

from backstory.hooks.events import PROMPT, SESSION_START
from backstory.hooks.given import GivenMemories, clear_old
from backstory.hooks.hosts import HookCall
from backstory.hooks.live_sessions import clear_stale_notes, note_live_session

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    class Answers(Protocol):
        """What a memory has to say about one call."""

        def open_session(self, *, is_compacted: bool) -> str:
            """What an agent is told when its session begins."""
            ...

        def remind(self, given: list[str]) -> tuple[str, Sequence[str]]:
            """What to add to the prompt, and the keys of the memories in it."""
            ...


class Telling:
    """What the session of one call is told.

    ``folder`` is the one for notes, or empty: then memories may be given twice. ``pid``
    is the process of the hook.
    """

    def __init__(
        self, call: HookCall, answers: "Answers", *, home: str, folder: str, pid: int
    ) -> None:
        self._call = call
        self._answers = answers
        self._home = home
        self._folder = folder
        self._pid = pid
        self._given = GivenMemories(folder or os.devnull, call.session)
        self._note: Callable[[], None] | None = None

    def write(self) -> bytes:
        """What to print; empty if there is nothing to tell."""
        call = self._call
        if call.is_of_subagent:
            return b""
        if self._folder:
            self._tend_notes()
        # Some hosts do not say when they have compacted a session.
        if call.event == SESSION_START or self._given.is_compacted:
            text = self._open_session()
        else:
            text = self._remind()
        if not text or call.event not in call.host.takes:
            return b""
        return json.dumps(call.host.shape(call.host.events[call.event], text)).encode()

    def _tend_notes(self) -> None:
        try:
            note_live_session(self._folder, self._home, self._call, pid=self._pid)
        except OSError:
            pass
        if self._call.event == SESSION_START:
            clear_stale_notes(self._folder)
            clear_old(self._folder)

    def note_told(self) -> None:
        """Note what the session was told, once it was, so that it is not repeated."""
        if self._note is not None:
            self._note()

    def _open_session(self) -> str:
        given = self._given
        is_compacted = given.is_compacted or self._call.source == "compact"
        is_continued = self._call.source == "resume" and not is_compacted
        text = self._answers.open_session(is_compacted=is_compacted)
        key = _key_of(text)
        if is_continued and key in given.keys:
            return ""  # it is in the conversation that is resumed
        kept = given.keys if is_continued else []
        self._note = lambda: given.start_over(*kept, key)
        return text

    def _remind(self) -> str:
        if not self._call.prompt.strip() or PROMPT not in self._call.host.takes:
            return ""
        text, keys = self._answers.remind(self._given.keys)
        if keys:
            self._note = lambda: self._given.add(*keys)
        return text


def _key_of(text: str) -> str:
    """A short text that tells one opening from another."""
    return f"opening-{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
