"""Do the background work of all tenants, together with any number of processes."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from backstory.errors import BackstoryError, StoreProblem
from backstory.serve.metrics import Metrics

if TYPE_CHECKING:
    from backstory.memory import Memory
    from backstory.store.base.jobs import ClaimedJob, JobQueue

logger = logging.getLogger(__name__)

_INDEX, _LOGS = "index", "logs"
LEASE_S = 60.0
# How long to wait if there is nothing to do, or the store cannot be reached.
_IDLE_S = 1.0
_AWAY_S = 5.0
# How long to wait before a job that failed is tried again; longer each time.
_RETRY_S = 5.0
_MAX_RETRY_S = 3600.0


class JobWorker:
    """One thread that works, until it is stopped; a job that it has begun is finished.

    ``open_memory`` opens the memory of a tenant, which is closed after each job.
    """

    def __init__(
        self,
        queue: "JobQueue",
        open_memory: "Callable[[str], Memory]",
        metrics: Metrics | None = None,
        *,
        lease_s: float = LEASE_S,
    ) -> None:
        self._queue = queue
        self._open_memory = open_memory
        self._metrics = metrics or Metrics()
        self._lease_s = lease_s
        self._is_over = threading.Event()
        # A daemon: if it does not end in time, another process takes its job over.
        self._thread = threading.Thread(
            target=self.run, name="backstory-worker", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin no more jobs."""
        self._is_over.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the job that was begun is finished."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def run(self) -> None:
        """Work until stopped."""
        while not self._is_over.is_set():
            try:
                has_worked = self.work_once()
            except StoreProblem:
                logger.exception("jobs cannot be reached")
                self._is_over.wait(_AWAY_S)
            except Exception:
                # Without its worker, a server would go on as if nothing had happened.
                logger.exception("a worker failed unexpectedly")
                self._is_over.wait(_AWAY_S)
            else:
                if not has_worked:
                    self._is_over.wait(_IDLE_S)

    def run_until_done(self) -> int:
        """Do all jobs that are due now; returns how many."""
        done = 0
        while not self._is_over.is_set() and self.work_once():
            done += 1
        return done

    def work_once(self) -> bool:
        """Do one job; False if there is none."""
        job = self._queue.claim(self._lease_s)
        if job is None:
            return False
        with _Lease(self._queue, job, self._lease_s):
            outcome = self._do(job)
        self._metrics.add("jobs_total", kind=job.kind.value, outcome=outcome)
        return True

    def _do(self, job: "ClaimedJob") -> str:
        try:
            with self._open_memory(job.tenant) as memory:
                again_s = memory.do_job(job.kind)
                logs_after_s = _find_quiet_s(memory)
        except BackstoryError:
            logger.exception("a job failed")
        except Exception:
            # A failure for one tenant must not end the work for all others.
            logger.exception("a job failed unexpectedly")
        else:
            if job.kind == _INDEX and logs_after_s is not None:
                self._queue.want(job.tenant_id, _LOGS, after_s=logs_after_s)
            self._queue.finish(job, again_s=again_s)
            return "done"
        wait_s = min(_RETRY_S * 2 ** min(job.tries, 16), _MAX_RETRY_S)
        self._queue.postpone(job, wait_s)
        return "failed"


def _find_quiet_s(memory: "Memory") -> float | None:
    """How long after a message its daily log is due; None if never."""
    settings = memory.settings
    has_model = settings.text("llm.name") != "none"
    if not (has_model and settings.flag("logs.enabled")):
        return None
    quiet_minutes = settings.number("logs.quiet_minutes")
    is_wanted = quiet_minutes > 0 and settings.flag("logs.in_background")
    return quiet_minutes * 60 if is_wanted else None


class _Lease:
    """Renews the lease of a job while it is being done."""

    def __init__(self, queue: "JobQueue", job: "ClaimedJob", lease_s: float) -> None:
        self._queue = queue
        self._job = job
        self._lease_s = lease_s
        self._is_done = threading.Event()
        self._thread = threading.Thread(
            target=self._renew, name="backstory-lease", daemon=True
        )

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._is_done.set()
        self._thread.join()

    def _renew(self) -> None:
        until = time.monotonic() + self._lease_s
        while not self._is_done.wait(self._lease_s / 3):
            # If the store cannot be reached for a moment, this is tried again.
            with suppress(StoreProblem):
                if not self._queue.renew(self._job, self._lease_s):
                    return
                until = time.monotonic() + self._lease_s
            if time.monotonic() > until:
                return
