"""Start the worker: a process of its own that does what can wait.

It outlives whoever started it, runs at low priority, and ends when there is nothing
left to do. Its lock lets only one run for a home.
"""

import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

# Kept until they end, so that a long-lived program does not collect their remains.
_started: list[subprocess.Popen[bytes]] = []


def start_worker(home: Path, settings: Sequence[str] = ()) -> None:
    """Start a worker for a home, with the settings that were given by hand."""
    flags = [word for setting in settings for word in ("--set", setting)]
    # -P: the folder one stands in may hold anybody's code.
    python = [sys.executable, "-P", "-m", "backstory"]
    command = [*python, "--home", str(home), *flags, "work"]
    _started[:] = [process for process in _started if process.poll() is None]
    try:
        _started.append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
    except OSError as exc:
        # It is started again with the next search.
        logger.warning("the worker could not be started: %s", exc)
