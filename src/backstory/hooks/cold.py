"""What a hook does with all of a memory, where the quick way is not enough."""

import logging
from pathlib import Path

from backstory.hooks.answers import answer_opening, answer_prompt
from backstory.hooks.log import log_failure
from backstory.memory import Memory
from backstory.settings import load_settings
from backstory.system.machine import this_machine
from backstory.system.worker import start_worker

# A hook has no time to load a model, and leaves changes to others.
_SETTINGS = ("embedder.name=none", "search.read_changed=false")


def open_session(home: str, cwd: str, *, is_compacted: bool) -> str:
    """What to tell an agent when a session begins."""
    _log_to(home)
    with Memory.open(home, settings=_SETTINGS) as memory:
        return answer_opening(memory, cwd=cwd, is_compacted=is_compacted)[0]


def remind(
    home: str, prompt: str, *, session: str, cwd: str, given: list[str]
) -> tuple[str, list[str]]:
    """What to add to a prompt, and the keys of the memories in it."""
    _log_to(home)
    with Memory.open(home, settings=_SETTINGS) as memory:
        text, keys = answer_prompt(
            memory, prompt, session=session, cwd=cwd, given=given
        )
        return text, list(keys)


def wake_worker(home: str) -> None:
    """Have the worker look for work, if it may run in the background."""
    _log_to(home)
    settings = load_settings(this_machine(), ())
    if settings.flag("embedder.in_background"):
        start_worker(Path(home))


def _log_to(home: str) -> None:
    """Put what the package reports into our log, and not on standard error."""

    class _ToHookLog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log_failure(home, record.name, record.getMessage())

    logging.getLogger("backstory").addHandler(_ToHookLog(logging.WARNING))
