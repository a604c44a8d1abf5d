"""A search takes in what is new, and tells what it could not take in."""

import os
import threading
from datetime import date
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.values.history import Problem
from backstory.values.reports import IndexStatus
from tests.index_builders import (
    WordEmbedder,
    an_indexed_memory,
    found,
    say,
    say_all,
    write_memory,
)
from tests.ordinary_user import as_ordinary_user
from tests.processes import end_of, in_child


def notes(memory: Memory, query: str) -> list[str]:
    return found(memory, query, scope="memory")


# -- notes that are hard to read ------------------------------------------------------


def test_a_note_edited_between_two_searches_is_found_at_once(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        seen = []
        for number in range(4):
            write_memory(memory, f"- the number is {number}{number}{number}\n")
            seen += notes(memory, "number")

    assert seen == [f"the number is {n}{n}{n}" for n in range(4)]


def test_a_note_as_large_as_allowed_is_found_in_all_its_parts(tmp_path: Path) -> None:
    facts = [f"- fact {number} is about subject{number}" for number in range(20_000)]
    with an_indexed_memory(tmp_path) as memory:
        write_memory(memory, "\n".join(facts))

        assert notes(memory, "subject19999") == ["fact 19999 is about subject19999"]


def test_of_notes_that_are_too_large_the_first_lines_are_found_and_that_is_said(
    tmp_path: Path,
) -> None:
    too_long = "x" * 2_000_000
    with an_indexed_memory(tmp_path) as memory:
        project = tmp_path / "project"
        project.mkdir()
        memory.record("s", "user", "hello", project=project)
        log = memory.notebook.log_path(date(2026, 2, 25))
        log.parent.mkdir(parents=True)
        files = [write_memory(memory, ""), log, project / "CLAUDE.md"]
        for file in files:
            file.write_text(f"{file.stem[:6]:>6} needle\n\n{too_long}")
        problems = [
            Problem(
                "2,000,015 bytes, of which only the first 2,000,000 are searched; split"
                " it into smaller files",
                path=str(file),
            )
            for file in files
        ]

        first = memory.search("needle")
        report = memory.index()
        found = memory.search("needle", sources=["memory", "daily_log", "guidance"])
        elsewhere = memory.search("hello", scope="sessions")
        memory.rebuild()
        again = memory.search("needle", sources=["memory", "daily_log", "guidance"])

        assert report.problems == memory.status().problems == tuple(problems)
        assert found.notices == again.notices == tuple(map(str, problems))
        assert first.notices == found.notices[:2]
        assert elsewhere.notices == ()
        assert {hit.path for hit in found.hits} == set(map(str, files))


def test_a_note_of_bytes_that_are_no_text_harms_nothing(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        file = write_memory(memory, "")
        file.write_bytes(b"\xff\xfe\x00\x01 needle \x80" + os.urandom(5_000))

        memory.search("needle")
        memory.index()

        assert memory._parts.index_files.index.verify() == []


def test_a_note_that_may_not_be_read_is_reported_and_stays_as_it_was(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        file = write_memory(memory, "- the old fact\n")
        notes(memory, "fact")
        file.write_text("- something else\n")
        file.chmod(0)

        with as_ordinary_user():
            report = memory.index()
            hits = notes(memory, "fact")
        file.chmod(0o600)

        assert [problem.path for problem in report.problems] == [str(file)]
        assert hits == ["the old fact"]
        assert notes(memory, "else") == ["something else"]


def test_daily_logs_stay_while_their_folder_may_not_be_read(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        file = write_memory(memory, "- the old fact\n", name="daily/2026-02-03.md")
        notes(memory, "fact")
        file.parent.chmod(0)

        with as_ordinary_user():
            report = memory.index()
            hits = notes(memory, "fact")
        file.parent.chmod(0o700)

        assert [problem.path for problem in report.problems] == [str(file.parent)]
        assert hits == ["the old fact"]


def test_a_deleted_note_is_found_no_more(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        file = write_memory(memory, "- the old fact\n")
        before = notes(memory, "fact")
        file.unlink()

        assert (before, notes(memory, "fact")) == (["the old fact"], [])


def test_a_folder_in_place_of_a_note_is_no_note(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        (memory.home / "memory" / "MEMORY.md").mkdir(parents=True)
        (memory.home / "memory" / "daily").write_text("not a folder")

        assert memory.search("anything").hits == ()


# -- queries of every kind ------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "\0",
        'a "b',
        "NEAR(a b)",
        "text: x",
        "C++",
        "what's",
        "10:30",
        "src/app.py:42",
        "🦜",
        "'; DROP TABLE units; --",
        "* OR *",
        "日",
        "\ud83d",
        "x" * 100_000,
        "(((((" * 1_000,
    ],
)
def test_any_text_is_a_safe_query(tmp_path: Path, query: str) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "hello there")
        memory.embed()

        notices = [
            *memory.search(query).notices,
            *memory.recall(query).notices,
            *memory.episodes(query).notices,
        ]

        assert [notice for notice in notices if "failed" in notice] == []


# -- the state ----------------------------------------------------------------------


def test_the_status_tells_how_much_is_indexed_and_embedded(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, ["alpha", "beta"])
        before = memory.status().index
        memory.index()
        memory.embed()
        after = memory.status().index

    assert isinstance(before, IndexStatus)
    assert isinstance(after, IndexStatus)
    assert (before.units, before.is_behind) == (0, True)
    assert (after.units, after.with_meaning, after.embedded, after.is_behind) == (
        3,
        2,
        2,
        False,
    )


def test_another_history_makes_another_index(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, ["alpha", "beta"])
        say(memory, "gamma", session="s2")
        memory.index()
    for file in memory.home.glob("history.db*"):
        file.unlink()

    with an_indexed_memory(tmp_path) as memory:
        say(memory, "delta")

        assert found(memory, "alpha") == []
        assert found(memory, "delta")
        assert memory._parts.index_files.index.verify() == []


def test_another_history_with_as_many_changes_is_noticed(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha")
        memory.index()
    for file in memory.home.glob("history.db*"):
        file.unlink()

    with an_indexed_memory(tmp_path) as memory:
        say(memory, "delta")

        assert found(memory, "delta")


def test_a_memory_can_be_searched_from_many_threads(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, (f"alpha n{n}" for n in range(100)))
        memory.embed()
        expected = memory.search("alpha n7").hits
        seen: list[object] = []

        def search() -> None:
            seen.extend(memory.search("alpha n7").hits == expected for _ in range(5))

        threads = [threading.Thread(target=search) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert seen == [True] * 30


@pytest.mark.parametrize("round_", range(3))
def test_the_first_searches_may_come_from_many_threads_at_once(
    tmp_path: Path, round_: int
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, (f"alpha n{n}" for n in range(50)))
        memory.embed()
        expected = found(memory, "alpha n7")
    memory = an_indexed_memory(tmp_path, embedder=WordEmbedder())
    start = threading.Barrier(8)
    seen: list[object] = []
    parts: set[int] = set()

    def search() -> None:
        start.wait()
        try:
            seen.append(found(memory, "alpha n7"))
            parts.add(id(memory._parts.index_files.index))
            parts.add(id(memory._parts.search._get_retriever()))
        except BaseException as exc:
            seen.append(exc)

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.close()

    assert seen == [expected] * 8
    assert len(parts) == 2


def test_a_memory_searched_before_a_fork_can_be_searched_on_both_sides(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, ["alpha beta", "gamma"])
        memory.embed()
        expected = found(memory, "alpha")

        def search() -> None:
            assert found(memory, "alpha") == expected

        end = end_of(in_child(search))

        assert end == "well"
        assert found(memory, "alpha") == expected
