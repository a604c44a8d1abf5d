"""A thread pool that Python does not wait for when it exits."""

import threading

from backstory.system.threads import DaemonThreadPool


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


def test_a_task_waits_if_all_threads_are_busy() -> None:
    pool = DaemonThreadPool(1, "test")
    is_free = threading.Event()

    first = pool.submit(is_free.wait)
    second = pool.submit(lambda: "done")
    is_free.set()

    assert (first.result(), second.result()) == (True, "done")
    pool.shutdown(wait_s=60)
