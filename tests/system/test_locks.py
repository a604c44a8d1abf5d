"""Locks between processes."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from backstory.errors import StoreUnwritable
from backstory.system.locks import locked


def test_a_lock_that_cannot_be_made_is_our_error(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreUnwritable) as raised,
        locked(tmp_path / "missing" / "index.lock"),
    ):
        pass

    assert str(raised.value) == (
        f"{tmp_path}/missing/index.lock: No such file or directory"
    )


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    lock = tmp_path / "index.lock"
    told, order = threading.Event(), list[str]()

    def wait_for_it() -> None:
        with locked(lock, on_wait=told.set):
            order.append("second")

    with locked(lock):
        thread = threading.Thread(target=wait_for_it)
        thread.start()
        has_waited = told.wait(5)
        order.append("first")
    thread.join(5)

    assert has_waited
    assert order == ["first", "second"]


def test_nobody_is_told_to_wait_for_a_free_lock(tmp_path: Path) -> None:
    waits = list[bool]()
    with locked(tmp_path / "index.lock", on_wait=lambda: waits.append(True)):
        pass

    with locked(tmp_path / "index.lock", on_wait=lambda: waits.append(True)):
        assert waits == []


_HOLD = """
import sys
from pathlib import Path
from backstory.system.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    lock = tmp_path / "index.lock"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        waits = list[bool]()

        def kill() -> None:
            waits.append(True)
            holder.kill()

        with locked(lock, on_wait=kill):
            assert waits == [True]
