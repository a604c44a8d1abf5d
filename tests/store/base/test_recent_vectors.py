"""The vectors that were read last are kept, up to a size, and never outlive theirs."""

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from backstory.store.base.recent_vectors import RecentVectors
from backstory.store.sqlite.embeddings import SqliteEmbeddings

ONE, TWO = np.array([1, 0], np.float32), np.array([0, 1], np.float32)


def test_a_deleted_vector_is_not_found_any_more(tmp_path: Path) -> None:
    with closing(SqliteEmbeddings(tmp_path / "embeddings.db")) as embeddings:
        numbers = embeddings.add("model", {b"one": ONE, b"two": TWO})
        both = embeddings.read(numbers.values())

        embeddings.delete([b"one"])

        assert both == {numbers[b"one"]: ONE.tobytes(), numbers[b"two"]: TWO.tobytes()}
        assert embeddings.read(numbers.values()) == {numbers[b"two"]: TWO.tobytes()}


def test_the_vectors_of_a_file_that_takes_the_place_of_another_are_read(
    tmp_path: Path,
) -> None:
    path, other = tmp_path / "embeddings.db", tmp_path / "other.db"
    with closing(SqliteEmbeddings(other)) as embeddings:
        embeddings.add("model", {b"two": TWO})
    with closing(SqliteEmbeddings(path)) as embeddings:
        number = embeddings.add("model", {b"one": ONE})[b"one"]
        before = embeddings.read([number])
        embeddings.close()
        path.unlink()
        shutil.copy(other, path)

        assert before == {number: ONE.tobytes()}
        assert embeddings.read([number]) == {number: TWO.tobytes()}


def test_what_was_not_used_for_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecentVectors, "max_bytes", 8)
    recent = RecentVectors()
    recent.keep("file", dict.fromkeys(range(4), b"##"))
    recent.find("file", [0])

    recent.keep("file", {4: b"##"})

    assert recent.find("file", range(5)) == {0: b"##", 3: b"##", 4: b"##"}
