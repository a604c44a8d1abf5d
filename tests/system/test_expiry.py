"""What nobody uses expires, and one thread looks after all of it."""

import gc
import subprocess
import sys
import threading
import weakref

from backstory.runs.history import RunHistory
from backstory.system.expiry import expire_when_due
from backstory.values.runs import RunLimits
from tests.processes import comes_true, end_of, in_child


def watchers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "backstory-expiry"]


def test_a_run_that_nobody_asks_expires_all_the_same() -> None:
    with RunHistory(RunLimits(ttl_s=1)) as run:
        run.record("user", "walnut")
        items = weakref.ref(run._items)

        assert comes_true(lambda: items() is None)
        assert run.items() == ()


def test_a_run_that_nobody_holds_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        run = RunHistory()
        run.observe([{"role": "user", "content": "walnut"}])
        run.fit([{"role": "user", "content": "walnut"}], 1_000)
        freed = weakref.ref(run)
        del run

        # The thread that looks after it may hold it for a moment.
        assert comes_true(lambda: freed() is None)
    finally:
        gc.enable()


def look_after_twenty_runs() -> None:
    runs = [RunHistory(RunLimits(ttl_s=1)) for _ in range(20)]
    for run in runs:
        run.record("user", "walnut")
    assert len(watchers()) == 1
    del run
    runs.clear()
    gc.collect()
    assert comes_true(lambda: watchers() == [])


def test_one_thread_looks_after_all_runs_and_ends_with_them() -> None:
    # In a process of its own: a run that another test left open keeps the thread alive.
    code = f"from {__name__} import *; look_after_twenty_runs()"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_child_looks_after_its_own_runs() -> None:
    with RunHistory() as run:
        run.record("user", "walnut")

        def work() -> None:
            assert [hit.item.text for hit in run.search("walnut").hits] == ["walnut"]
            with RunHistory(RunLimits(ttl_s=1)) as own:
                own.record("user", "hazel")
                assert comes_true(lambda: own._items.by_number == {})

        assert end_of(in_child(work)) == "well"


def test_one_that_cannot_be_looked_at_does_not_keep_the_others_from_expiring() -> None:
    class Broken:
        def expire_if_due(self) -> float:
            raise ValueError("broken")

    broken = Broken()
    expire_when_due(broken)
    with RunHistory(RunLimits(ttl_s=1)) as run:
        run.record("user", "walnut")
        items = weakref.ref(run._items)

        assert comes_true(lambda: items() is None)
