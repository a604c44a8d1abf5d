"""Long work that a person starts on the page: one at a time, seen by every tab."""

import logging
import threading
from collections.abc import Callable, Iterable

from backstory.errors import BackstoryError
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, replace

logger = logging.getLogger(__name__)

# Does the work, reports progress, and yields lines that say what it did; lines from
# before it failed or was stopped are kept.
Work = Callable[[OnCount], Iterable[str]]
STATUS_PAGE = "/status"


class Stopped(BaseException):
    """Raised within the work when a person stops it.

    Like ``KeyboardInterrupt``, it is no ``Exception``, so that nothing takes it for a
    problem of the file that is being read.
    """


class Job(FrozenStruct):
    """The work that is being done, and its progress; ``lines`` say how it turned out.

    ``page`` is the address of the page that shows the result.
    """

    name: str
    page: str = STATUS_PAGE
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
    def running(self) -> Job | None:
        """The job that runs now."""
        job = self._job
        return None if job is None or job.is_over else job

    def find_for(self, page: str) -> Job | None:
        """The job for a page to show: the running one, or the last if it is its own."""
        job = self._job
        if job is None or (job.is_over and job.page != page):
            return None
        return job

    def start(self, name: str, work: Work, *, page: str = STATUS_PAGE) -> bool:
        """Start a job; False if another one is running."""
        with self._lock:
            if self.running is not None:
                return False
            self._stop.clear()
            self._job = job = Job(name, page)
        # A daemon, so that the process can end while it works; jobs can be killed at
        # any time.
        threading.Thread(
            target=self._run, args=(job, work), name="backstory-job", daemon=True
        ).start()
        return True

    def stop(self) -> None:
        """Stop the running job, the next time that it reports progress."""
        self._stop.set()

    def _run(self, job: Job, work: Work) -> None:
        lines: list[str] = []
        try:
            lines.extend(work(self._count))
        except Stopped:
            lines.append("It was stopped. Nothing is lost.")
        except BackstoryError as exc:
            lines += [str(exc), *([exc.hint] if exc.hint else [])]
        except Exception:
            logger.exception("%s", job.name)
            lines.append("Something went wrong; the terminal shows what happened.")
        self._job = replace(job, lines=tuple(lines), is_over=True)

    def _count(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Stopped
        if self._job is not None:
            self._job = replace(self._job, done=done, total=total)
