"""The program ``backstory-hook``: read what the host passes, print what it takes.

Whatever goes wrong, it prints nothing, leaves a line in the log and exits with 0: an
agent must not notice that its memory has failed. Imports are few and late, because a
person waits for every prompt.
"""

import _thread
import gc
import os
import sys
import time

from backstory.hooks.limits import (
    DEADLINE_S,
    ENDING_DEADLINE_S,
    INPUT_S,
    MAX_PAYLOAD_BYTES,
)

_USAGE = """\
Usage: backstory-hook EVENT --host HOST [--home PATH]

Run by agent programs, which pass a JSON object on standard input.
'backstory install' sets it up.

  EVENT   session-start, prompt, before-compaction or session-end
  HOST    claude-code, codex, gemini, copilot, opencode or cursor
  --home  the folder of the memory; default: $BACKSTORY_HOME, or the user's own
"""


def main() -> None:
    """Run the hook of the command line, and end the process."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        os.write(1 if arguments else 2, _USAGE.encode())
        os._exit(0)
    # It takes time, and a process this short needs none of its memory back.
    gc.disable()
    hook = _Hook(arguments)
    _thread.start_new_thread(hook.end_in_time, ())
    try:
        try:
            output = hook.run()
            if output:
                os.write(1, output)
        except BaseException as exc:
            hook.log(exc)
    finally:
        # At once: nothing is left to be flushed or waited for.
        os._exit(0)


class _Hook:
    def __init__(self, arguments: list[str]) -> None:
        self._event = arguments[0]
        self._options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
        self._is_announced = False

    def run(self) -> bytes:
        """What to print."""
        # As late as this, so that whatever it raises is logged.
        from backstory.hooks.events import answer_event

        return answer_event(
            self._event,
            self._options.get("--host", ""),
            self._find_home(),
            _read_input(),
            os.environ,
            on_announced=self._note_announced,
        )

    def _find_home(self) -> str:
        # Needed by few of the ways in which a hook ends.
        from backstory.system.home import find_default_home

        home = self._options.get("--home") or os.environ.get("BACKSTORY_HOME")
        return os.path.abspath(
            os.path.expanduser(home) if home else find_default_home()
        )

    def _note_announced(self) -> None:
        self._is_announced = True

    def end_in_time(self) -> None:
        """End the process if it takes too long, whatever it is doing."""
        is_ending = self._event in ("session-end", "before-compaction")
        deadline_s = ENDING_DEADLINE_S if is_ending else DEADLINE_S
        time.sleep(deadline_s)
        try:
            # What ends was noted: a server or the next hook starts the worker.
            if not self._is_announced:
                self.log(f"it took longer than {deadline_s} seconds")
        finally:
            os._exit(0)

    def log(self, why: BaseException | str) -> None:
        # Only failures need it.
        from backstory.hooks.log import log_failure

        what = f"{self._event} of {self._options.get('--host', 'no host')}"
        # The home may not have been looked for yet.
        log_failure(self._find_home(), what, why)


def _read_input() -> bytes:
    """Standard input, as far as it is there. Raises ValueError if it is too long."""
    until = time.monotonic() + INPUT_S
    received = bytearray()
    while True:
        some = os.read(0, 1 << 20) if _has_input(until) else b""
        if not some:
            return bytes(received)
        received += some
        if len(received) > MAX_PAYLOAD_BYTES:
            raise ValueError(f"the input has more than {MAX_PAYLOAD_BYTES:,} bytes")


def _has_input(until: float) -> bool:
    """Wait for input. Hosts close it, people at a terminal and broken hosts do not."""
    if sys.platform == "win32":
        return True  # pipes cannot be waited for; the deadline ends the process
    # As late as this, so that whatever it raises is logged.
    import select

    return bool(select.select([0], [], [], max(0.0, until - time.monotonic()))[0])
