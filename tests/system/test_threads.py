"""A thread pool that Python does not wait for when it exits."""

import sys
import threading

from backstory.system.threads import DaemonThreadPool
from tests.processes import comes_true


def test_tasks_that_do_not_overlap_run_in_one_thread() -> None:
    pool = DaemonThreadPool(4, "test")

    ran_in = {pool.submit(threading.get_ident).result() for _ in range(50)}

    assert len(ran_in) == 1
    pool.shutdown(wait_s=60)


def test_tasks_that_overlap_run_side_by_side() -> None:
    pool = DaemonThreadPool(3, "test")
    meeting = threading.Barrier(3, timeout=60)

    met = [pool.submit(meeting.wait) for _ in range(3)]

    assert {each.result() for each in met} == {0, 1, 2}
    pool.shutdown(wait_s=60)


def test_a_task_goes_to_the_thread_that_was_busy_last() -> None:
    pool = DaemonThreadPool(2, "test")
    meeting = threading.Barrier(2, timeout=60)
    first, second = (pool.submit(lambda: _meet(meeting)) for _ in range(2))

    last = {first.result(), second.result()}
    ran_in = {pool.submit(threading.get_ident).result() for _ in range(50)}

    assert (len(last), len(ran_in)) == (2, 1)
    pool.shutdown(wait_s=60)


def test_threads_without_a_task_end_but_for_one_that_goes_on() -> None:
    pool = DaemonThreadPool(3, "ending", idle_s=0.01)
    meeting = threading.Barrier(3, timeout=60)
    for each in [pool.submit(meeting.wait) for _ in range(3)]:
        each.result()

    assert comes_true(lambda: _count("ending") <= 1)
    assert pool.submit(lambda: "done").result() == "done"
    pool.shutdown(wait_s=60)
    assert _count("ending") == 0


def _meet(meeting: threading.Barrier) -> int:
    meeting.wait()
    return threading.get_ident()


def _count(name: str) -> int:
    return sum(each.name.startswith(f"{name}-") for each in threading.enumerate())


def test_a_task_waits_if_all_threads_are_busy() -> None:
    pool = DaemonThreadPool(1, "test")
    is_free = threading.Event()

    first = pool.submit(is_free.wait)
    second = pool.submit(lambda: "done")
    is_free.set()

    assert (first.result(), second.result()) == (True, "done")
    pool.shutdown(wait_s=60)


def test_every_task_is_done_if_the_pool_is_shut_down_meanwhile() -> None:
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        results = [_submit_during_shutdown() for _ in range(100)]
    finally:
        sys.setswitchinterval(interval_s)

    assert results == [["done"] * 3] * 100


def _submit_during_shutdown() -> list[str]:
    pool = DaemonThreadPool(3, "test")
    submitted: list[str] = []

    def submit() -> None:
        submitted.extend(pool.submit(lambda: "done").result() for _ in range(3))

    submitting = threading.Thread(target=submit)
    submitting.start()
    pool.shutdown(wait_s=60)
    submitting.join()
    return submitted


def test_a_task_after_the_shutdown_gets_a_thread_of_its_own() -> None:
    pool = DaemonThreadPool(1, "test")
    pool.submit(lambda: None).result()
    pool.shutdown(wait_s=60)

    assert pool.submit(lambda: "done").result() == "done"
