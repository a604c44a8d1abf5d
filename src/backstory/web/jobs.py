"""Long work that a person starts on the page: one at a time, seen by every tab."""

import logging
import threading
from collections.abc import Callable, Iterable

from backstory.errors import BackstoryError
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, replace

logger = logging.getLogger(__name__)

# Does the work, tells how far it is, and returns lines that say what it did.
Work = Callable[[OnCount], Iterable[str]]


class Stopped(BaseException):
    """Raised within the work when a person stops it.

    Like ``KeyboardInterrupt``, it is no ``Exception``: nobody shall take it for a
    problem of the file that is being read.
    """


class Job(FrozenStruct):
    """What is being done, and how far it is; ``lines`` say what came of it."""

    name: str
    done: int = 0
    total: int = 0
    lines: tuple[str, ...] = ()
    is_over: bool = False


class Jobs:
    """The work that was started last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._job: Job | None = None

    @property
    def current(self) -> Job | None:
        """The job that runs, or the last one; None if there was none."""
        return self._job

    @property
    def is_running(self) -> bool:
        return self._job is not None and not self._job.is_over

    def start(self, name: str, work: Work) -> None:
        """Begin to work, unless something else is being done."""
        with self._lock:
            if self.is_running:
                return
            self._stop.clear()
            self._job = Job(name)
        # A daemon, so that the process can end while it works; all that it does can be
        # killed at any time.
        threading.Thread(
            target=self._run, args=(name, work), name="backstory-job", daemon=True
        ).start()

    def stop(self) -> None:
        """Stop what is being done, the next time that it tells how far it is."""
        self._stop.set()

    def _run(self, name: str, work: Work) -> None:
        try:
            lines = tuple(work(self._count))
        except Stopped:
            lines = ("It was stopped. Nothing is lost.",)
        except BackstoryError as exc:
            lines = (str(exc), *([exc.hint] if exc.hint else []))
        except Exception:
            logger.exception("%s", name)
            lines = ("Something went wrong; the terminal shows what happened.",)
        self._job = Job(name, lines=lines, is_over=True)

    def _count(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Stopped
        if self._job is not None:
            self._job = replace(self._job, done=done, total=total)
