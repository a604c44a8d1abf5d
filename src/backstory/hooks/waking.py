"""Have the worker do what a hook has no time for: without opening the memory."""

import logging
from collections.abc import Mapping
from pathlib import Path

from backstory.hooks.log import log_failure
from backstory.hooks.own_settings import STARTED, may_be_set
from backstory.system.worker import start_worker


def wake_worker(home: str, environ: Mapping[str, str]) -> None:
    """Have the worker look for work, if it may run in the background."""
    log_warnings(home)
    if not may_be_set(STARTED, environ) or _may_start():
        start_worker(Path(home))


def _may_start() -> bool:
    # Slow to import, and most people have not changed them.
    from backstory.settings import load_settings
    from backstory.system.machine import this_machine

    return load_settings(this_machine(), ()).flag("embedder.in_background")


def log_warnings(home: str) -> None:
    """Put what the package reports into our log, and not on standard error."""

    class _ToHookLog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log_failure(home, record.name, record.getMessage())

    logging.getLogger("backstory").addHandler(_ToHookLog(logging.WARNING))
