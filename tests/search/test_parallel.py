import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from backstory.search.parallel import Parallel, wait_for_nothing
from backstory.store.base.index import BY_MEANING, BY_TEXT
from backstory.store.sqlite.second_reader import SecondReader

_LONG_S = 30.0


class _View:
    """A view beside which a second thread may read by text."""

    beside = frozenset({BY_TEXT})

    def __init__(self, *, is_free: bool) -> None:
        self._is_free = is_free

    def using(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def using_spare(self) -> Iterator[bool]:
        yield self._is_free


def _run(*, is_free: bool, beside: str) -> dict[str, bool]:
    """Run two tasks; tells which of them ran beside the usual thread."""
    parallel = Parallel(lambda: nullcontext(_View(is_free=is_free)))
    was_taken = threading.Event()

    def is_beside() -> bool:
        return "beside" in threading.current_thread().name

    def first() -> bool:
        # If nobody runs beside this thread, another usual one takes the second task.
        assert was_taken.wait(_LONG_S)
        return is_beside()

    def second() -> bool:
        was_taken.set()
        return is_beside()

    outcome = parallel.run(
        {"first": first, beside: second},
        until=threading.TIMEOUT_MAX,
        beside={beside: wait_for_nothing},
    )
    parallel.close()
    return outcome.done


@pytest.mark.parametrize(
    ("is_free", "beside", "expected"),
    [
        pytest.param(True, BY_TEXT, True, id="a second thread takes it"),
        pytest.param(False, BY_TEXT, False, id="another search has the second thread"),
        pytest.param(True, BY_MEANING, False, id="not worth a second thread"),
    ],
)
def test_a_second_thread_only_takes_what_is_worth_it(
    is_free: bool, beside: str, expected: bool
) -> None:
    assert _run(is_free=is_free, beside=beside) == {"first": False, beside: expected}


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        pytest.param(1_000, set(), id="small"),
        pytest.param(50_000_000, {BY_TEXT}, id="100,000 messages"),
        pytest.param(500_000_000, {BY_TEXT, BY_MEANING}, id="a million"),
    ],
)
def test_the_larger_an_index_the_more_a_second_thread_reads(
    tmp_path: Path, size_bytes: int, expected: set[str]
) -> None:
    path = tmp_path / "index.db"
    with path.open("wb") as file:
        file.truncate(size_bytes)

    assert SecondReader(path, cores=2).beside == expected
    assert SecondReader(path, cores=1).beside == set()


def test_an_index_that_was_deleted_needs_no_second_thread(tmp_path: Path) -> None:
    assert SecondReader(tmp_path / "index.db", cores=2).beside == set()


def test_one_search_at_a_time_has_the_second_thread(tmp_path: Path) -> None:
    reader = SecondReader(tmp_path / "index.db", cores=2)

    with reader.using_spare() as first, reader.using_spare() as second:
        assert (first, second) == (True, False)
    with reader.using_spare() as third:
        assert third
