"""A process that forks waits for a good moment, and its children start afresh."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.system import fork_safety
from backstory.system.fork_safety import block_forks, reset_in_child
from tests.chance import examples
from tests.index_builders import WordEmbedder, an_indexed_memory, found, say, say_all
from tests.processes import end_of, in_child


@contextmanager
def searching_threads(memory: Memory, count: int) -> Iterator[list[object]]:
    """Threads that search and record all the time; gives what they failed with."""
    failures: list[object] = []
    is_over = threading.Event()

    def work(thread: int) -> None:
        number = 0
        try:
            while not is_over.is_set():
                assert "alpha n7" in found(memory, "alpha n7")
                number += 1
                say(memory, f"beta {number}", session=f"t{thread}")
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_children_forked_while_threads_search_and_write_can_search_and_write(
    tmp_path: Path,
) -> None:
    forks = examples(10)
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, (f"alpha n{n}" for n in range(200)))
        memory.embed()

        def work() -> None:
            assert "alpha n7" in found(memory, "alpha n7")
            say(memory, "gamma", session="child")

        with searching_threads(memory, 4) as failures:
            ends = [end_of(in_child(work)) for _ in range(forks)]

        assert ends == ["well"] * forks
        assert failures == []
        assert len(list(memory.messages(memory.session("child")))) == forks
        assert memory._parts.history.verify() == []
        assert memory._parts.index_files.index.verify() == []


def test_what_a_child_records_stays_when_its_parent_closes_and_others_come(
    tmp_path: Path,
) -> None:
    memory = an_indexed_memory(tmp_path)
    say(memory, "before")
    reader, writer = os.pipe()

    def record_late() -> None:
        say(memory, "first of the child")
        os.read(reader, 1)
        say(memory, "second of the child")

    pid = in_child(record_late)
    memory.close()
    for _ in range(3):
        # The last to close a database empties its log.
        with an_indexed_memory(tmp_path) as other:
            other.search("before")
    os.write(writer, b"x")
    end = end_of(pid)

    with an_indexed_memory(tmp_path) as other:
        texts = [each.text for each in other.messages(other.session("s1"))]
    assert end == "well"
    assert texts == ["before", "first of the child", "second of the child"]


class Forgotten:
    def __init__(self) -> None:
        self.times = 0
        reset_in_child(self)

    def reset_after_fork(self) -> None:
        self.times += 1


def test_a_fork_waits_until_nobody_is_in_the_midst_of_something() -> None:
    steps: list[str] = []
    is_inside = threading.Event()

    def be_busy() -> None:
        with block_forks(), block_forks():
            is_inside.set()
            time.sleep(0.3)
            steps.append("done")

    busy = threading.Thread(target=be_busy)
    busy.start()
    is_inside.wait()

    def look() -> None:
        with block_forks():
            assert steps == ["done"]

    end = end_of(in_child(look))
    busy.join()

    assert end == "well"
    with block_forks():
        pass  # open again


def test_whoever_forks_in_the_midst_of_something_does_not_wait_for_itself() -> None:
    each = Forgotten()

    def look() -> None:
        assert each.times == 1
        with block_forks():
            pass

    with block_forks():
        started = time.monotonic()
        end = end_of(in_child(look))

    assert (end, each.times) == ("well", 0)
    assert time.monotonic() - started < fork_safety._MAX_WAIT_S


def test_threads_that_fork_at_once_all_get_their_child() -> None:
    ends: list[str] = []

    def fork() -> None:
        for _ in range(5):
            with block_forks():
                pass
            ends.append(end_of(in_child(lambda: None)))

    threads = [threading.Thread(target=fork) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ends == ["well"] * 20


@pytest.mark.parametrize("is_searched", [False, True], ids=["unused", "searched"])
def test_a_child_of_a_child_can_search_too(tmp_path: Path, is_searched: bool) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "alpha beta")
        memory.embed()
        if is_searched:
            found(memory, "alpha")

        def search() -> None:
            assert found(memory, "alpha") == ["alpha beta"]

        def search_and_fork() -> None:
            search()
            assert end_of(in_child(search)) == "well"

        assert end_of(in_child(search_and_fork)) == "well"
        search()
