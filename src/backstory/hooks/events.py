"""What a hook does at each event."""

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress

from backstory.hooks.ask import ask_server
from backstory.hooks.given import GivenMemories, clear_old
from backstory.hooks.hosts import (
    BEFORE_COMPACTION,
    EVENTS,
    HOOK_HOSTS,
    PROMPT,
    SESSION_END,
    SESSION_START,
    HookCall,
)
from backstory.hooks.live_sessions import (
    clear_stale_notes,
    forget_live_session,
    note_live_session,
)
from backstory.hooks.own_settings import TOLD, may_be_set
from backstory.hooks.runtime import make_runtime_folder

# As ``summaries.triggers`` names them.
_CAUSES = {BEFORE_COMPACTION: "compaction", SESSION_END: "session end"}
# The name of the database that every home has.
_HISTORY = "history.db"
# How many characters of a hash tell one opening from another.
_KEY_BYTES = 8


def answer_event(
    event: str,
    host_name: str,
    home: str,
    payload: bytes,
    environ: Mapping[str, str],
    *,
    on_announced: Callable[[], None] | None = None,
) -> bytes:
    """What to print at an event; empty if there is nothing to add.

    ``on_announced`` is called when the end of a session is noted, so that it counts
    whatever happens later. Raises ValueError for what makes no sense, and whatever else
    goes wrong.
    """
    host = HOOK_HOSTS.get(host_name)
    if host is None:
        raise ValueError(f"unknown host '{host_name}'")
    if event not in EVENTS:
        raise ValueError(f"unknown event '{event}'")
    found = json.loads(payload)
    if not isinstance(found, dict):
        raise ValueError("the payload is not a JSON object")
    call = HookCall(event, host, found)
    if not os.path.exists(os.path.join(home, _HISTORY)):
        raise FileNotFoundError(f"there is no memory in {home}")
    if call.is_of_subagent:
        return b""
    text = _Answering(call, home, environ, on_announced).answer()
    if not text or event not in host.takes:
        return b""
    return json.dumps(host.shape(host.events[event], text)).encode()


class _Answering:
    def __init__(
        self,
        call: HookCall,
        home: str,
        environ: Mapping[str, str],
        on_announced: Callable[[], None] | None,
    ) -> None:
        self._call = call
        self._on_announced = on_announced
        self._home = home
        self._environ = environ

    def answer(self) -> str:
        if self._call.event in _CAUSES:
            self._announce()
            return ""
        # Without a place for notes, memories may be given twice.
        folder = ""
        with suppress(OSError):
            folder = make_runtime_folder(self._home, self._environ)
            note_live_session(self._home, self._call, self._environ)
        given = GivenMemories(folder or os.devnull, self._call.session)
        if self._call.event == SESSION_START:
            if folder:
                clear_stale_notes(folder)
                clear_old(folder)
            return self._open_session(given)
        if given.is_compacted:
            # This host does not say when it has compacted a session.
            return self._open_session(given)
        return self._answer_prompt(given)

    # -- what is given ---

    def _open_session(self, given: GivenMemories) -> str:
        is_compacted = given.is_compacted or self._call.source == "compact"
        text, _ = self._ask(is_compacted=is_compacted)
        key = _key_of(text)
        if self._call.source == "resume" and not is_compacted and key in given.keys:
            return ""  # it is in the conversation that is resumed
        kept = given.keys if self._call.source == "resume" and not is_compacted else []
        given.start_over(*kept, key)
        return text

    def _answer_prompt(self, given: GivenMemories) -> str:
        if not self._call.prompt.strip() or PROMPT not in self._call.host.takes:
            return ""
        text, keys = self._ask(given=given.keys)
        if keys:
            given.add(*keys)
        return text

    def _ask(
        self, *, given: list[str] | None = None, is_compacted: bool = False
    ) -> tuple[str, list[str]]:
        """The answer of a server, or our own."""
        call = self._call
        opens = given is None
        answer = ask_server(
            self._home,
            self._environ,
            {
                "event": SESSION_START if opens else PROMPT,
                "session": call.session,
                "cwd": call.cwd,
                "prompt": call.prompt,
                "given": given or [],
                "is_compacted": is_compacted,
            },
        )
        if answer is not None:
            keys = answer.get("keys")
            return str(answer["text"]), list(keys) if isinstance(keys, list) else []
        if opens:
            return self._open_alone(is_compacted=is_compacted), []
        return self._remind(given or [])

    def _open_alone(self, *, is_compacted: bool) -> str:
        if not may_be_set(TOLD, self._environ):
            # Only without a server.
            from backstory.hooks.opening import open_by_files

            # A history of another version needs the whole memory.
            with suppress(LookupError):
                return open_by_files(
                    self._home,
                    self._call.cwd,
                    is_compacted=is_compacted,
                    now=time.time(),
                )
        # All of a memory, which few sessions need.
        from backstory.hooks.cold import open_session

        return open_session(self._home, self._call.cwd, is_compacted=is_compacted)

    def _remind(self, given: list[str]) -> tuple[str, list[str]]:
        # Only without a server.
        from backstory.hooks.reminding import NeedsMemory, remind_by_words

        call = self._call
        try:
            if may_be_set(TOLD, self._environ):
                raise NeedsMemory
            return remind_by_words(
                self._home,
                call.prompt,
                host=call.host.reads,
                native_id=call.session_id,
                cwd=call.cwd,
                given=given,
            )
        except NeedsMemory:
            # As above.
            from backstory.hooks.cold import remind

            return remind(
                self._home,
                call.prompt,
                session=call.session,
                cwd=call.cwd,
                given=given,
            )

    # -- what is left to the worker ---

    def _announce(self) -> None:
        # Only at the end of a session.
        from backstory.ingest.announced import announce_session

        call = self._call
        with suppress(OSError):
            if call.event == SESSION_END:
                forget_live_session(self._home, self._environ)
            else:
                folder = make_runtime_folder(self._home, self._environ)
                GivenMemories(folder, call.session).start_over(is_compacted=True)
        if not call.session_id:
            return
        cause = _CAUSES[call.event]
        announce_session(self._home, call.host.reads, call.session_id, cause)
        if self._on_announced is not None:
            self._on_announced()
        # Only now: the note is what counts, and the rest takes longer.
        from backstory.hooks.waking import wake_worker

        wake_worker(self._home, self._environ)


def _key_of(text: str) -> str:
    """A short text that tells one opening from another."""
    return f"opening-{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
