"""What index.db does beyond the contract: its file of texts, and damage."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import StoreDamaged, StoreUnwritable
from backstory.store.sqlite.folded_text import FoldedText
from backstory.store.sqlite.index import SqliteIndex
from tests.chance import examples
from tests.index_builders import (
    ANYTHING,
    a_unit,
    an_index,
    close_index,
    store_units,
)
from tests.ordinary_user import as_ordinary_user


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    opened = an_index(tmp_path)
    yield opened
    close_index(opened)


def text_ids(index: SqliteIndex, text: str) -> list[int]:
    return index.find_text(text, ANYTHING, 100)


def test_files_of_texts_that_the_index_does_not_name_are_leftovers(
    index: SqliteIndex,
) -> None:
    store_units(index, a_unit(1, "hello"))
    index.path.with_name("index-12345678.text").write_bytes(b"left by a killed writer")
    had_leftovers = index.has_leftovers()

    index.delete_leftovers()

    assert had_leftovers
    assert not index.has_leftovers()
    assert text_ids(index, "hello") == [1]


def test_two_who_delete_at_once_leave_nothing_of_what_they_deleted(
    index: SqliteIndex,
) -> None:
    store_units(index, *(a_unit(n, f"secret{n} " * 30) for n in range(1, 201)))
    other = an_index(index.path.parent)

    def delete(opened: SqliteIndex, first: int) -> None:
        for n in range(first, 201, 2):
            with opened.writing() as writer:
                writer.delete_units([n])
                writer.replace_units([a_unit(1_000 + n, f"kept {n}")])

    threads = [
        threading.Thread(target=delete, args=args) for args in ((index, 1), (other, 2))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (text_file,) = index.path.parent.glob("*.text")
    assert b"secret" not in text_file.read_bytes()
    assert len(index.find_text("kept", ANYTHING, 1_000)) == 200
    assert index.verify() == []
    close_index(other)


# Each text is longer than a block.
_LONG = "many words " * 40_000


@pytest.mark.parametrize("at", [0, 300_000])
def test_only_texts_that_are_read_must_be_undamaged(
    index: SqliteIndex, at: int
) -> None:
    store_units(index, *(a_unit(n, f"the word{n} and {_LONG}") for n in range(1, 5)))
    (text_file,) = index.path.parent.glob("*.text")
    data = bytearray(text_file.read_bytes())
    data[at] ^= 1
    text_file.write_bytes(data)
    fresh = an_index(index.path.parent)

    assert text_ids(fresh, "the word3 and") == [3]
    assert fresh.having_text("many", [3, 4]) == [3, 4]
    with pytest.raises(StoreDamaged):
        text_ids(fresh, "the word1 and")
    with pytest.raises(StoreDamaged):
        fresh.having_text("many", [1, 3])
    with pytest.raises(StoreDamaged):
        text_ids(fresh, "word3")
    close_index(fresh)


@pytest.mark.parametrize(
    ("query", "is_begun"), [("the word3 and", False), ("word3", True)]
)
def test_all_texts_are_checked_in_advance_only_if_all_will_be_searched(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch, query: str, is_begun: bool
) -> None:
    store_units(index, *(a_unit(n, f"the word{n} and more") for n in range(1, 5)))
    begun: list[FoldedText] = []
    monkeypatch.setattr(
        FoldedText, "begin_check", lambda file, blocks: begun.append(file)
    )

    index.get_ready(query)

    assert bool(begun) == is_begun


@settings(max_examples=examples(20))
@given(data=st.data(), deleted=st.sets(st.integers(1, 40), max_size=20))
def test_any_wrong_byte_of_the_texts_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, deleted: set[int]
) -> None:
    opened = an_index(tmp_path_factory.mktemp("bytes"))
    # Several blocks, and texts that reach from one into the next.
    store_units(opened, *(a_unit(n, f"text {n} " * 2_500) for n in range(1, 41)))
    with opened.writing() as writer:
        writer.delete_units(deleted)
    (text_file,) = opened.path.parent.glob("*.text")
    sound = (opened.verify(), text_ids(opened, "nowhere"))
    place = data.draw(st.integers(0, text_file.stat().st_size - 1))
    changed = data.draw(st.integers(1, 255))

    with text_file.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ changed]))
    other = an_index(opened.path.parent)

    assert sound == ([], [])
    with pytest.raises(StoreDamaged):
        text_ids(other, "nowhere")
    assert other.verify() != []
    close_index(other)
    close_index(opened)


def test_a_mistake_of_ours_is_not_called_damage(index: SqliteIndex) -> None:
    store_units(index, a_unit(1, "hello"))
    # Any: what a caller of ours might get wrong.
    no_words: Any = [7]

    with pytest.raises(TypeError):
        index.find_all_words(no_words, ANYTHING, 10)


def test_a_row_that_makes_no_sense_is_damage(index: SqliteIndex) -> None:
    store_units(index, a_unit(1, "hello"))
    db = apsw.Connection(str(index.path))
    db.execute("UPDATE units SET kind = 77")
    db.close()

    with pytest.raises(StoreDamaged, match="a row makes no sense"):
        index.get_units([1])
    assert index.verify() != []


def test_a_count_that_is_not_that_of_the_units_is_damage(index: SqliteIndex) -> None:
    store_units(index, a_unit(1, "hello", meaning="hello"))
    db = apsw.Connection(str(index.path))
    db.execute("UPDATE state SET value = '7' WHERE name LIKE 'units%'")
    db.close()

    assert index.verify() == [
        "7 units are counted, but there are 1",
        "7 units with a meaning are counted, but there are 1",
    ]


def test_a_deleted_text_that_could_not_be_wiped_is_not_found_and_wiped_later(
    index: SqliteIndex,
) -> None:
    store_units(index, a_unit(1, "alpha"), a_unit(2, "beta"), a_unit(3, "gamma"))
    (text_file,) = index.path.parent.glob("*.text")
    text_file.chmod(0o400)
    with (
        as_ordinary_user(),
        pytest.raises(StoreUnwritable),
        index.writing() as writer,
    ):
        writer.delete_units([2])
    text_file.chmod(0o600)
    stayed = b"beta" in text_file.read_bytes()
    seen = (text_ids(index, "beta"), text_ids(index, "gamma"), index.verify())

    store_units(index, a_unit(4, "delta"))

    assert stayed
    assert seen == ([], [3], [])
    assert b"beta" not in text_file.read_bytes()
    assert index.verify() == []
