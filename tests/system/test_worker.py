"""Each home has one worker at a time, and no request for one is lost."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from backstory.system import worker as background
from backstory.system.locks import locked, try_locked
from backstory.system.processes import is_running
from backstory.system.worker import run_as_worker, start_worker
from tests.chance import examples
from tests.processes import comes_true, end_of, in_child


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose workers have no vectors to make."""
    monkeypatch.setenv("BACKSTORY_EMBEDDER_NAME", "none")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder


def is_at_rest(home: Path) -> bool:
    """Whether no worker runs, and none is asked for."""
    with try_locked(home / "worker.lock") as lock:
        return lock is not None and not (home / "worker-wanted").exists()


def test_many_processes_that_ask_at_once_start_one_worker(
    tmp_path: Path, kept: Path
) -> None:
    def ask(number: int) -> None:
        for _ in range(20):
            start_worker(kept)
        (tmp_path / f"started-{number}").write_text(str(len(background._started[kept])))

    # A worker waits for this lock before it writes logs.
    with locked(kept / "logs.lock"):
        children = [in_child(partial(ask, n)) for n in range(examples(4))]
        ends = {end_of(child) for child in children}

    counts = [int(file.read_text()) for file in tmp_path.glob("started-*")]
    assert (ends, sum(counts)) == ({"well"}, 1)
    assert comes_true(partial(is_at_rest, kept))


def test_a_request_while_a_worker_works_makes_it_look_again(kept: Path) -> None:
    rounds: list[int] = []

    def work() -> None:
        rounds.append(len(rounds))
        if len(rounds) < 3:
            start_worker(kept)

    run_as_worker(kept, work)

    assert (rounds, background._started[kept]) == ([0, 1, 2], [])
    assert is_at_rest(kept)


def test_a_request_just_before_the_lock_is_free_makes_the_worker_look_again(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[str] = []
    close = os.close

    def ask_and_close(descriptor: int) -> None:
        # The last moment at which another process still finds the lock taken.
        if rounds == ["work"]:
            rounds.append("asked")
            start_worker(kept)
        close(descriptor)

    lock = os.open(kept / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    with try_locked(kept / "worker.lock", is_handed_on=True) as held:
        assert held is not None
        os.dup2(held, lock)
    monkeypatch.setattr(os, "close", ask_and_close)

    run_as_worker(kept, lambda: rounds.append("work"), lock=lock)

    assert rounds == ["work", "asked", "work"]


def test_a_killed_worker_leaves_the_way_free_for_the_next(kept: Path) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    end = end_of(in_child(lambda: run_as_worker(kept, die)))
    worked: list[str] = []
    run_as_worker(kept, lambda: worked.append("done"))

    assert (end, worked) == ("SIGKILL", ["done"])


def test_a_worker_that_has_ended_is_no_zombie_once_servers_have_looked(
    kept: Path,
) -> None:
    start_worker(kept)
    (worker,) = background._started[kept]

    def is_gone() -> bool:
        background.reap_workers()
        return background._started[kept] == []

    assert comes_true(is_gone)
    assert not is_running(worker.pid)


def test_a_home_that_cannot_be_written_starts_no_worker_and_raises_nothing(
    tmp_path: Path,
) -> None:
    missing = tmp_path / "missing"

    start_worker(missing)

    assert background._started[missing] == []
