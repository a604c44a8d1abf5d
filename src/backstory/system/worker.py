"""The background worker: a separate process for work that can wait.

It outlives the process that started it, and ends when there is nothing left to do. Each
home has at most one. The lock that says so is taken before the worker is started, and
handed to it; the system frees it however the worker ends. What is asked for while a
worker runs is noted in a file, and the worker looks again before it ends.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import StoreUnwritable
from backstory.system.fork_safety import block_forks
from backstory.system.locks import try_locked
from backstory.system.loggers import lazy_logger
from backstory.system.machine import add_to_environment

if TYPE_CHECKING:
    import subprocess

logger = lazy_logger(__name__)

_LOCK = "worker.lock"
# This file exists while somebody waits for a worker to look for work.
_WANTED = "worker-wanted"
# This setting may contain a password, and others can see the arguments of a process, so
# it is passed in a variable.
_PRIVATE_SETTING = "store.url"
_PRIVATE_VARIABLE = "BACKSTORY_STORE_URL"
# The settings that decide which vectors are made; the others do not change them.
_VECTOR_SETTINGS = ("embedder.name", "embedder.model", "embedder.url", "embedder.key")
# The workers started for each home. They are kept and polled, so that a long-lived
# program leaves no zombies: whenever it asks for a worker, and in servers every few
# seconds.
_started: dict[Path, list["subprocess.Popen[bytes]"]] = {}


# -- asking for work ------------------------------------------------------------------


def start_worker(home: Path, settings: Sequence[str] = ()) -> None:
    """Have a worker look for work, with the settings given on the command line.

    A worker is started, unless one is running; that one then looks again. If the
    settings choose an embedder, the worker makes no vectors: the choice for one run
    must not replace the vectors that all others search with.
    """
    _started.setdefault(home, [])
    reap_workers()
    try:
        # First of all, so that a worker that is about to end sees it, or else the lock
        # is free.
        (home / _WANTED).touch(mode=0o600)
        # A child forked in the meantime would keep the lock.
        with block_forks(), try_locked(home / _LOCK, is_handed_on=True) as lock:
            if lock is not None:
                _start(home, settings, lock)
    except (OSError, StoreUnwritable) as exc:
        # The next search tries again. In a read-only home, that always fails.
        logger.info("the worker could not be started: %s", exc)


def reap_workers() -> None:
    """Forget the workers that have ended, which stay zombies until then."""
    for workers in list(_started.values()):
        for ended in [each for each in workers if each.poll() is not None]:
            # Another thread may have removed it first. Removed one by one, so that none
            # is lost that another thread adds meanwhile.
            with suppress(ValueError):
                workers.remove(ended)


def _start(home: Path, settings: Sequence[str], lock: int) -> None:
    passed_on = [
        each for each in settings if not each.strip().startswith(_VECTOR_SETTINGS)
    ]
    if len(passed_on) < len(settings):
        passed_on.append("embedder.name=none")
    private = {}
    for each in list(passed_on):
        name, _, value = each.partition("=")
        if name.strip() == _PRIVATE_SETTING:
            private[_PRIVATE_VARIABLE] = value
            passed_on.remove(each)
    flags = [word for setting in passed_on for word in ("--set", setting)]
    # -P, because the current folder may hold anybody's code.
    python = [sys.executable, "-P", "-m", "backstory"]
    command = [*python, "--home", str(home), *flags, "work"]
    # Windows cannot hand a lock to another process; there, the worker takes it.
    is_handed_on = sys.platform != "win32"
    # Imported here because it is slow, and few commands start a worker.
    import subprocess

    _started[home].append(
        subprocess.Popen(
            [*command, "--lock", str(lock)] if is_handed_on else command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=add_to_environment(private) if private else None,
            pass_fds=(lock,) if is_handed_on else (),
        )
    )


# -- working --------------------------------------------------------------------------


def run_as_worker(
    home: Path, work: Callable[[], None], *, lock: int | None = None
) -> None:
    """Work until nobody has asked for more; do nothing if another process does it.

    ``lock`` is the descriptor of the worker's lock if this process was handed it.
    """
    wanted = home / _WANTED
    is_first = True
    # Checked again without the lock, because whoever asked just before it was free has
    # not started a worker.
    while is_first or wanted.exists():
        with _locked(home, lock if is_first else None) as is_held:
            if not is_held:
                return
            while is_first or wanted.exists():
                is_first = False
                with suppress(OSError):
                    wanted.unlink(missing_ok=True)
                work()


@contextmanager
def _locked(home: Path, lock: int | None) -> Iterator[bool]:
    if lock is None:
        with try_locked(home / _LOCK) as is_held:
            yield is_held is not None
        return
    try:
        yield True
    finally:
        os.close(lock)
