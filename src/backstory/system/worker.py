"""Start the background worker: a separate process for work that can wait.

It outlives the process that started it, and ends when there is nothing left to do. A
lock allows one worker for each home, and the command it runs lets others go first.
"""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

logger = logging.getLogger(__name__)

# The settings that decide which vectors are made; the others do not change them.
_VECTOR_SETTINGS = ("embedder.name", "embedder.model", "embedder.url", "embedder.key")
# The workers started for each home. They are kept and polled, so that a long-lived
# program leaves no zombies and starts no second worker while the first comes up.
_started: dict[Path, list["subprocess.Popen[bytes]"]] = {}


def start_worker(
    home: Path, settings: Sequence[str] = (), *, even_if_running: bool = False
) -> None:
    """Start a worker for a home, with the settings given on the command line.

    With ``even_if_running`` a second one is started, because the first may have checked
    for work already. If the settings choose an embedder, the worker makes no vectors:
    the choice for one run must not replace the vectors that all others search with.
    """
    running = [each for each in _started.get(home, ()) if each.poll() is None]
    _started[home] = running
    if running and not even_if_running:
        return
    passed_on = [
        each for each in settings if not each.strip().startswith(_VECTOR_SETTINGS)
    ]
    if len(passed_on) < len(settings):
        passed_on.append("embedder.name=none")
    flags = [word for setting in passed_on for word in ("--set", setting)]
    # -P: the current folder may hold anybody's code.
    python = [sys.executable, "-P", "-m", "backstory"]
    command = [*python, "--home", str(home), *flags, "work"]
    # Slow to import, and few commands start a worker.
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
        # The next search tries again.
        logger.warning("the worker could not be started: %s", exc)
