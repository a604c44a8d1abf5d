"""Start the worker: a process of its own that does what can wait.

It outlives whoever started it, and ends when there is nothing left to do. Its lock lets
only one run for a home; the command that it runs makes way for others by itself.
"""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

logger = logging.getLogger(__name__)

# What chooses the vectors; all else about an embedder leaves them as they are.
_CHOOSING = ("embedder.name", "embedder.model", "embedder.url", "embedder.key")
# Those of each home: kept until they end, so that a long-lived program does not
# collect the remains, and starts no second one while the first is still coming up.
_started: dict[Path, list["subprocess.Popen[bytes]"]] = {}


def start_worker(
    home: Path, settings: Sequence[str] = (), *, beside: bool = False
) -> None:
    """Start a worker for a home, with the settings that were given by hand.

    ``beside`` starts it also while one is running that may have looked already at what
    there is to do.

    If an embedder is among them, the worker makes no vectors: what was chosen for one
    run must not take the place of the vectors that all others search with.
    """
    running = [each for each in _started.get(home, ()) if each.poll() is None]
    _started[home] = running
    if running and not beside:
        return
    passed_on = [each for each in settings if not each.strip().startswith(_CHOOSING)]
    if len(passed_on) < len(settings):
        passed_on.append("embedder.name=none")
    flags = [word for setting in passed_on for word in ("--set", setting)]
    # -P: the folder one stands in may hold anybody's code.
    python = [sys.executable, "-P", "-m", "backstory"]
    command = [*python, "--home", str(home), *flags, "work"]
    # Few commands start one, and all would have to wait for it to load.
    import subprocess

    try:
        running.append(
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
