"""What the writer of index.db does beyond the contract: when, and in what order."""

from pathlib import Path

import apsw
import pytest

from backstory.store.sqlite import index_writer, words
from backstory.store.sqlite.index_writer import SqliteIndexWriter
from backstory.values.units import FileRef, NewUnit, UnitKind, session_unit_id
from tests.index_builders import a_unit, an_index, close_index, store_units, traces


def test_to_begin_to_write_is_not_to_write(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    store_units(index, a_unit(1))
    other = apsw.Connection(str(index.path))
    before = other.execute("PRAGMA data_version").get

    with index.writing():
        pass

    assert other.execute("PRAGMA data_version").get == before
    other.close()
    close_index(index)


def test_words_are_filed_in_order_whatever_order_they_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []
    insert = words.insert_words

    def insert_words(db: apsw.Connection, rows: list[tuple[int, str, str]]) -> None:
        stored.extend(unit_id for unit_id, _, _ in rows)
        insert(db, rows)

    monkeypatch.setattr(words, "insert_words", insert_words)
    index = an_index(tmp_path)
    with index.writing() as writer:
        for first in (10, 1, 20):
            writer.replace_units([a_unit(first), a_unit(first + 1)])
            writer.replace_units([a_unit(session_unit_id(first))])

    sessions = [session_unit_id(number) for number in (1, 10, 20)]
    assert stored == [1, 2, 10, 11, 20, 21, *sessions]
    assert index.verify() == []
    close_index(index)


def test_words_do_not_pile_up_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_writer, "_MAX_PENDING_CHARS", 100)
    index = an_index(tmp_path)
    with index.writing() as writer:
        for number in range(1, 50):
            writer.replace_units([a_unit(number, "alpha beta")])
            assert writer._pending_chars <= 100
        writer.replace_units([a_unit(7, "gamma")])
        writer.delete_units([8, 49])

    assert index.count_documents([("alpha",), ("gamma",)]) == [46, 1]
    assert index.verify() == []
    close_index(index)


def test_what_was_filed_and_deleted_at_once_leaves_no_words(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    with index.writing() as writer:
        writer.replace_units([a_unit(1, "alpha"), a_unit(2, "beta")])
        writer.delete_units([1])

    assert index.count_documents([("alpha",), ("beta",)]) == [0, 1]
    assert index.verify() == []
    close_index(index)


def test_what_was_deleted_is_wiped_although_another_writer_has_started_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, other = an_index(tmp_path), an_index(tmp_path)
    store_units(index, a_unit(1, "the secret is qzwxv"), a_unit(2, "beta"))
    clean_up = SqliteIndexWriter.clean_up

    def let_another_in(writer: SqliteIndexWriter) -> None:
        # The other is killed before it can wipe what it deletes.
        monkeypatch.setattr(SqliteIndexWriter, "clean_up", lambda writer: None)
        with other.writing() as fresh:
            fresh.clear()
            fresh.replace_units([a_unit(2, "beta"), a_unit(3, "qzwxv it was")])
        with other.writing() as again:
            again.delete_units([3])
        clean_up(writer)

    monkeypatch.setattr(SqliteIndexWriter, "clean_up", let_another_in)
    with index.writing() as writer:
        writer.delete_units([1])
    monkeypatch.setattr(SqliteIndexWriter, "clean_up", clean_up)
    with index.writing():
        pass
    index.delete_leftovers()
    index.tidy()

    assert traces(tmp_path, "qzwxv") == []
    assert index.verify() == []
    close_index(other)
    close_index(index)


# -- the parts of files ---------------------------------------------------------------


def a_note(unit_id: int, text: str, *, position: int, said_at: int = 5) -> NewUnit:
    return NewUnit(
        unit_id,
        UnitKind.MEMORY,
        FileRef(1),
        position,
        said_at,
        text,
        meaning=text,
        heading="H",
    )


@pytest.mark.parametrize(
    ("texts", "said_at", "deleted"),
    [
        pytest.param(["one", "two"], 5, "", id="as it was"),
        pytest.param(["one", "two", "three"], 5, "", id="more after it"),
        pytest.param(["zero", "one", "two"], 6, "", id="more before, and later"),
        pytest.param(["one\ntwo"], 5, "", id="put together"),
        pytest.param(["one", "too"], 5, "much", id="another line"),
        pytest.param(["two"], 5, "much", id="a line less"),
        pytest.param([], 5, "much", id="nothing"),
    ],
)
def test_there_is_something_to_tidy_when_a_file_has_lost_a_line(
    tmp_path: Path, texts: list[str], said_at: int, deleted: str
) -> None:
    index = an_index(tmp_path)
    with index.writing() as writer:
        first = writer.next_note_id()
        writer.replace_notes(
            FileRef(1),
            [a_note(first, "one", position=0), a_note(first + 1, "two", position=1)],
        )

    with index.writing() as writer:
        first = writer.next_note_id()
        writer.replace_notes(
            FileRef(1),
            [
                a_note(first + place, text, position=place, said_at=said_at)
                for place, text in enumerate(texts)
            ],
        )

    assert (index.get_state("deleted") or "") == deleted
    assert index.counts().units == len(texts)
    assert index.verify() == []
    close_index(index)
