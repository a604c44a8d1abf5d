"""Values that are computed once."""

import threading

from backstory.values.lazy import lazy_property
from tests.processes import end_of, in_child


class Slow:
    """Computes its value in the time that a test gives it."""

    def __init__(self) -> None:
        self.computing = threading.Event()
        self.go_on = threading.Event()
        self.times = 0

    @lazy_property
    def value(self) -> object:
        """What takes long."""
        self.times += 1
        self.computing.set()
        self.go_on.wait()
        return object()


def test_a_value_is_computed_once() -> None:
    slow = Slow()
    slow.go_on.set()

    assert slow.value is slow.value
    assert slow.times == 1
    assert Slow.value.__doc__ == "What takes long."


def test_threads_that_need_it_at_once_get_the_same_value() -> None:
    slow = Slow()
    values: list[object] = []
    threads = [
        threading.Thread(target=lambda: values.append(slow.value)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    slow.go_on.set()
    for thread in threads:
        thread.join()

    assert len(values) == 4
    assert len(set(values)) == 1


def test_a_child_forked_while_a_thread_computes_a_value_computes_its_own() -> None:
    slow = Slow()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    slow.computing.wait()

    def compute() -> None:
        slow.go_on.set()
        assert slow.value is not None

    end = end_of(in_child(compute))
    slow.go_on.set()
    thread.join()

    assert end == "well"
