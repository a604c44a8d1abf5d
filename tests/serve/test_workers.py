"""Workers that go on, whatever goes wrong."""

import threading
from typing import cast

import pytest

from backstory.errors import StoreUnreachable
from backstory.serve import workers
from backstory.serve.workers import JobWorker
from backstory.store.base.jobs import ClaimedJob, JobQueue
from tests.processes import PATIENCE_S


class BrokenQueue:
    """Fails in another way each time that it is asked, then has nothing to do."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.is_asked_again = threading.Event()

    def claim(self, lease_s: float) -> ClaimedJob | None:
        if self._errors:
            raise self._errors.pop()
        self.is_asked_again.set()
        return None


@pytest.mark.parametrize(
    "error", [StoreUnreachable("gone"), RuntimeError("can't start new thread")]
)
def test_a_worker_goes_on_after_an_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_AWAY_S", 0.0)
    queue = BrokenQueue(error)
    worker = JobWorker(cast(JobQueue, queue), lambda _: pytest.fail("no job was begun"))

    worker.start()
    goes_on = queue.is_asked_again.wait(PATIENCE_S)
    worker.stop()
    worker.join(PATIENCE_S)

    assert goes_on
