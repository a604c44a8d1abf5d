"""Jobs of all tenants: each is done once, by whichever process comes first."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backstory import Memory
from backstory.serve.workers import JobWorker
from backstory.store.base.jobs import ClaimedJob, JobKind
from backstory.store.postgres.database import Database
from backstory.store.postgres.jobs import PostgresJobs
from backstory.store.postgres.tenants import TenantList
from tests.postgres_server import OWNER, PostgresServer
from tests.processes import comes_true, in_child

# All of them share one queue.
pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("jobs")]


class Jobs:
    """A database of its own with some tenants, and its queue."""

    def __init__(self, postgres: PostgresServer, folder: Path) -> None:
        self.name = postgres.create_database()
        postgres.prepare(self.name)
        self.url = postgres.url(name=self.name)
        self.postgres = postgres
        self.folder = folder
        self.database = Database(self.url)
        self.queue = PostgresJobs(self.database)
        self._owner = TenantList(postgres.url(OWNER, self.name))
        self.tenants: list[str] = []

    def add_tenant(self) -> str:
        name = f"tenant {len(self.tenants)}"
        self._owner.create(name)
        self.tenants.append(name)
        return name

    def open(self, tenant: str) -> Memory:
        chosen = [f"store.url={self.url}", f"store.tenant={tenant}"]
        return Memory.open(
            self.folder / tenant.replace(" ", "-"),
            settings=["embedder.name=none", "search.read_changed=false", *chosen],
        )

    def left(self) -> list[tuple[object, ...]]:
        asked = (
            "SELECT tenant_id, kind, lease IS NOT NULL FROM backstory.jobs ORDER BY 1"
        )
        return self.postgres.ask(asked, name=self.name)


@pytest.fixture
def jobs(postgres: PostgresServer, tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(postgres, tmp_path)
    yield made
    made.database.close()


def claim(jobs: Jobs, lease_s: float = 60) -> ClaimedJob:
    job = jobs.queue.claim(lease_s)
    assert job is not None
    return job


def test_what_is_written_to_a_history_is_to_be_indexed(jobs: Jobs) -> None:
    tenant = jobs.add_tenant()
    with jobs.open(tenant) as memory:
        memory.record("s", "user", "one")
        memory.record("s", "user", "two")

    job = claim(jobs)

    assert (job.tenant, job.kind, job.tries) == (tenant, JobKind.INDEX, 1)
    assert jobs.queue.claim(60) is None


def test_what_is_written_while_it_is_done_is_done_once_more(jobs: Jobs) -> None:
    tenant = jobs.add_tenant()
    with jobs.open(tenant) as memory:
        memory.record("s", "user", "one")
        first = claim(jobs)
        memory.record("s", "user", "two")
        jobs.queue.finish(first)
        second = claim(jobs)
        jobs.queue.finish(second)

    assert jobs.left() == []
    assert second.lease != first.lease


def test_many_workers_do_each_job_once(jobs: Jobs) -> None:
    for _ in range(20):
        with jobs.open(jobs.add_tenant()) as memory:
            memory.record("s", "user", "one")

    def work(_: int) -> list[str]:
        done = []
        while job := jobs.queue.claim(60):
            done.append(job.tenant)
            time.sleep(0.002)
            jobs.queue.finish(job)
        return done

    with ThreadPoolExecutor(8) as threads:
        done = [tenant for each in threads.map(work, range(8)) for tenant in each]

    assert sorted(done) == sorted(jobs.tenants)
    assert jobs.left() == []


def test_a_job_whose_worker_is_killed_is_taken_over(jobs: Jobs) -> None:
    with jobs.open(jobs.add_tenant()) as memory:
        memory.record("s", "user", "one")

    def hang() -> None:
        queue = PostgresJobs(Database(jobs.url))

        def open_and_hang(tenant: str) -> Memory:
            time.sleep(600)
            raise AssertionError

        JobWorker(queue, open_and_hang, lease_s=0.6).work_once()

    pid = in_child(hang)
    assert comes_true(lambda: [row[2] for row in jobs.left()] == [True])
    # Its lease is renewed: nobody else gets it.
    time.sleep(1.2)
    while_it_lives = jobs.queue.claim(60)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert comes_true(lambda: jobs.queue.claim(60) is not None)

    assert while_it_lives is None


def test_a_worker_that_lost_its_job_does_not_finish_it_for_another(jobs: Jobs) -> None:
    with jobs.open(jobs.add_tenant()) as memory:
        memory.record("s", "user", "one")
    slow = claim(jobs, lease_s=0)
    other = claim(jobs)

    jobs.queue.finish(slow)
    jobs.queue.postpone(slow, 0)

    assert not jobs.queue.renew(slow, 60)
    assert jobs.queue.renew(other, 60)
    assert [row[2] for row in jobs.left()] == [True]


def test_a_job_that_fails_is_tried_again_later_and_others_are_done(jobs: Jobs) -> None:
    bad, good = jobs.add_tenant(), jobs.add_tenant()
    for tenant in (bad, good):
        with jobs.open(tenant) as memory:
            memory.record("s", "user", "one")

    def open_memory(tenant: str) -> Memory:
        if tenant == bad:
            raise ValueError("whatever is wrong with it")
        return jobs.open(tenant)

    assert JobWorker(jobs.queue, open_memory).run_until_done() == 2
    assert [row[1:] for row in jobs.left()] == [("index", False)]
    assert jobs.queue.claim(60) is None


def test_a_worker_makes_what_was_recorded_findable(jobs: Jobs) -> None:
    tenant = jobs.add_tenant()
    with jobs.open(tenant) as memory:
        memory.record("s", "user", "the walrus lives in the bathtub")

    done = JobWorker(jobs.queue, jobs.open).run_until_done()

    with jobs.open(tenant) as memory:
        assert (done, memory.status().index.is_behind) == (1, False)


def test_daily_logs_wait_for_a_quiet_time(jobs: Jobs) -> None:
    with jobs.open(jobs.add_tenant()) as memory:
        memory.record("s", "user", "one")
    job = claim(jobs)
    jobs.queue.want(job.tenant_id, JobKind.LOGS, after_s=3600)
    jobs.queue.finish(job)

    assert jobs.queue.claim(60) is None
    assert [row[1] for row in jobs.left()] == ["logs"]


def test_a_worker_that_is_stopped_finishes_what_it_has_begun(jobs: Jobs) -> None:
    with jobs.open(jobs.add_tenant()) as memory:
        memory.record("s", "user", "one")
    begun, may_end = threading.Event(), threading.Event()

    def open_slowly(tenant: str) -> Memory:
        begun.set()
        may_end.wait(60)
        return jobs.open(tenant)

    worker = JobWorker(jobs.queue, open_slowly)
    worker.start()
    begun.wait(60)
    worker.stop()
    may_end.set()
    worker.join(60)

    assert jobs.left() == []


def test_a_tenant_sees_no_job_of_another(jobs: Jobs) -> None:
    for _ in range(2):
        with jobs.open(jobs.add_tenant()) as memory:
            memory.record("s", "user", "one")
    ids = [row[0] for row in jobs.left()]

    with jobs.database.tenant(int(str(ids[0]))).reading() as db:
        seen = db.execute("SELECT tenant_id FROM jobs").fetchall()

    assert seen == [(ids[0],)]
