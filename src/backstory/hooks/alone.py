"""Answer an event without a server: few imports; slow work is left to the worker."""

import os
import time
from collections.abc import Callable, Mapping

from backstory.hooks.events import BEFORE_COMPACTION, SESSION_END
from backstory.hooks.given import GivenMemories
from backstory.hooks.hosts import HookCall, parse_call
from backstory.hooks.live_sessions import forget_live_session
from backstory.hooks.own_settings import STORED, TOLD, may_be_set
from backstory.hooks.runtime import make_runtime_folder
from backstory.hooks.telling import Telling

# As ``summaries.triggers`` names them.
_CAUSES = {BEFORE_COMPACTION: "compaction", SESSION_END: "session end"}
# The name of the database that every home has.
_HISTORY = "history.db"


def answer_alone(
    event: str,
    host_name: str,
    home: str,
    payload: bytes,
    environ: Mapping[str, str],
    *,
    on_announced: Callable[[], None] | None = None,
) -> bytes:
    """As ``answer_event``, which see."""
    call = parse_call(event, host_name, payload)
    is_in_files = not may_be_set(STORED, environ)
    if is_in_files and not os.path.exists(os.path.join(home, _HISTORY)):
        raise FileNotFoundError(f"there is no memory in {home}")
    if event in _CAUSES:
        if not call.is_of_subagent:
            _announce(call, home, environ, on_announced)
        return b""
    try:
        folder = make_runtime_folder(home, environ)
    except OSError:
        folder = ""
    is_quick = is_in_files and not may_be_set(TOLD, environ)
    answers = _OwnAnswers(call, home, is_quick=is_quick)
    telling = Telling(call, answers, home=home, folder=folder, pid=os.getpid())
    printed = telling.write()
    telling.note_told()
    return printed


class _OwnAnswers:
    """What the hook itself finds: by words, and in files.

    Unless ``is_quick``, the whole memory is asked.
    """

    def __init__(self, call: HookCall, home: str, *, is_quick: bool) -> None:
        self._call = call
        self._home = home
        self._is_quick = is_quick

    def open_session(self, *, is_compacted: bool) -> str:
        if self._is_quick:
            # Not needed for prompts.
            from backstory.hooks.opening import open_by_files

            try:
                return open_by_files(
                    self._home,
                    self._call.cwd,
                    is_compacted=is_compacted,
                    now=time.time(),
                )
            except LookupError:
                pass  # a history of another version needs the whole memory
        # All of a memory, which few sessions need.
        from backstory.hooks.cold import open_session

        return open_session(self._home, self._call, is_compacted=is_compacted)

    def remind(self, given: list[str]) -> tuple[str, list[str]]:
        # Only needed for prompts.
        from backstory.hooks.reminding import NeedsMemory, remind_by_words

        call = self._call
        try:
            if not self._is_quick:
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

            return remind(self._home, call, given)


# -- what is left to the worker -------------------------------------------------------


def _announce(
    call: HookCall,
    home: str,
    environ: Mapping[str, str],
    on_announced: Callable[[], None] | None,
) -> None:
    # Only at the end of a session.
    from backstory.ingest.announced import announce_session

    try:
        if call.event == SESSION_END:
            forget_live_session(home, environ, call.session_id)
        else:
            folder = make_runtime_folder(home, environ)
            GivenMemories(folder, call.session).start_over(is_compacted=True)
    except OSError:
        pass
    if not call.session_id:
        return
    announce_session(home, call.host.reads, call.session_id, _CAUSES[call.event])
    if on_announced is not None:
        on_announced()
    # Only now: the note is what counts, and the rest takes longer.
    from backstory.hooks.waking import wake_worker

    wake_worker(home, environ)
