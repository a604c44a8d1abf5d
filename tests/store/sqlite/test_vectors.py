"""What index.db does with vectors beyond the contract: its pages and its codes."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.store.base.codes import count_differing_bits, to_columns
from backstory.store.sqlite.index import SqliteIndex
from tests.chance import examples
from tests.index_builders import (
    ANYTHING,
    an_index,
    close_index,
    file_vectors,
    some_vectors,
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    opened = an_index(tmp_path)
    yield opened
    close_index(opened)


def test_threads_that_search_at_once_share_the_vectors(index: SqliteIndex) -> None:
    vectors = some_vectors(50, 16)
    file_vectors(index, vectors)
    start = threading.Barrier(8)
    loaded: set[int] = set()

    def search() -> None:
        start.wait()
        index.nearest(vectors[0], ANYTHING, 1)
        loaded.add(id(index._vectors.pages))

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(loaded) == 1


@settings(max_examples=examples(50))
@given(
    # Some more than are compared at a time.
    count=st.integers(1, 40) | st.just(40_000),
    size=st.integers(1, 70),
    seed=st.integers(0, 2**32 - 1),
)
def test_differing_bits_are_counted_in_columns_as_in_rows(
    count: int, size: int, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, 256, (count, size), np.uint8)
    code = chance.integers(0, 256, size, np.uint8)

    counted = count_differing_bits(to_columns(code[None, :])[:, 0], to_columns(codes))

    assert counted.tolist() == np.bitwise_count(codes ^ code).sum(axis=1).tolist()


def vector_bytes(index: SqliteIndex) -> int:
    db = apsw.Connection(str(index.path))
    size: int = db.execute(
        "SELECT COALESCE(SUM(LENGTH(codes)), 0) FROM vector_pages"
    ).get
    db.close()
    return size


def test_the_slots_of_deleted_units_are_used_again(index: SqliteIndex) -> None:
    for turn in range(4):
        file_vectors(index, some_vectors(600, 8, seed=turn))
        with index.writing() as writer:
            writer.delete_units(range(1, 601))

    assert vector_bytes(index) <= 1024 * 1


def test_nothing_of_a_deleted_vector_stays_in_the_pages(index: SqliteIndex) -> None:
    file_vectors(index, some_vectors(1, 64))

    with index.writing() as writer:
        writer.delete_units([1])

    db = apsw.Connection(str(index.path))
    # Any: SQLite rows carry no types; the schema does.
    columns: list[Any] = db.execute(
        "SELECT units, embeddings, codes, kinds, sources, said FROM vector_pages"
    ).fetchall()
    db.close()
    assert [bytes(column).strip(b"\0") for row in columns for column in row] == [
        b""
    ] * 6
